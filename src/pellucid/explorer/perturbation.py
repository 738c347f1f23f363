"""What the papers compare with: walks that know nothing of the metric.

trial       perturb, look at the label, keep or reverse the direction (the seed paper, section 4)
gradient    along the gradient of the predicted class's probability, with orthogonal noise (the
            published version)
isotropic   a fresh random direction each step: the control
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from pellucid.explorer.level import Level
from pellucid.explorer.regions import Region, clamped
from pellucid.explorer.rows import pick, put
from pellucid.explorer.state import State, Step, draw, norm, scaled, unit

_NOISE = 0.1  # eta of the seed paper, and the size of the published version's noise
_AFRESH = 0.2  # of the time a direction is drawn anew

Heading = Callable[[State, Tensor], Tensor]


@dataclass(eq=False)
class Perturbed:
    """Steps of one length in directions of another rule; the label decides, or nothing does."""

    level: Level
    heading: Heading
    length: Tensor  # b
    region: Region | None

    def begin(self, state: State) -> None:
        """The label of the first point, and of the one before it."""
        label = state.logits.argmax(dim=-1)
        state.memory["labels"] = torch.stack([label, label], dim=1)

    def step(self, state: State, rows: Tensor) -> Step:
        before, y = pick(state.w, rows).clone(), pick(state.y, rows).clone()
        direction = self.heading(state, rows)
        w = before + scaled(unit(direction), pick(self.length, rows))
        more = {}
        if self.region is not None:
            free, w = w, self.region.project(w, rows)
            more["clamped"] = clamped(free, w, pick(self.level.selected, rows))
        w = torch.where(pick(self.level.selected, rows)[..., None], w, before)
        seen = self.level.see(w, rows)
        label = seen.logits.argmax(dim=-1)
        labels = pick(state.memory["labels"], rows)
        for name, value in (("w", w), ("y", seen.y), ("logits", seen.logits)):
            put(getattr(state, name), rows, value)
        put(state.heading, rows, direction)
        put(state.memory["labels"], rows, torch.stack([labels[:, 1], label], dim=1))
        own = self.level.coordinates.take(rows)
        change = (own.psi(seen.y) - own.psi(y)).norm(dim=1)
        return Step(rows, change, more)

    @property
    def also(self) -> tuple[str, ...]:
        """The projection is seen, and what it did to the prediction is not: no pass is spent."""
        return () if self.region is None else ("clamped",)


@dataclass(frozen=True, eq=False)
class Trial:
    """v <- a v + eta e, with e orthogonal to v and a = -1 where the last step changed the label."""

    moving: Tensor

    def __call__(self, state: State, rows: Tensor) -> Tensor:
        v = pick(state.heading, rows)
        labels = pick(state.memory["labels"], rows)
        turn = torch.where(labels[:, 0] == labels[:, 1], 1.0, -1.0).to(v)
        noise, fresh = draw(state, rows, self.moving), draw(state, rows, self.moving)
        again = torch.tensor(
            [float(torch.rand((), generator=state.generators[r])) < _AFRESH for r in rows.tolist()]
        ).to(v.device)
        again |= norm(v) == 0
        going_on = scaled(v, turn) + _NOISE * _orthogonal(noise, v)
        return torch.where(again[:, None, None], fresh, going_on)


@dataclass(frozen=True, eq=False)
class Isotropic:
    """A direction without any preference."""

    moving: Tensor

    def __call__(self, state: State, rows: Tensor) -> Tensor:
        return draw(state, rows, self.moving)


@dataclass(frozen=True, eq=False)
class AlongGradient:
    """The gradient of the class that was predicted at first, up to stay and down to leave."""

    level: Level  # of that class's probability
    moving: Tensor
    sign: float

    def __call__(self, state: State, rows: Tensor) -> Tensor:
        _, jacobian = self.level.linearise(pick(state.w, rows), rows)
        gradient = unit(jacobian[:, 0].double())
        noise = unit(_orthogonal(draw(state, rows, self.moving), gradient))
        return self.sign * gradient + _NOISE * noise


def _orthogonal(noise: Tensor, v: Tensor) -> Tensor:
    """The part of the noise that is orthogonal to v."""
    along = (noise * unit(v)).flatten(1).sum(dim=1)
    return noise - scaled(unit(v), along)
