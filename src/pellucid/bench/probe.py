"""What a study will cost, from a small part of everything in it."""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from dataclasses import dataclass

from pellucid.bench.tasks.explaining import Explaining
from pellucid.bench.tasks.walking import Walking
from pellucid.bench.units import Result, Unit


@dataclass(frozen=True)
class Estimate:
    """The units of one model, data set and method, and what they would take here, one by one."""

    labels: tuple[str, ...]
    units: int
    samples: int
    forwards: int
    seconds: float


def estimates(study: Explaining | Walking) -> list[Estimate]:
    """Do a small part of every combination, and multiply. Nothing is written."""
    groups: dict[tuple[str, ...], list[Unit]] = defaultdict(list)
    for unit in study.units():
        groups[tuple(unit.labels.values())].append(unit)
    do = study.open()
    found: list[Estimate] = []
    models: set[str] = set()
    for labels, units in groups.items():
        part = study.probe(units[0])[0]
        if part.work["model"] not in models:  # which loads it, and warms it up
            models.add(part.work["model"])
            do(part)
        began = time.perf_counter()
        result = do(part)
        seconds = time.perf_counter() - began
        times = sum(study.probe(unit)[1] for unit in units)
        samples = sum(unit.work["count"] for unit in units)
        forwards = round(_forwards(result) * times)
        found.append(Estimate(labels, len(units), samples, forwards, seconds * times))
    return found


def peak_memory() -> float | None:
    """GiB that this process has held at most, models included; None where it is not told."""
    try:
        import resource
    except ImportError:  # not on Windows
        return None
    unit = 1 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30


def _forwards(result: Result) -> int:
    """Of all rows, which are of one sample."""
    forwards = sum(int(row.detail.get("evaluations", 0)) for row in result.rows)
    return forwards + int(result.rows[0].detail.get("explained_in", 0))
