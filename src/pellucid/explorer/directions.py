"""Where a step heads: the ambient vector that is projected on the kernel, or a move in the range.

Inside a class (`Reference`): all null eigenvectors share one eigenvalue, so the basis that a solver
returns inside the kernel is arbitrary; a Gaussian vector projected on the kernel is the same choice
without a basis. Out of it (`Pick`): an eigenvector of a nonzero eigenvalue, by a rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from torch import Tensor

from pellucid.explorer.rows import pick
from pellucid.explorer.state import State, draw, norm, scaled, unit

Staying = Literal["persistent", "haar", "fixed", "away", "toward"]


class Reference(Protocol):
    """An ambient vector for each of these inputs (b t p), drawn once a step."""

    def __call__(self, state: State, rows: Tensor) -> Tensor: ...


@dataclass(frozen=True, eq=False)
class Persistent:
    """Go on as before, mixed with fresh noise where `persistence` is less than one.

    The walk begins with a heading that was drawn at random.
    """

    moving: Tensor  # b t: the tokens that move
    persistence: float = 1.0

    def __call__(self, state: State, rows: Tensor) -> Tensor:
        heading = unit(pick(state.heading, rows))
        if self.persistence >= 1:
            return heading
        noise = unit(draw(state, rows, self.moving))
        mixed: Tensor = self.persistence * heading + (1 - self.persistence**2) ** 0.5 * noise
        return mixed


@dataclass(frozen=True, eq=False)
class Haar:
    """A fresh direction each step, uniform over the kernel: the papers' random null eigenvector."""

    moving: Tensor

    def __call__(self, state: State, rows: Tensor) -> Tensor:
        return unit(draw(state, rows, self.moving))


@dataclass(frozen=True, eq=False)
class Fixed:
    """One ambient vector for the whole walk: a smooth field, as solvers of high order need."""

    moving: Tensor

    def __call__(self, state: State, rows: Tensor) -> Tensor:
        if "reference" not in state.memory:
            everyone = state.walking
            state.memory["reference"] = unit(draw(state, everyone, self.moving))
        return pick(state.memory["reference"], rows)


@dataclass(frozen=True, eq=False)
class Away:
    """Away from where the walk began; the first step is random."""

    moving: Tensor
    origin: Tensor  # b t p

    def __call__(self, state: State, rows: Tensor) -> Tensor:
        offset = pick(state.w, rows) - pick(self.origin, rows)
        still = norm(offset) == 0
        if still.any():
            offset = offset + scaled(draw(state, rows, self.moving), still.to(offset))
        return unit(offset)


@dataclass(frozen=True, eq=False)
class Toward:
    """Towards another state, as near as the class comes to it."""

    moving: Tensor
    point: Tensor  # b t p

    def __call__(self, state: State, rows: Tensor) -> Tensor:
        gap = pick(self.point, rows) - pick(state.w, rows)
        return unit(gap * pick(self.moving, rows)[..., None])
