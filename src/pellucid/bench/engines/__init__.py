"""Where units are done: here, in processes of this machine, or on a Ray cluster.

An engine takes units from an iterator one by one, each when a worker is free for it, does each once
and yields how it ended. Deciding what is done again is the runner's part, so an engine is short.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from pellucid._errors import ArgumentError, explain_error, unknown_name
from pellucid.bench.units import Outcome, Task, Unit


class Engine(Protocol):
    """Something that does units of a task, in any order and any number at a time."""

    def run(self, units: Iterator[Unit], task: Task) -> Iterator[Outcome]:
        """One outcome for every unit that was taken."""


def _serial(workers: int | None, gpus: float) -> Engine:
    from pellucid.bench.engines.serial import Serial

    if workers not in (None, 1):
        raise ArgumentError(
            explain_error(
                "the engine 'serial' is one worker",
                got=f"--workers {workers}",
                expected="no --workers, or an engine that has some",
                instead=f"--engine process --workers {workers}",
            )
        )
    return Serial()


def _process(workers: int | None, gpus: float) -> Engine:
    from pellucid.bench.engines.process import Processes

    return Processes(workers)


def _ray(workers: int | None, gpus: float) -> Engine:
    from pellucid.bench.engines.ray import Ray

    return Ray(workers, gpus=gpus)


ENGINES: dict[str, Callable[[int | None, float], Engine]] = {
    "serial": _serial,
    "process": _process,
    "ray": _ray,
}


def engine_named(name: str, workers: int | None = None, gpus: float = 0.0) -> Engine:
    """The engine of this name, with so many workers (None: as many as there are places)."""
    if name not in ENGINES:
        raise ArgumentError(unknown_name("engine", name, ENGINES, write="--engine {}"))
    if gpus and name != "ray":
        raise ArgumentError(
            explain_error(
                f"the engine {name!r} shares out no GPUs",
                got=f"--gpus {gpus}",
                expected='no --gpus: a model runs where its entry says (device = "cuda")',
                instead=f"--engine ray --gpus {gpus}",
            )
        )
    return ENGINES[name](workers, gpus)
