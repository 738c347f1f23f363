"""What a study will cost, from one sample of everything in it."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, replace
from itertools import groupby

from pellucid.bench.tasks.explaining import Explaining
from pellucid.bench.tasks.measured import Desk
from pellucid.bench.units import Result, Unit


@dataclass(frozen=True)
class Estimate:
    """The units of one model, data set and method, and what they would take here, one by one."""

    labels: tuple[str, ...]
    units: int
    samples: int
    forwards: int
    seconds: float


def estimates(study: Explaining) -> list[Estimate]:
    """Do one sample of every method on every data set, and multiply. Nothing is written."""
    desk = Desk(study)
    found: list[Estimate] = []
    models: set[str] = set()
    for _, group in groupby(study.units(), key=lambda unit: tuple(unit.labels.values())):
        units = list(group)
        first = replace(units[0], work={**units[0].work, "count": 1})
        if first.work["model"] not in models:  # which loads it, and warms it up
            models.add(first.work["model"])
            desk.do(first)
        began = time.perf_counter()
        result = desk.do(first)
        seconds = time.perf_counter() - began
        found.append(_estimate(units, result, seconds))
    return found


def peak_memory() -> float | None:
    """GiB that this process has held at most, models included; None where it is not told."""
    try:
        import resource
    except ImportError:  # not on Windows
        return None
    unit = 1 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30


def _estimate(units: list[Unit], result: Result, seconds: float) -> Estimate:
    samples = sum(unit.work["count"] for unit in units)
    forwards = sum(row.detail.get("evaluations", 0) for row in result.rows)
    forwards += result.rows[0].detail.get("explained_in", 0)
    labels = tuple(units[0].labels.values())
    return Estimate(labels, len(units), samples, forwards * samples, seconds * samples)
