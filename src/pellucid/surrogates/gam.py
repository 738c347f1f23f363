"""A unit may add something else at each position: an additive model with few terms.

Leemann et al., TMLR 2024, appendix E.2: least squares with a penalty of 0.01 on absolute weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pellucid._arguments import integer, real
from pellucid.surrogates.counts import Unit, count, row_weights, score_table

Term = tuple[int, Unit]  # a position, and the unit there


@dataclass(frozen=True, eq=False)
class Gam:
    """F(t) = bias + sum of the weights of (position, unit); terms never seen add nothing."""

    terms: tuple[Term, ...]
    weight: Tensor  # k, or k c
    bias: Tensor  # a number, or c

    def predict(self, sequences: Sequence[Sequence[Unit]]) -> Tensor:
        """The output for each sequence: (b), or (b c)."""
        return _table(sequences, self.terms) @ self.weight + self.bias

    def scores(self, sequence: Sequence[Unit]) -> Tensor:
        """What each position adds: (t), or (t c)."""
        known = set(self.terms)
        single = [[term] if term in known else [] for term in enumerate(sequence)]
        return count(single, self.terms) @ self.weight

    @classmethod
    def fit(
        cls,
        sequences: Sequence[Sequence[Unit]],
        scores: Any,
        *,
        weights: Any = None,
        penalty: float = 0.01,
        sweeps: int = 1000,
    ) -> Gam:
        """The least of |F - y|^2 / 2 N + penalty |weight|_1, the bias free."""
        target = score_table(scores, len(sequences))
        table = target.reshape(len(target), -1)  # b c
        share = row_weights(weights, len(sequences))
        terms = tuple(dict.fromkeys(term for row in sequences for term in enumerate(row)))
        features = _table(sequences, terms)  # b k
        middle, mean = share @ features, share @ table
        centred = features - middle
        weight = lasso(
            (centred.T * share) @ centred,
            (centred.T * share) @ (table - mean),
            real("penalty", penalty, 0.01),
            integer("sweeps", sweeps, 1),
        )
        bias = mean - middle @ weight
        return cls(terms, weight, bias) if target.ndim == 2 else cls(terms, weight[:, 0], bias[0])


def lasso(normal: Tensor, right: Tensor, penalty: float, sweeps: int) -> Tensor:
    """The least of w' normal w / 2 - right' w + penalty |w|_1 (k c), one coordinate at a time.

    The order is fixed, so that nothing is drawn. Done when no coordinate moved.
    """
    weight, slope = torch.zeros_like(right), right.clone()  # slope = right - normal w
    own = normal.diagonal().tolist()
    even = 1e-12 * max(float(right.abs().max()), 1e-300)
    for _ in range(sweeps):
        most = 0.0
        for k, square in enumerate(own):
            if square <= 1e-14:
                continue  # in every sequence, or in none: it is the bias's
            free = slope[k] + square * weight[k]  # c
            moved = free.sign() * (free.abs() - penalty).clamp(min=0) / square - weight[k]
            if moved.any():
                weight[k] += moved
                slope -= normal[:, k, None] * moved
                most = max(most, square * float(moved.abs().max()))
        if most <= even:
            break
    return weight


def _table(sequences: Sequence[Sequence[Unit]], terms: tuple[Term, ...]) -> Tensor:
    """Which terms each sequence has (b k)."""
    known = set(terms)
    return count([[term for term in enumerate(row) if term in known] for row in sequences], terms)
