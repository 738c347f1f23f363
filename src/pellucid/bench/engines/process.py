"""Processes of this machine, each with its own models and one thread."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import Connection, wait
from typing import Any, cast

from pellucid._errors import StudyError, explain_error
from pellucid.bench.units import Outcome, Task, Unit
from pellucid.bench.worker import Worker

_DEATHS = 5  # a worker, one after the other and no unit done between: something else is wrong


class Processes:
    """Does units in spawned processes. One that dies is replaced, and its unit is reported lost."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or os.cpu_count() or 1

    def run(self, units: Iterator[Unit], task: Task) -> Iterator[Outcome]:
        busy: dict[Connection, _Member] = {}
        hired: list[_Member] = []
        deaths = 0
        try:
            for unit in islice(units, self.workers):
                hired.append(_Member.hired(task))
                hired[-1].give(unit, busy)
            while busy:
                for connection in wait(list(busy)):
                    member = busy.pop(cast(Connection, connection))
                    outcome = member.answer()
                    deaths = deaths + 1 if outcome.lost else 0
                    if deaths > _DEATHS * self.workers:
                        raise _no_worker_lives(outcome.lost)
                    following = next(units, None)
                    if following is not None:  # before the outcome is written, which takes time
                        if outcome.lost:
                            hired.remove(member)
                            member = _Member.hired(task)
                            hired.append(member)
                        member.give(following, busy)
                    yield outcome
        finally:
            for member in hired:
                member.dismiss()


@dataclass
class _Member:
    """One process, the wire to it, and the unit that it is at."""

    process: Any
    connection: Connection
    unit: Unit | None = None

    @classmethod
    def hired(cls, task: Task) -> _Member:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, task), daemon=True)
        process.start()
        theirs.close()  # so that the wire ends when the process does
        return cls(process, ours)

    def give(self, unit: Unit, busy: dict[Connection, _Member]) -> None:
        self.unit = unit
        busy[self.connection] = self
        with suppress(OSError):  # it is dead already, which the answer will tell
            self.connection.send(unit)

    def answer(self) -> Outcome:
        """What came of the unit; a wire that ends says that the process died."""
        assert self.unit is not None
        try:
            outcome: Outcome = self.connection.recv()
        except (EOFError, OSError):
            self.connection.close()
            self.process.join()
            how = f"its worker died (exit code {self.process.exitcode})"
            return Outcome(self.unit, lost=how)
        return outcome

    def dismiss(self) -> None:
        """End the process at once: it holds nothing that is not held elsewhere."""
        self.connection.close()
        self.process.kill()
        self.process.join()


def _serve(connection: Connection, task: Task) -> None:
    """What a worker process does until the wire ends."""
    for number in (signal.SIGINT, signal.SIGTERM):  # the parent decides when to stop
        signal.signal(number, signal.SIG_IGN)
    _use_one_thread()
    worker = Worker(task)
    try:
        while True:
            connection.send(worker.do(connection.recv()))
    except (EOFError, OSError):
        return


def _use_one_thread() -> None:
    """As many workers as cores leave each of them one; this process is ours alone."""
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    if "torch" in sys.modules:  # the caller's own program imports it at its top
        sys.modules["torch"].set_num_threads(1)


def _no_worker_lives(how: str) -> StudyError:
    return StudyError(
        explain_error(
            "every worker dies before it has done anything",
            got=f"{how}, again and again",
            expected="processes that can be started here, with memory for the models",
            instead="fewer of them (--workers 1), or --engine serial, which shows the error",
        )
    )
