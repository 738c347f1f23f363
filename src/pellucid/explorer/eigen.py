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
from pellucid.explorer.state import State, draw
from pellucid.geometry.outputs import Coordinates
from pellucid.geometry.pullback import Pullback

_ROUNDING = 1e-18  # of the largest eigenvalue: no more than rounding
Field = Callable[[Pullback, Tensor], Tensor]
Index = Literal["uniform", "max", "weighted"]
Sign = Literal["persist", "random", "leave", "align"]


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
class NonDecreasing:
    """A direction of the kernel and one of the range that the predicted class gains by.

    v = P0 z + beta w, with w uniform over the range and turned so that the class's output does not
    fall along it. So a walk leaves its class, to first order into where the class is no less
    predicted. `growth` is beta; None draws it, uniform from 0 to 1.
    """

    reference: Reference
    moving: Tensor
    coordinates: Coordinates
    classes: Tensor  # b
    growth: float | None = None

    def field(self, metric: Pullback, state: State, rows: Tensor) -> Field:
        shape = (*metric.rows.shape[:-2], metric.rows.shape[-1])
        ambient = self.reference(state, rows).view(shape)
        noise = draw(state, rows, self.moving).view(shape)
        gradient = self.coordinates.take(rows).class_gradient(
            pick(state.y, rows), pick(self.classes, rows)
        )
        gain = _along(gradient, state, rows, noise - metric.null_project(noise))
        noise = noise * torch.where(gain < 0, -1.0, 1.0)[..., None]
        beta = _uniform(state, rows, metric, self.moving)
        if self.growth is not None:
            beta = torch.full_like(beta, self.growth)

        def field(other: Pullback, at: Tensor) -> Tensor:
            drawn = pick(noise, at)
            growing = _unit(drawn - other.null_project(drawn))
            staying = _unit(other.null_project(pick(ambient, at)))
            return _unit(staying + pick(beta, at)[..., None] * growing)

        return field


@dataclass(frozen=True, eq=False)
class NullEigenvector:
    """The same with a solver's own basis of the kernel, by diagonalising all of g: small inputs.

    Inside the kernel that basis is decided by rounding, so an input of a batch may walk otherwise
    than alone. `released` draws as the authors' code does: the rounded index gives the ends half
    the weight, and one past the last null vector is the first that is not null. With `degrowth` it
    also does what that code's option of this name does: see `_degrown`.
    """

    moving: Tensor
    released: bool = False
    degrowth: Coordinates | None = None

    def field(self, metric: Pullback, state: State, rows: Tensor) -> Field:
        free = _moving(self.moving, rows, metric)
        walls = (1 - free) * (1 + 2 * metric.largest)[..., None]  # what is held stands last
        _, vectors = torch.linalg.eigh(metric.as_matrix() + walls.diag_embed())  # rising
        size = free.expand(vectors.shape[:-1]).sum(dim=-1)
        null, factor = size - metric.rank, torch.ones_like(size)  # they stand first
        if self.degrowth is not None:
            declared, factor = self._degrown(self.degrowth, metric, state, rows)
            null = null + declared
        drawn = _uniform(state, rows, metric, self.moving) * null
        index = drawn.round() if self.released else drawn.floor()
        index = index.minimum(size - 1).clamp(min=0).long()[..., None, None]
        found = vectors.gather(-1, index.expand(*vectors.shape[:-1], 1))[..., 0]
        some = ((null > 0) | self.released) * factor
        moved = found * free * some[..., None]
        return lambda other, at: pick(moved, at)

    def _degrown(
        self, coordinates: Coordinates, metric: Pullback, state: State, rows: Tensor
    ) -> tuple[Tensor, Tensor]:
        """How many eigenvectors are declared null because the class gains, and longer steps by.

        Meant to permit whatever does not make the class less predicted. But an eigenvector has no
        sign, so whether its class gains is a matter of chance; and the zeros stand where the
        eigenvalues stood, so the index, which counts from below, finds other vectors than those
        that were declared null. What remains is that there are more of them to draw from, and that
        the step is divided by the root of the largest eigenvalue that is left: longer, and without
        end where none is, for which there is no step here.
        """
        own, y = coordinates.take(rows), pick(state.y, rows)
        gradient = own.class_gradient(y, pick(state.logits, rows).argmax(dim=-1))
        slope = torch.einsum("br,brtp->btp", gradient, pick(state.memory["jacobian"], rows))
        gain = (metric.vectors @ slope.view(*metric.rank.shape, -1)[..., None])[..., 0]
        there = metric.values > _ROUNDING * metric.largest[..., None]
        left = torch.where(there & (gain < 0), metric.values, 0.0).amax(dim=-1)
        longer = (metric.largest / left.clamp(min=1e-300)).sqrt()
        declared = (metric.nonzero & (gain >= 0)).sum(dim=-1)
        return declared, torch.where(left > 0, longer, 0.0)


