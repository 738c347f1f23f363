"""SLALOM by Adam on minibatches. Leemann et al., TMLR 2024, algorithm 1."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from pellucid.surrogates.counts import shares


def adam(
    counts: Tensor,
    target: Tensor,
    weights: Tensor,
    generator: torch.Generator,
    *,
    pool: int,
    rate: float,
    batch: int,
    epochs: int,
) -> tuple[Tensor, Tensor, int]:
    """Values (u c), importances (u) and the number of steps.

    Both begin at zero; a minibatch is drawn from a pool of so many samples, of which `weights` is
    the share of each row, and its squared errors are summed.
    """
    value = counts.new_zeros(counts.shape[1], target.shape[1]).requires_grad_()
    importance = counts.new_zeros(counts.shape[1]).requires_grad_()
    optimizer = torch.optim.Adam([value, importance], lr=rate)
    steps = epochs * math.ceil(pool / batch)
    with torch.no_grad():
        for _ in range(steps):
            rows = torch.multinomial(weights, batch, replacement=True, generator=generator)
            share = shares(counts[rows], importance)
            output = share @ value  # b c
            error = 2 * (output - target[rows])
            value.grad = share.T @ error
            # sum over b and c of error * share * (v - F), without a tensor of b u c
            importance.grad = (value.grad * value).sum(dim=1) - share.T @ (error * output).sum(1)
            optimizer.step()
    return value.detach(), importance.detach(), steps
