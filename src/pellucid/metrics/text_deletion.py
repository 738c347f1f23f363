"""Deletion for texts, as SLALOM's paper measures it (section 6.3, Table 11a): AOPC of 1 - p.

Keep the lowest-scored tokens, 5 of them, then 10, and so on, and average what the class has lost.
So it is the other way up than deletion for images: higher is better here.

It misleads where what is left is no text: a model may be sure of a fragment for no reason that the
whole text gives.
"""

from __future__ import annotations

from collections.abc import Sequence

from pellucid._case import Case
from pellucid._needs import Needs
from pellucid._results import Explanation
from pellucid._spec import metric
from pellucid._types import Measured
from pellucid.metrics._keeping import Level, deletion_masks, measured
from pellucid.metrics._ranking import Ties


@metric(
    needs=Needs.TOKENS | Needs.TOKEN_DROP,
    cite="leemann2024attention",
    better="higher",
    family="faithfulness",
    kinds=("text",),
)
def text_deletion(
    case: Case,
    explanations: Sequence[Explanation],
    *,
    grid: str = "tokens:5",
    reference: Level = "one",
    ties: Ties = "stable",
) -> Measured:
    """1 - mean probability of the class with only the 5, 10, ... lowest-scored tokens left.

    With `reference="clean"` the loss is counted from the probability of the whole text, not from 1:
    on the grid "percent:[1,5,10,20,50]" of what is deleted that is `comprehensiveness`. The AOPC of
    images, `aopc`, is another number: its levels include the whole image.
    """
    return measured(case, explanations, deletion_masks, grid, reference, ties)
