"""Scores as sums: every occurrence of a unit adds the same. Leemann et al., TMLR 2024, E.2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pellucid._arguments import real
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
class Linear:
    """F(t) = bias + sum of the weights of its units."""

    units: Units
    weight: Tensor  # u, or u c
    bias: Tensor  # a number, or c

    def predict(self, sequences: Sequence[Sequence[Unit]]) -> Tensor:
        """The output for each sequence: (b), or (b c)."""
        return count(sequences, self.units) @ self.weight + self.bias

    def scores(self, sequence: Sequence[Unit]) -> Tensor:
        """What each position adds, which is also what its removal takes: (t), or (t c)."""
        return self.weight[places(sequence, self.units)]

    @classmethod
    def fit(
        cls,
        sequences: Sequence[Sequence[Unit]],
        scores: Any,
        *,
        weights: Any = None,
        ridge: float = 0.0,
        intercept: bool = True,
    ) -> Linear:
        """Least squares on counts; of several solutions the shortest.

        `ridge` times the squared weights, without the bias, is added to the mean squared error.
        `weights` are multiplicities, or nearness to one sequence.
        """
        target = score_table(scores, len(sequences))
        table = target.reshape(len(target), -1)  # b c
        share = row_weights(weights, len(sequences))
        units = units_of(sequences)
        counts = count(sequences, units)
        middle = share @ counts * intercept  # u
        mean = share @ table * intercept  # c
        scale = share.sqrt()[:, None]
        matrix = scale * (counts - middle)
        right = scale * (table - mean)
        strength = real("ridge", ridge, 0.0)
        matrix = torch.cat([matrix, strength**0.5 * torch.eye(len(units)).to(matrix)])
        right = torch.cat([right, right.new_zeros(len(units), right.shape[1])])
        weight = torch.linalg.lstsq(matrix, right, driver="gelsd").solution
        bias = mean - middle @ weight
        return cls(units, weight, bias) if target.ndim == 2 else cls(units, weight[:, 0], bias[0])
