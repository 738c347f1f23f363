"""Studies: what the runner adds to the work, and what being killed costs."""

from __future__ import annotations

import gc
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from _claims import Claim, timed
from safetensors.numpy import save

from pellucid.bench.engines.process import Processes
from pellucid.bench.engines.serial import Serial
from pellucid.bench.runner import run_task
from pellucid.bench.store import Store
from pellucid.bench.units import Result, Row, Unit, key_of

KILLS = 200
UNITS = 4000


@dataclass(frozen=True)
class Work:
    """Units of a known length, with the rows of eight samples by three metrics."""

    size: int
    seconds: float = 0.0
    busy: bool = False  # whether it computes meanwhile, or sleeps
    arrays: bool = False
    marks: str = ""

    def units(self):
        for n in range(self.size):
            yield Unit(key_of({"n": n}), {"method": f"m{n % 7}"}, {"n": n})

    def about(self):
        return {"columns": ["method"], "measures": {"x": {"better": "higher"}}}

    def open(self):
        return self.do

    def do(self, unit: Unit) -> Result:
        n, clock = unit.work["n"], time.process_time if self.busy else time.perf_counter
        end = clock() + self.seconds
        while clock() < end:
            if not self.busy:
                time.sleep(max(0.0, end - clock()))
        if self.marks:
            Path(self.marks, f"{n}-{time.monotonic_ns()}").touch()
        detail = {"class": "positive", "evaluations": 40}
        rows = [
            Row(f"s{n}-{i}", f"x{m}", n / 7 + i, "", detail) for i in range(8) for m in range(3)
        ]
        maps = {f"scores/{i}": np.full(196, n + i, np.float32) for i in range(8)}
        return Result(rows, maps if self.arrays else {})


def claims() -> list[Claim]:
    return [
        _overhead(),
        _file(),
        *_listing(),
        _memory(),
        _two_workers(),
        *_killed(),
        _workers_killed(),
    ]


def _overhead() -> Claim:
    work, units = Work(100, 0.05), list(Work(100).units())
    return timed(
        "100 units of 50 ms through the runner",
        lambda: _in_new_folder(lambda folder: run_task(work, folder)),
        "the same work in a bare loop",
        lambda: [work.do(unit) for unit in units],
        goal=1.03,
        repeats=5,
    )


def _file() -> Claim:
    """The price of arrays is that of files that are on the disk before they are spoken of."""
    work = Work(100, arrays=True)
    results = [work.do(unit) for unit in work.units()]

    def write(folder: Path) -> None:
        for number, result in enumerate(results):
            with (folder / str(number)).open("wb") as file:
                file.write(save(dict(result.maps)))
                file.flush()
                os.fsync(file.fileno())
            handle = os.open(folder, os.O_RDONLY)
            os.fsync(handle)
            os.close(handle)

    return timed(
        "100 units with eight maps each, and no other work",
        lambda: _in_new_folder(lambda folder: run_task(work, folder)),
        "as many files, written and flushed",
        lambda: _in_new_folder(write),
        goal=1.5,
        repeats=9,
    )


def _listing() -> list[Claim]:
    """Seconds until the first unit of 100,000 can begin."""
    work = Work(100_000)

    def first(folder: Path) -> float:
        began = time.perf_counter()
        with Store.writing(folder) as store:
            store.prepare(work.about(), work.units())
            store.count_pending(2)
            next(store.pending(2))
            return time.perf_counter() - began

    def both(folder: Path) -> list[float]:
        return [first(folder), first(folder)]

    found = _in_new_folder(both)
    what = ("listed for the first time", "found again by a second start")
    return [
        Claim(f"100,000 units {how}", seconds, "allowed", 5.0, "s", 1.0, 0.0)
        for how, seconds in zip(what, found, strict=True)
    ]


class _Weighed(Serial):
    """The serial engine, which looks at the memory of the process on the way."""

    def __init__(self, at: tuple[int, ...]) -> None:
        self.at, self.seen = at, {}

    def run(self, units, task):
        for number, outcome in enumerate(super().run(units, task), 1):
            yield outcome
            if number in self.at:
                gc.collect()
                pages = int(Path("/proc/self/statm").read_text().split()[1])
                self.seen[number] = pages * 4096 / 2**20


