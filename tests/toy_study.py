"""A study that needs no model: its numbers are known, and it fails and dies as it is told."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pellucid.bench.units import Result, Row, Unit, key_of


@dataclass(frozen=True)
class Toy:
    """Unit n says n squared of two samples; every fifth has an array.

    `fails` and `kills` are how often a unit raises, or kills its worker, before it is done (-1:
    always); what has happened is counted by files in `marks`, so that it outlives the process.
    """

    size: int = 12
    seconds: float = 0.0
    fails: tuple[tuple[int, int], ...] = ()
    kills: tuple[tuple[int, int], ...] = ()
    marks: str = ""
    opens: bool = True
    seed: int = 0

    def units(self):
        for n in range(self.size):
            yield Unit(key_of({"n": n, "seed": self.seed}), {"method": f"m{n % 3}"}, {"n": n})

    def about(self):
        return {"kind": "toy", "measures": {"square": {"better": "higher"}}}

    def open(self):
        if not self.opens:
            raise OSError("there is no such model")
        return self._do

    def _do(self, unit):
        n = unit.work["n"]
        if self._happens("fail", n, dict(self.fails)):
            raise ValueError(f"unit {n} does not want to")
        if self._happens("kill", n, dict(self.kills)):
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(self.seconds)
        if self.marks:
            (Path(self.marks) / f"done-{n}-{os.getpid()}-{time.monotonic_ns()}").touch()
        rows = [Row(f"s{n}-{i}", "square", float(n * n + i), detail={"n": n}) for i in (0, 1)]
        maps = {"map": np.full((4, 4), n, dtype=np.float32)} if n % 5 == 0 else {}
        return Result(rows, maps)

    def _happens(self, what, n, often):
        if n not in often:
            return False
        happened = len(list(Path(self.marks).glob(f"{what}-{n}-*")))
        if often[n] >= 0 and happened >= often[n]:
            return False
        (Path(self.marks) / f"{what}-{n}-{time.monotonic_ns()}").touch()
        return True


def found(folder):
    """All that a store holds, without times: by key, the rows and the arrays."""
    from pellucid.bench.store import Store

    with Store.reading(Path(folder)) as store:
        return {
            record.key: (
                record.rows,
                {name: array.tolist() for name, array in store.maps(record).items()},
            )
            for record in store.records()
        }
