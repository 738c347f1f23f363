"""A claim is a ratio of two things measured side by side in one process, with a goal."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Claim:
    """What was measured: our number over the other one, and whether the goal was reached."""

    what: str
    ours: float
    against: str
    other: float
    unit: str
    goal: float  # the largest ratio that is good enough
    spread: float  # interquartile range of the ratio; 0 where it was counted, not timed

    @property
    def ratio(self) -> float:
        return self.ours / self.other

    @property
    def reached(self) -> bool:
        return self.ratio <= self.goal


def timed(
    what: str,
    ours: Callable[[], object],
    against: str,
    other: Callable[[], object],
    goal: float,
    repeats: int = 30,
) -> Claim:
    """Run both in turn, so that what else the machine does hits both; medians and their ratio."""
    ours(), other()  # warm up
    pairs = [(_seconds(ours), _seconds(other)) for _ in range(repeats)]
    ratios = [a / b for a, b in pairs]
    low, _, high = statistics.quantiles(ratios, n=4)
    first = statistics.median(a for a, _ in pairs)
    second = statistics.median(b for _, b in pairs)
    return Claim(what, 1e3 * first, against, 1e3 * second, "ms", goal, high - low)


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
