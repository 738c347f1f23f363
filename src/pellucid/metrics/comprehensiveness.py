"""Comprehensiveness. DeYoung et al., ERASER, ACL 2020, section 4.2, with its aggregate.

It misleads where what is left is no text: the loss may be due to a strange input. A map that finds
one of two sufficient words looks worse than it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from pellucid._case import Case
from pellucid._needs import Needs
from pellucid._results import Explanation
from pellucid._spec import metric
from pellucid._types import Measured
from pellucid.metrics._keeping import deletion_masks, measured
from pellucid.metrics._ranking import Ties


@metric(
    needs=Needs.TOKENS | Needs.TOKEN_DROP,
    cite="deyoung2020eraser",
    better="higher",
    family="faithfulness",
    kinds=("text",),
)
def comprehensiveness(
    case: Case,
    explanations: Sequence[Explanation],
    *,
    grid: str = "percent:[1,5,10,20,50]",
    ties: Ties = "stable",
) -> Measured:
    """Mean loss of class probability without the highest-scored 1, 5, 10, 20 and 50 % of tokens.

    p(t) - p(t without its ceil(k n) highest), averaged over the parts k: ERASER's AOPC. The curve
    has the probabilities that are left.
    """
    return measured(case, explanations, deletion_masks, grid, "clean", ties)
