"""One step along a field of directions. The order is how fast a step's drift falls with its length.

A field that holds one ambient vector and projects it on the kernel is smooth where the rank is
constant; "the l-th null eigenvector" is not, and no solver helps it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

Velocity = Callable[[Tensor], Tensor]


class Solver(Protocol):
    """`first` is the velocity at `x`, which is known already; `h` broadcasts to it."""

    @property
    def order(self) -> int: ...

    def step(self, velocity: Velocity, x: Tensor, first: Tensor, h: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class Euler:
    """The papers' own."""

    order: int = 1

    def step(self, velocity: Velocity, x: Tensor, first: Tensor, h: Tensor) -> Tensor:
        return x + h * first


@dataclass(frozen=True)
class Midpoint:
    """The velocity half-way."""

    order: int = 2

    def step(self, velocity: Velocity, x: Tensor, first: Tensor, h: Tensor) -> Tensor:
        return x + h * velocity(x + h / 2 * first)


@dataclass(frozen=True)
class Heun:
    """The mean of the velocities at both ends."""

    order: int = 2

    def step(self, velocity: Velocity, x: Tensor, first: Tensor, h: Tensor) -> Tensor:
        return x + h / 2 * (first + velocity(x + h * first))


@dataclass(frozen=True)
class RungeKutta:
    """The classical method of order four."""

    order: int = 4

    def step(self, velocity: Velocity, x: Tensor, first: Tensor, h: Tensor) -> Tensor:
        second = velocity(x + h / 2 * first)
        third = velocity(x + h / 2 * second)
        fourth = velocity(x + h * third)
        return x + h / 6 * (first + 2 * second + 2 * third + fourth)


SOLVERS: dict[str, Solver] = {
    "euler": Euler(),
    "midpoint": Midpoint(),
    "heun": Heun(),
    "rk4": RungeKutta(),
}
