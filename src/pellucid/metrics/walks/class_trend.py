"""The class of what walks suggest, over their iterations: the curves of SiMEC's Figure 4.

All inputs that several walks suggest after so many steps are divided into Y_c (another class than
their original's) and Y_s; a curve is the mean probability of the original's class over one of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from pellucid._arguments import integer
from pellucid._decoded import Decoded, Prompt
from pellucid._errors import ArgumentError, explain_error
from pellucid._statistics import bootstrap_interval
from pellucid._trajectory import Trajectory
from pellucid.metrics.walks._evidence import Evidence, Suggested

Drawn = Literal["input", "walk"]


@dataclass(frozen=True)
class Band:
    """The mean over one set with its interval; NaN where the set is empty."""

    count: int
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class TrendPoint:
    """What is suggested after so many steps."""

    iteration: int
    changed: Band  # Y_c
    stayed: Band  # Y_s
    flip_rate: float  # |Y_c| / |Y|


def class_trend(
    walks: Sequence[Trajectory],
    *,
    decoded: Sequence[Decoded] | None = None,
    prompts: Sequence[Sequence[Prompt]] | None = None,
    resamples: int = 1000,
    level: float = 0.95,
    draw: Drawn = "input",
    seed: int = 0,
) -> list[TrendPoint]:
    """The curves of walks with one goal: their alternative prompts, or their decoded points.

    Main arguments: `walks` and, one for each, `prompts` or `decoded`. The bands are percentile
    intervals of the bootstrap. `draw="input"` draws single suggested inputs, as the paper does;
    those of one walk resemble each other, and `draw="walk"` draws all of a walk together.

    Other arguments: how many `resamples`, the `level` of the interval, and the `seed` of the draws.
    """
    resamples, seed = integer("resamples", resamples, 1, 1000), integer("seed", seed, 0)
    _check(len(walks), decoded, prompts, level)
    suggested = [
        Evidence(
            walk,
            None if decoded is None else decoded[i],
            None if prompts is None else prompts[i],
        ).suggested
        for i, walk in enumerate(walks)
    ]
    generator = torch.Generator().manual_seed(seed)

    def band(chosen: list[list[Suggested]]) -> Band:
        values = [[one.probability for one in own] for own in chosen if own]
        groups = values if draw == "walk" else [[value] for own in values for value in own]
        count = sum(map(len, groups))
        if not count:
            return Band(0, math.nan, math.nan, math.nan)
        sums = torch.tensor([math.fsum(own) for own in groups], dtype=torch.float64)
        sizes = torch.tensor([len(own) for own in groups])
        low, high = bootstrap_interval(
            sums, sizes, resamples=resamples, level=level, generator=generator
        )
        return Band(count, float(sums.sum()) / count, low, high)

    def point(iteration: int) -> TrendPoint:
        then = [[one for one in own if one.iteration == iteration] for own in suggested]
        changed, stayed = (
            band([[one for one in own if one.changed is side] for own in then])
            for side in (True, False)
        )
        total = changed.count + stayed.count
        return TrendPoint(iteration, changed, stayed, changed.count / total)

    return [point(k) for k in sorted({one.iteration for own in suggested for one in own})]


def _check(
    count: int,
    decoded: Sequence[Decoded] | None,
    prompts: Sequence[Sequence[Prompt]] | None,
    level: float,
) -> None:
    beside = decoded if prompts is None else prompts
    if beside is None or len(beside) != count:
        raise ArgumentError(
            explain_error(
                "a trend is of the inputs that walks suggest",
                got=f"{count} walks and {'nothing' if beside is None else len(beside)} beside them",
                expected="prompts= or decoded=, one for each walk",
                instead="prompts=[walk.alternatives(...) for walk in walks]",
            )
        )
    if not 0 < level < 1:
        raise ArgumentError(
            explain_error(
                "an interval holds a share of the means",
                got=f"level={level!r}",
                expected="a number between 0 and 1",
                instead="level=0.95",
            )
        )
