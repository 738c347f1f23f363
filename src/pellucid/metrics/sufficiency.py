"""Sufficiency. DeYoung et al., ERASER, ACL 2020, section 4.2, with its aggregate.

It misleads where a few words are no text to the model: what is missing may be grammar and not
evidence. Below zero the words alone are more convincing than the whole.
"""

from __future__ import annotations

from collections.abc import Sequence

from pellucid._case import Case
from pellucid._needs import Needs
from pellucid._results import Explanation
from pellucid._spec import metric
from pellucid._types import Measured
from pellucid.metrics._keeping import insertion_masks, measured
from pellucid.metrics._ranking import Ties


@metric(
    needs=Needs.TOKENS | Needs.TOKEN_DROP,
    cite="deyoung2020eraser",
    better="lower",
    family="faithfulness",
    kinds=("text",),
)
def sufficiency(
    case: Case,
    explanations: Sequence[Explanation],
    *,
    grid: str = "percent:[1,5,10,20,50]",
    ties: Ties = "stable",
) -> Measured:
    """Mean loss of class probability with only the highest-scored 1, 5, 10, 20 and 50 % of tokens.

    p(t) - p(the ceil(k n) highest of t), averaged over the parts k: ERASER's AOPC. The curve has
    the probabilities that are left.
    """
    return measured(case, explanations, insertion_masks, grid, "clean", ties)
