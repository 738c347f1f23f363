"""What a model makes of one unit said again and again. Leemann et al., TMLR 2024, Figures 3 and 7.

A sum grows with every repetition; a Transformer that reads nothing but the unit stays where it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pellucid._arguments import integer
from pellucid._errors import ArgumentError, explain_error
from pellucid.surrogates.counts import Unit, score_table

Query = Callable[[list[tuple[Unit, ...]]], Any]  # sequences -> one score each


@dataclass(frozen=True, eq=False)
class Repetition:
    """The score of a unit said 1, 2, ... times."""

    unit: Unit
    scores: Tensor  # n
    nothing: float  # the score of an empty sequence

    @property
    def flatness(self) -> float:
        """The farthest from the score of the unit alone: max |F_i - F_1|. 0 for a SLALOM."""
        return float((self.scores - self.scores[0]).abs().max())

    @property
    def slope(self) -> float:
        """What one repetition more adds, by least squares. The weight of the unit for a sum."""
        times = torch.arange(1, len(self.scores) + 1, dtype=torch.float64)
        times = times - times.mean()
        return float(times @ self.scores / (times @ times).clamp(min=1))

    @property
    def shapley(self) -> Tensor:
        """The Shapley value of each position, for every length (n).

        Leaving some of i equal units out leaves the others, whichever they are: the game is
        symmetric, so each position has the same value, (F_i - F_0) / i.
        """
        return (self.scores - self.nothing) / torch.arange(1, len(self.scores) + 1)


def repetition(query: Query, unit: Unit, *, most: int = 20, nothing: float = 0.0) -> Repetition:
    """Ask a model for the score of a unit said 1 to `most` times.

    `query` takes sequences, as `Slalom.predict` or a function of a model's log-odds. `nothing` is
    what the Shapley values count from: the score of no unit at all.
    """
    integer("most", most, 1, 20)
    sequences = [(unit,) * times for times in range(1, most + 1)]
    scores = score_table(query(sequences), most)
    if scores.dim() != 1:
        raise ArgumentError(
            explain_error(
                "a curve has one score a sequence",
                got=f"scores of shape {tuple(scores.shape)}",
                expected="the log-odds of one class",
                instead="lambda sequences: model(sequences)[:, 1] - model(sequences)[:, 0]",
            )
        )
    return Repetition(unit, scores, nothing)
