"""Sparseness: the Gini index of a map. Chalasani et al., ICML 2020; TIS, section 5.

It says whether a map is short to read, not whether it is right.

It misleads where short is taken for right: a map of one wrong pixel is the sparsest of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from pellucid._case import Case
from pellucid._results import Explanation
from pellucid._spec import metric
from pellucid._types import Measured
from pellucid.metrics._ranking import tie_fraction

Shift = Literal["auto", "always", "abs"]
_LEAST = 1e-7  # added to every score, so that a map of zeros has an index: 0


@metric(
    cite=("chalasani2020concise", "englebert2023tis"),
    better="higher",
    family="complexity",
    kinds=("image",),
)
def sparseness(
    case: Case, explanations: Sequence[Explanation], *, shift: Shift = "auto"
) -> Measured:
    """Gini index of the map: 0 where all pixels score the same, near 1 where one has it all.

    Scores must not be negative: "auto" lowers the map by its smallest score where that is below
    zero, "always" in any case, and "abs" takes the size of every score.
    """
    maps = [explanation.map() for explanation in explanations]
    return Measured(
        values=[gini(_positive(scores, shift)) for scores in maps],
        ties=[tie_fraction(scores) for scores in maps],
    )


def gini(scores: Tensor) -> float:
    """G = sum_i (2i - d - 1) a_(i) / (d sum a), over the d scores in ascending order."""
    a = (scores.double().flatten() + _LEAST).sort().values
    d = len(a)
    i = torch.arange(1, d + 1, dtype=a.dtype)
    return float(((2 * i - d - 1) * a).sum() / (d * a.sum()))


def _positive(scores: Tensor, shift: Shift) -> Tensor:
    if shift == "abs":
        return scores.abs()
    return scores - scores.min() if shift == "always" or scores.min() < 0 else scores