def _memory() -> Claim:
    engine = _Weighed((1000, 10_000))
    _in_new_folder(lambda folder: run_task(Work(10_000), folder, engine=engine))
    what = "memory of the process after 10,000 units"
    return Claim(what, engine.seen[10_000], "after 1,000", engine.seen[1000], "MiB", 1.02, 0.0)


def _two_workers() -> Claim:
    work = Work(160, 0.05, busy=True)

    def run(workers: int) -> None:
        _in_new_folder(lambda folder: run_task(work, folder, engine=Processes(workers)))

    return timed(
        "160 computing units by two processes",
        lambda: run(2),
        "by one process",
        lambda: run(1),
        goal=1 / 1.8,
        repeats=3,
    )


_RUN = """
from pathlib import Path
from studies import UNITS, Work
from pellucid.bench.runner import run_task
run_task(Work(UNITS, 0.01, marks={marks!r}), Path({folder!r}))
"""


def _killed() -> list[Claim]:
    """A run that is killed at random moments, continued each time, and at last left to end."""
    chance = random.Random(0)

    def run(base: Path) -> tuple[int, int, int]:
        marks, folder = base / "marks", base / "run"
        marks.mkdir()
        program = _RUN.format(marks=str(marks), folder=str(folder))
        for _ in range(KILLS):
            path = ":".join(part for part in (str(Path(__file__).parent), *sys.path) if part)
            command, environment = [sys.executable, "-c", program], {"PYTHONPATH": path}
            before = len(list(marks.iterdir()))
            with subprocess.Popen(command, env=environment) as process:
                if chance.random() < 0.9:  # the others are killed while they start
                    while len(list(marks.iterdir())) == before and process.poll() is None:
                        time.sleep(0.005)
                time.sleep(chance.uniform(0.0, 0.1))
                process.kill()
        begun = len(list(marks.iterdir()))
        run_task(Work(UNITS, marks=str(marks)), folder)
        run_task(Work(UNITS), base / "whole")
        wrong = _differing(_found(folder), _found(base / "whole"))
        return begun, wrong, len(list(marks.iterdir())) - UNITS

    begun, wrong, repeated = _in_new_folder(run)
    what = f"units lost, doubled or changed by {KILLS} kills of a run"
    return [
        Claim(what, wrong, f"units, {begun} of them done between kills", UNITS, "", 0, 0),
        Claim("units done again", repeated, "kills", KILLS, "", 1.0, 0),
    ]


def _workers_killed() -> Claim:
    """Two processes, one of which is killed every so often, once it has done something."""
    chance, ended = random.Random(1), threading.Event()

    def kill(marks: Path) -> None:
        before = 0
        while not ended.wait(chance.uniform(0.2, 0.8)):
            done = len(list(marks.iterdir()))
            if done > before:
                before = done
                chance.choice(multiprocessing.active_children()).kill()

    def run(base: Path) -> tuple[int, int]:
        marks = base / "marks"
        marks.mkdir()
        killer = threading.Thread(target=kill, args=(marks,))
        killer.start()
        work = Work(1000, 0.02, marks=str(marks))
        summary = run_task(work, base / "run", engine=Processes(2))
        ended.set()
        killer.join()
        run_task(Work(1000), base / "whole")
        return summary.lost, _differing(_found(base / "run"), _found(base / "whole"))

    lost, wrong = _in_new_folder(run)
    what = f"units lost, doubled or changed by {lost} killed workers"
    return Claim(what, wrong, "units", 1000, "", 0, 0)


def _found(folder: Path) -> dict[str, str]:
    with Store.reading(folder) as store:
        return {record.key: record.seal + record.maps_digest for record in store.records()}


def _differing(first: dict[str, str], second: dict[str, str]) -> int:
    return len(set(first.items()) ^ set(second.items()))


def _in_new_folder(work):
    with tempfile.TemporaryDirectory() as folder:
        return work(Path(folder))


if __name__ == "__main__":
    from run import row

    for claim in claims():
        print(row(claim), flush=True)
