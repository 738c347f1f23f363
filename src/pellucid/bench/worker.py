"""What does the units, wherever it runs: it opens the task once, and never raises."""

from __future__ import annotations

import time
import traceback

from pellucid.bench.units import Outcome, Task, Unit, Work, canonical


class Worker:
    """One worker of a study. A failed unit is a result of the study too: a row with its error."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._work: Work | None = None

    def do(self, unit: Unit) -> Outcome:
        """Do the unit; whatever its work raises becomes an outcome."""
        began = time.perf_counter()
        try:
            if self._work is None:
                self._work = self._task.open()
            result = self._work(unit)
            canonical([[row.value, row.detail] for row in result.rows])  # refuses NaN and infinity
        except Exception as error:  # noqa: BLE001  # the study goes on and keeps the error
            line = f"{type(error).__name__}: {error}".strip()
            trace = "".join(traceback.format_exception(error))
            return Outcome(unit, error=line, trace=trace, seconds=time.perf_counter() - began)
        return Outcome(unit, result, seconds=time.perf_counter() - began)