@dataclass(frozen=True, eq=False)
class Range:
    """Line 6 of Algorithm 2: an eigenvector of a nonzero eigenvalue, with a rule for its sign.

    An eigenvector has no sign of its own. "persist" goes on as the last step did; "random" tosses a
    coin; "leave" turns by the lead of a class: to it, or away from it with a `sense` of -1. Of
    blocks, "align" turns all so that the tokens' moves of the output add up, and none cancel. Where
    no eigenvalue counts as nonzero nothing moves, but in the authors' code (`released`) the largest
    is taken all the same.
    """

    moving: Tensor
    coordinates: Coordinates
    classes: Tensor  # b
    sense: float
    index: Index = "uniform"
    sign: Sign = "persist"
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
        if self.sign == "align":
            return self._aligned(metric, vector, state, rows, coin)
        if self.sign == "persist":
            last = pick(state.heading, rows).view_as(vector)
            score = (last * vector).sum(dim=-1)
        else:
            score = self._margin(state, rows, vector)
        return torch.where(score == 0, coin, score.sign())

    def _aligned(
        self, metric: Pullback, vector: Tensor, state: State, rows: Tensor, coin: Tensor
    ) -> Tensor:
        """Signs with which all B_t w_t lie on one side of the common direction (b t).

        The direction is the top left singular vector of [B_1 ... B_T], turned the way that the last
        step moved the output; at the first step a coin decides, one for all tokens.
        """
        blocks = metric.rows  # b t q d
        common = torch.linalg.eigh(torch.einsum("btqd,btpd->bqp", blocks, blocks))[1][..., -1]
        last = torch.einsum("btqd,btd->bq", blocks, pick(state.heading, rows))
        onward = (common * last).sum(dim=1).sign()
        first = pick(self.moving, rows).long().argmax(dim=1, keepdim=True)
        onward = torch.where(onward == 0, coin.gather(1, first)[:, 0], onward)
        score = torch.einsum("bq,btqd,btd->bt", common, blocks, vector) * onward[:, None]
        return torch.where(score == 0, coin, score.sign())

    def _margin(self, state: State, rows: Tensor, vector: Tensor) -> Tensor:
        """How the lead of the class grows along the vector, or falls."""
        own = self.coordinates.take(rows)
        gradient = own.margin_gradient(pick(state.y, rows), pick(self.classes, rows))
        return self.sense * _along(gradient, state, rows, vector)


@dataclass(frozen=True, eq=False)
class Lift:
    """The shortest move that turns the prediction to a class, or away from it: B+ u."""

    coordinates: Coordinates
    classes: Tensor  # b
    sense: float

    def field(self, metric: Pullback, state: State, rows: Tensor) -> Field:
        y = pick(state.y, rows)
        own = self.coordinates.take(rows)
        gradient = self.sense * own.margin_gradient(y, pick(self.classes, rows))
        root = own.root(y)
        u = gradient if root is None else (root @ gradient[..., None])[..., 0]
        spread = u if metric.rows.dim() == 3 else u[:, None, :].expand(*metric.rows.shape[:-1])
        return lambda other, at: _unit(other.lift(pick(spread, at)))


def _along(gradient: Tensor, state: State, rows: Tensor, v: Tensor) -> Tensor:
    """How a function of the coordinates, by its gradient (b r), grows along v (b n, or b t p)."""
    jacobian = pick(state.memory["jacobian"], rows)  # b r t p
    if v.dim() == 2:
        return (gradient * (jacobian.flatten(2) @ v[..., None])[..., 0]).sum(dim=-1)
    return torch.einsum("br,brtp,btp->bt", gradient, jacobian, v)


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
