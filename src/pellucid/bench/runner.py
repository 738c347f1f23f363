"""The loop: units that are to be done go to an engine, and what comes of them to the store."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path

from pellucid.bench.engines import Engine
from pellucid.bench.engines.serial import Serial
from pellucid.bench.shard import WHOLE, Shard
from pellucid.bench.stop import Stop, stopping
from pellucid.bench.store import Store
from pellucid.bench.units import Task, Unit
from pellucid.bench.watch import Watch, watching

_LOSSES = 5  # workers that a unit may lose in one run before it is put aside


@dataclass(frozen=True)
class Summary:
    """How a run ended: what this start did, and how the study stands."""

    done: int
    failed: int
    lost: int  # workers
    seconds: float
    stopped: bool  # before all was tried
    states: dict[str, int]  # of all units of the folder


def run_task(
    task: Task,
    folder: Path,
    *,
    engine: Engine | None = None,
    shard: Shard = WHOLE,
    attempts: int = 2,
    progress: bool | None = None,
) -> Summary:
    """Do all units of a task that are not done, and keep each as soon as it is.

    A unit that raises is tried up to `attempts` times over all starts together, always after the
    others. One that loses its worker waits as before, and is put aside after the fifth loss, since
    what kills every worker may be the unit itself.
    """
    with Store.writing(shard.folder(folder)) as store, stopping() as stop:
        store.prepare(task.about(), task.units(), shard)
        with watching(store.folder, store.count_pending(attempts), progress) as watch:
            watch.tell("started", **store.counts())
            _rounds(task, store, engine or Serial(), attempts, stop, watch)
            summary = Summary(
                watch.done, watch.failed, watch.lost, watch.elapsed, stop.asked, store.counts()
            )
            watch.tell("ended", **asdict(summary))
    return summary


def _rounds(
    task: Task, store: Store, engine: Engine, attempts: int, stop: Stop, watch: Watch
) -> None:
    """Give everything that waits to the engine, and again what came to nothing.

    A second round is for what failed when the engine had been told that there is nothing more.
    """
    losses: Counter[str] = Counter()
    again: deque[Unit] = deque()
    tried = -1
    while tried and not stop.asked:
        tried = 0
        again.clear()
        waiting = (unit for unit in store.pending(attempts) if losses[unit.key] < _LOSSES)
        units = stop.until(chain(waiting, _drained(again)))
        for tried, outcome in enumerate(engine.run(units, task), 1):  # noqa: B007
            unit = outcome.unit
            if outcome.lost:
                losses[unit.key] += 1
            if not outcome.lost or losses[unit.key] == _LOSSES:
                store.keep(outcome)
            if outcome.result is None and losses[unit.key] < _LOSSES:
                again.extend([unit] * store.is_pending(unit.key, attempts))
            watch.saw(outcome)


def _drained(units: deque[Unit]) -> Iterator[Unit]:
    while units:
        yield units.popleft()
