"""Insertion for texts, as SLALOM's paper measures it (section 6.3, Table 1c): AOPC of 1 - p.

Keep the highest-scored tokens, 5 of them, then 10, and so on, and average what the class lacks. So
it is the other way up than insertion for images: lower is better here. (The caption of Table 1c
says deletion; its text, sizes and direction are those of insertion.)

It misleads where a few words are no text to the model: what is missing may be grammar and not
evidence.
"""

from __future__ import annotations

from collections.abc import Sequence

from pellucid._case import Case
from pellucid._needs import Needs
from pellucid._results import Explanation
from pellucid._spec import metric
from pellucid._types import Measured
from pellucid.metrics._keeping import Level, insertion_masks, measured
from pellucid.metrics._ranking import Ties


@metric(
    needs=Needs.TOKENS | Needs.TOKEN_DROP,
    cite="leemann2024attention",
    better="lower",
    family="faithfulness",
    kinds=("text",),
)
def text_insertion(
    case: Case,
    explanations: Sequence[Explanation],
    *,
    grid: str = "tokens:5",
    reference: Level = "one",
    ties: Ties = "stable",
) -> Measured:
    """1 - mean probability of the class with only the 5, 10, ... highest-scored tokens left.

    With `reference="clean"` the lack is counted from the probability of the whole text, not from 1:
    on the grid "percent:[1,5,10,20,50]" that is `sufficiency`.
    """
    return measured(case, explanations, insertion_masks, grid, reference, ties)
