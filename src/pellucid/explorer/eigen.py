"""The directions of Algorithms 1 and 2: from the kernel of the metric, or from its range.

A rule gives a field: a function of the metric, so that a solver can follow the same choice at
points nearby, also for some of the inputs only, by their places among those that it was made for.
The leading dimensions are the metric's: inputs, or inputs and tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from torch import Tensor

from pellucid.explorer.directions import Reference
from pellucid.explorer.rows import pick
from pellucid.explorer.state import State
from pellucid.geometry.outputs import Coordinates
from pellucid.geometry.pullback import Pullback

Field = Callable[[Pullback, Tensor], Tensor]
Index = Literal["uniform", "max", "weighted"]
Sign = Literal["persist", "random", "leave"]


class Rule(Protocol):
    """Chooses a direction at the current points of some inputs."""

    def field(self, metric: Pullback, state: State, rows: Tensor) -> Field: ...


@dataclass(frozen=True, eq=False)
class Null:
    """Line 6 of Algorithm 1: a direction of the kernel, from an ambient vector."""

    reference: Reference

    def field(self, metric: Pullback, state: State, rows: Tensor) -> Field:
        ambient = self.reference(state, rows)
        flat = ambient.view(*metric.rows.shape[:-2], metric.rows.shape[-1])
        return lambda other, at: _unit(other.null_project(pick(flat, at)))


@dataclass(frozen=True, eq=False)
class NullEigenvector:
    """The same with a solver's own basis of the kernel, by diagonalising all of g: small inputs.

    Inside the kernel that basis is decided by rounding, so an input of a batch may walk otherwise
    than alone. `released` draws as the authors' code does: the rounded index gives the ends half
    the weight, and one past the last null vector is the first that is not null.
    """

    moving: Tensor
    released: bool = False

    def field(self, metric: Pullback, state: State, rows: Tensor) -> Field:
        free = _moving(self.moving, rows, metric)
        walls = (1 - free) * (1 + 2 * metric.largest)[..., None]  # what is held stands last
        _, vectors = torch.linalg.eigh(metric.as_matrix() + walls.diag_embed())  # rising
        size = free.expand(vectors.shape[:-1]).sum(dim=-1)
        null = size - metric.rank  # they stand first
        drawn = _uniform(state, rows, metric, self.moving) * null
        index = drawn.round() if self.released else drawn.floor()
        index = index.minimum(size - 1).clamp(min=0).long()[..., None, None]
        found = vectors.gather(-1, index.expand(*vectors.shape[:-1], 1))[..., 0]
        some = (null > 0) | self.released
        moved = found * free * some[..., None]
        return lambda other, at: pick(moved, at)


@dataclass(frozen=True, eq=False)
class Range:
    """Line 6 of Algorithm 2: an eigenvector of a nonzero eigenvalue, with a rule for its sign.

    An eigenvector has no sign of its own. "persist" goes on as the last step did; "random" tosses a
    coin; "leave" turns away from the predicted class; with `towards` it turns to that class. Where
    no eigenvalue counts as nonzero nothing moves, but in the authors' code (`released`) the largest
    is taken all the same.
    """

    moving: Tensor
    coordinates: Coordinates
    index: Index = "uniform"
    sign: Sign = "persist"
    towards: Tensor | None = None  # b
    released: bool = False

    def field(self, metric: Pullback, state: State, rows: Tensor) -> Field:
        drawn = _uniform(state, rows, metric, self.moving)
        chosen = self._chosen(metric, drawn)
        vector = metric.vectors.gather(
            -2, chosen[..., None, None].expand(*chosen.shape, 1, metric.vectors.shape[-1])
        )[..., 0, :]
        there = (metric.largest if self.released else metric.rank) > 0
        first = vector * (self._sign(metric, vector, state, rows) * there)[..., None]

        def follow(other: Pullback, at: Tensor) -> Tensor:
            """The eigenvector nearest to the one that was chosen, turned the same way."""
            along = (other.vectors @ pick(first, at)[..., None])[..., 0]
            nearest = along.abs().argmax(dim=-1, keepdim=True)
            found = other.vectors.gather(
                -2, nearest[..., None].expand(*nearest.shape, other.vectors.shape[-1])
            )[..., 0, :]
            turned: Tensor = found * (along.gather(-1, nearest).sign() * pick(there, at)[..., None])
            return turned

        return follow

    def _chosen(self, metric: Pullback, drawn: Tensor) -> Tensor:
        if self.index == "max":
            return torch.zeros_like(metric.rank)
        if self.index == "weighted":
            weights = metric.values * metric.nonzero
            share = weights.cumsum(dim=-1) / weights.sum(dim=-1, keepdim=True).clamp(min=1e-300)
            index = (share < drawn[..., None]).sum(dim=-1)
        else:
            index = (drawn * metric.rank).floor().long()
        return index.minimum((metric.rank - 1).clamp(min=0))

    def _sign(self, metric: Pullback, vector: Tensor, state: State, rows: Tensor) -> Tensor:
        coin = torch.where(_uniform(state, rows, metric, self.moving) < 0.5, -1.0, 1.0)
        if self.sign == "random":
            return coin
        if self.sign == "persist":
            last = pick(state.heading, rows).view_as(vector)
            score = (last * vector).sum(dim=-1)
        else:
            score = self._margin(state, rows, metric, vector)
        return torch.where(score == 0, coin, score.sign())

    def _margin(self, state: State, rows: Tensor, metric: Pullback, vector: Tensor) -> Tensor:
        """How the margin of the asked class grows along the vector; less its own, to leave it."""
        jacobian = pick(state.memory["jacobian"], rows)  # b r t p
        y = pick(state.y, rows)
        own = self.coordinates.take(rows)
        towards = None if self.towards is None else pick(self.towards, rows)
        gradient = own.margin_gradient(y, towards)  # b r
        moved = vector.view(len(rows), -1, jacobian.shape[-1])  # b t p, or one row of all tokens
        flat = jacobian.flatten(2) if vector.dim() == 2 else None
        if flat is not None:
            return (gradient * (flat @ vector[..., None])[..., 0]).sum(dim=-1)
        return torch.einsum("br,brtp,btp->bt", gradient, jacobian, moved)


@dataclass(frozen=True, eq=False)
class Lift:
    """The shortest move that turns the prediction to a class (or from its own): B+ u."""

    coordinates: Coordinates
    towards: Tensor | None = None

    def field(self, metric: Pullback, state: State, rows: Tensor) -> Field:
        y = pick(state.y, rows)
        own = self.coordinates.take(rows)
        towards = None if self.towards is None else pick(self.towards, rows)
        gradient = own.margin_gradient(y, towards)
        root = own.root(y)
        u = gradient if root is None else (root @ gradient[..., None])[..., 0]
        spread = u if metric.rows.dim() == 3 else u[:, None, :].expand(*metric.rows.shape[:-1])
        return lambda other, at: _unit(other.lift(pick(spread, at)))


def _uniform(state: State, rows: Tensor, metric: Pullback, moving: Tensor) -> Tensor:
    """A uniform number an input, or one for each of its moving tokens."""
    shape = metric.rows.shape[:-2]
    out = torch.zeros(shape, dtype=torch.float64)
    for place, row in enumerate(rows.tolist()):
        generator = state.generators[row]
        if len(shape) == 1:
            out[place] = torch.rand((), generator=generator, dtype=torch.float64)
        else:
            chosen = moving[row].cpu()
            count = int(chosen.sum())
            out[place, chosen] = torch.rand(count, generator=generator, dtype=torch.float64)
    return out.to(metric.rows.device)


def _moving(moving: Tensor, rows: Tensor, metric: Pullback) -> Tensor:
    """One where the state may move, laid out as the metric's vectors are."""
    own = pick(moving, rows)
    if metric.rows.dim() == 4:
        return own[..., None].to(metric.rows)
    width = metric.rows.shape[-1] // own.shape[1]
    return own[..., None].expand(-1, -1, width).flatten(1).to(metric.rows)


def _unit(v: Tensor) -> Tensor:
    size = v.norm(dim=-1, keepdim=True)
    return torch.where(size > 0, v / size.clamp(min=1e-300), 0.0)
