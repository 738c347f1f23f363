"""How much more often a unit occurs in one class than in the other.

The reference that Leemann et al., TMLR 2024, appendix E.4, compare values with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from pellucid._arguments import real
from pellucid._errors import ArgumentError, explain_error
from pellucid.surrogates.counts import (
    Unit,
    Units,
    count,
    places,
    row_weights,
    score_table,
    units_of,
)


@dataclass(frozen=True, eq=False)
class NaiveBayes:
    """F(t) = sum of log((n+ + alpha) / (n- + alpha)) over its units, n counting occurrences."""

    units: Units
    weight: Tensor  # u

    def predict(self, sequences: Sequence[Sequence[Unit]]) -> Tensor:
        """The log-odds of each sequence (b)."""
        return count(sequences, self.units) @ self.weight

    def scores(self, sequence: Sequence[Unit]) -> Tensor:
        """What each position adds (t)."""
        return self.weight[places(sequence, self.units)]

    @classmethod
    def fit(
        cls,
        sequences: Sequence[Sequence[Unit]],
        scores: Any,
        *,
        weights: Any = None,
        alpha: float = 20.0,
    ) -> NaiveBayes:
        """From labels or log-odds: a sequence is of the class that its score is above zero for."""
        target = score_table(scores, len(sequences))
        if target.ndim != 1 or real("alpha", alpha, 20.0) <= 0:
            raise ArgumentError(
                explain_error(
                    "naive Bayes counts in two classes, and adds something to each count",
                    got=f"scores of shape {tuple(target.shape)}, alpha={alpha!r}",
                    expected="one score a sequence, above zero for one class, and alpha above zero",
                    instead="scores=log_odds, alpha=20.0",
                )
            )
        units = units_of(sequences)
        many = len(sequences) if weights is None else float(sum(weights))
        copies = many * row_weights(weights, len(sequences))
        counts = copies[:, None] * count(sequences, units)  # b u
        upper, lower = counts[target > 0].sum(dim=0), counts[target <= 0].sum(dim=0)
        return cls(units, ((upper + alpha) / (lower + alpha)).log())
