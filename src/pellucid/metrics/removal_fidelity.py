"""Fidelity to the removal of several tokens at once. SLALOM's paper, section 6.3 and Figure 6.

Every explanation that predicts what a removal does is held to the same removals: scores as sums, a
SLALOM as the function that it is.

It misleads where scores were never meant to add up, as unsigned ones: their error is that of a
unit, not of an order.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pellucid._arguments import integer
from pellucid._case import Case
from pellucid._needs import Needs
from pellucid._results import Explanation
from pellucid._spec import metric
from pellucid._types import Measured
from pellucid.metrics._keeping import tokens_of, values_of_kept
from pellucid.metrics._predicting import check_same_number, predicted_change


@metric(
    needs=Needs.TOKENS | Needs.TOKEN_DROP,
    cite="leemann2024attention",
    better="lower",
    family="faithfulness",
    kinds=("text",),
    reads="log_odds",
    absolute=True,
    quick={"most": 3, "sets": 4},
)
def removal_fidelity(
    case: Case, explanations: Sequence[Explanation], *, most: int = 10, sets: int = 100
) -> Measured:
    """Mean squared error of the predicted change of log-odds when 1 to 10 tokens are removed.

    MSE_m = mean over `sets` random D of size m of [(F(t - D) - F(t)) - predicted]^2, for m = 1 to
    `most`, or to all tokens but one; the curve has them, the value is their mean. The sets of one
    draw grow with m, and depend on the text and the seed alone, so all methods meet the same ones.
    """
    integer("most", most, 1, 10)
    integer("sets", sets, 1, 100)
    check_same_number(case, explanations, "removal_fidelity")
    kept = [_kept(case, row, one, most, sets) for row, one in enumerate(explanations)]
    curves = []
    for explanation, keep, left, clean in zip(
        explanations, kept, values_of_kept(case, kept), case.value.tolist(), strict=True
    ):
        error = (left - clean) - predicted_change(explanation, keep)  # sets * levels
        curves.append(error.square().view(sets, -1).mean(dim=0))
    return Measured(
        values=[float(curve.mean()) if len(curve) else None for curve in curves],
        curves=curves,
        skipped=["" if len(curve) else "fewer than 2 tokens" for curve in curves],
    )


def _kept(case: Case, row: int, explanation: Explanation, most: int, sets: int) -> Tensor:
    """What stays in each draw, as 1, 2, ... tokens of one random order go (sets * levels, t)."""
    own = tokens_of(explanation)
    many = int(own.sum())
    levels = torch.arange(1, min(most, many - 1) + 1)[:, None]
    draws = []
    for draw in range(sets):
        place = torch.randperm(many, generator=case.generator(row, draw))
        stays = torch.ones(len(levels), len(own), dtype=torch.bool)
        stays[:, own] = place >= levels
        draws.append(stays)
    return torch.cat(draws)
