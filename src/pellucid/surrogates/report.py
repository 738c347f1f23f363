"""How well a surrogate describes the scores that it was fitted to, and what they tell."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, eq=False)
class Report:
    """Errors are standard errors; infinite where the sequences do not tell a number at all."""

    mse: float  # a class and a sequence, weighted
    r2: float  # 1 for a perfect fit, 0 for the mean score
    held_out_mse: float | None  # on sequences that were not fitted
    steps: int
    value_error: Tensor | None = None  # u, or u c
    importance_error: Tensor | None = None  # u
    smallest: Tensor | None = None  # the least eigenvalues of the normal matrix but the gauge's
    resolution: Tensor | None = None  # u: the part of an importance that the prior did not give
