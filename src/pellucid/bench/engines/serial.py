"""The default: one unit after the other, here."""

from __future__ import annotations

from collections.abc import Iterator

from pellucid.bench.units import Outcome, Task, Unit
from pellucid.bench.worker import Worker


class Serial:
    """Does the units in this process, in their order."""

    def run(self, units: Iterator[Unit], task: Task) -> Iterator[Outcome]:
        worker = Worker(task)
        for unit in units:
            yield worker.do(unit)
