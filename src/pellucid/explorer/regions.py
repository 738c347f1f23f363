"""Feasible regions, as changes of coordinates.

A walk that must stay where embeddings can be moves in coordinates that cover just that region:
x = chart(w) for any w. So whatever keeps it in its class keeps it in the region as well, and no
step has to be undone. Uncorrected walks, as the papers have them, are projected after each step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from pellucid._errors import ArgumentError, explain_error
from pellucid.explorer.rows import pick

_EDGE = 1e-6  # of the width of the region: how far outside a start may be by rounding


class Region(Protocol):
    """A set of states; `rows` says which inputs of the batch the states belong to."""

    @property
    def name(self) -> str: ...

    def start(self, x: Tensor, moving: Tensor) -> Tensor:
        """The coordinates of the unchanged states; an error if one that moves lies outside."""
        ...

    def chart(self, w: Tensor, rows: Tensor) -> Tensor:
        """The states at these coordinates (b t d)."""
        ...

    def project(self, x: Tensor, rows: Tensor) -> Tensor:
        """The nearest states in the region."""
        ...


@dataclass(frozen=True)
class Everywhere:
    """No bound at all."""

    name: str = "everywhere"

    def start(self, x: Tensor, moving: Tensor) -> Tensor:
        return x

    def chart(self, w: Tensor, rows: Tensor) -> Tensor:
        return w

    def project(self, x: Tensor, rows: Tensor) -> Tensor:
        return x


@dataclass(frozen=True, eq=False)
class Box:
    """Each number between a lower and an upper bound (b t d, or broadcast to it).

    The chart is x = m + r sin(w / r) with m the middle and r half the width: speed one in the
    middle, and a wall turns a walk back as it turns back a wave. A width of zero holds its number.
    """

    low: Tensor
    high: Tensor
    name: str = "box"

    def start(self, x: Tensor, moving: Tensor) -> Tensor:
        low, high = (bound.to(x).expand_as(x) for bound in (self.low, self.high))
        slack = _EDGE * (high - low).clamp(min=1.0)
        outside = ((x < low - slack) | (x > high + slack)) & moving[..., None]
        if outside.any():
            raise ArgumentError(
                explain_error(
                    "the start of the walk lies outside the feasible region",
                    got=f"{int(outside.sum())} of {x.numel()} numbers, within={self.name!r}",
                    expected="a region that holds the input itself",
                    instead="within=None, or bounds from data that includes the input",
                )
            )
        middle, radius = (low + high) / 2, (high - low) / 2
        if not ((radius > 0) & moving[..., None]).flatten(1).any(dim=1).all():
            raise _single_point(self.name)
        inner = ((x - middle) / radius.clamp(min=1e-300)).clamp(-1, 1)
        return torch.where(radius > 0, radius * inner.asin(), 0.0)

    def chart(self, w: Tensor, rows: Tensor) -> Tensor:
        low, high = (_of(bound, rows).to(w) for bound in (self.low, self.high))
        middle, radius = (low + high) / 2, (high - low) / 2
        return middle + radius * (w / torch.where(radius > 0, radius, 1.0)).sin()

    def project(self, x: Tensor, rows: Tensor) -> Tensor:
        return x.clamp(_of(self.low, rows).to(x), _of(self.high, rows).to(x))


@dataclass(frozen=True, eq=False)
class NormRange:
    """What a layer normalisation returns: weight and bias on vectors of mean 0, variance 1."""

    weight: Tensor
    bias: Tensor
    name: str = "layernorm"

    def start(self, x: Tensor, moving: Tensor) -> Tensor:
        inner = (x - self.bias.to(x)) / self.weight.to(x)
        mean, variance = inner.mean(dim=-1), inner.var(dim=-1, unbiased=False)
        gap = float(torch.where(moving, mean.abs() + (variance - 1).abs(), 0.0).max())
        if gap > 1e-2:
            raise ArgumentError(
                explain_error(
                    "these states do not come out of a layer normalisation",
                    got=f"mean and variance off by {gap:.3g}",
                    expected="a space that begins right behind one, as BERT's embedding",
                    instead="within='bounds'",
                )
            )
        return inner

    def chart(self, w: Tensor, rows: Tensor) -> Tensor:
        centred = w - w.mean(dim=-1, keepdim=True)
        size = centred.square().mean(dim=-1, keepdim=True).sqrt().clamp(min=1e-12)
        return self.bias.to(w) + self.weight.to(w) * (centred / size)

    def project(self, x: Tensor, rows: Tensor) -> Tensor:
        return self.chart((x - self.bias.to(x)) / self.weight.to(x), rows)


def clamped(free: Tensor, projected: Tensor, moving: Tensor) -> Tensor:
    """The share of the moving numbers that a projection changed (b)."""
    changed = (free != projected) & moving[..., None]
    count = moving.sum(dim=1) * free.shape[2]
    return changed.flatten(1).sum(dim=1).to(free) / count.clamp(min=1)


def _single_point(name: str) -> ArgumentError:
    return ArgumentError(
        explain_error(
            "the feasible region holds a single state, in which nothing can move",
            got=f"lower bounds equal to upper ones, within={name!r}",
            expected="a region with room around the start",
            instead="within=pellucid.feasible(model, [first, second, third])",
        )
    )


def _of(bound: Tensor, rows: Tensor) -> Tensor:
    """The bounds of these inputs, where inputs have their own."""
    return pick(bound, rows) if bound.dim() == 3 and len(bound) > 1 else bound
