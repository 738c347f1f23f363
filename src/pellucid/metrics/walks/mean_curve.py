"""Curves of several walks as one: SiMEC as published, Figure 2."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from pellucid._statistics import Summary, summary


class Curve(Protocol):
    """What `measure_walk` returns."""

    @property
    def curve(self) -> Sequence[float]: ...
    @property
    def iterations(self) -> Sequence[int]: ...


@dataclass(frozen=True)
class CurvePoint:
    """The numbers of all walks that have one after so many steps."""

    iteration: int
    over: Summary


def mean_curve(measurements: Iterable[Curve]) -> list[CurvePoint]:
    """The mean over walks at every iteration, with its spread, and how many walks have a number."""
    found: dict[int, list[float]] = {}
    for one in measurements:
        for iteration, value in zip(one.iterations, one.curve, strict=True):
            if not math.isnan(value):
                found.setdefault(iteration, []).append(value)
    told = ((iteration, summary(found[iteration])) for iteration in sorted(found))
    return [CurvePoint(iteration, over) for iteration, over in told if over is not None]
