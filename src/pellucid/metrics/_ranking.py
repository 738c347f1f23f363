"""The order in which pixels or tokens are taken, and what happens where scores are equal."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Ties = Literal["stable", "random", "legacy"]


def ranks(scores: Tensor, ties: Ties, generator: torch.Generator) -> Tensor:
    """The rank of every score, 0 for the largest.

    Equal scores are taken in reading order ("stable"), in random order ("random"), or last first as
    the code of RISE and TIS does ("legacy").
    """
    flat = scores.double().flatten()
    if ties == "stable":
        order = (-flat).argsort(stable=True)
    elif ties == "random":
        shuffled = torch.randperm(len(flat), generator=generator)
        order = shuffled[(-flat[shuffled]).argsort(stable=True)]
    else:
        order = flat.argsort(stable=True).flip(0)
    return inverse(order)


def inverse(order: Tensor) -> Tensor:
    """The place of every index in an order of them all."""
    places = torch.arange(len(order), dtype=order.dtype, device=order.device)
    return torch.empty_like(order).scatter_(0, order, places)


def tie_fraction(scores: Tensor) -> float:
    """1 - distinct / all: how much of the order the tie policy decides; 0 where there is none."""
    if not scores.numel():
        return 0.0
    return 1.0 - len(scores.unique()) / scores.numel()
