"""Actors of a Ray cluster, each of which keeps its models loaded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pellucid._errors import ArgumentError, StudyError, explain_error
from pellucid.bench.units import Outcome, Task, Unit
from pellucid.bench.worker import Worker

_DEATHS = 5  # an actor, one after the other and no unit done between: something else is wrong
_PATIENCE = 600.0  # seconds without any actor, as while a cluster grows


@dataclass(frozen=True)
class Ray:
    """Does units in Ray actors; a lost one, with its node or alone, is replaced.

    The cluster is the one that RAY_ADDRESS names, or this machine. `gpus` is the part of a GPU that
    an actor takes: with 0.25, four of them share one. Nothing is left running that was not.
    """

    workers: int | None = None
    cpus: float = 1.0
    gpus: float = 0.0

    def run(self, units: Iterator[Unit], task: Task) -> Iterator[Outcome]:
        with _connected() as ray:
            crew = _Crew(ray, self, task)
            try:
                yield from crew.work(units, self.workers or self._places(ray))
            finally:
                crew.dismiss()

    def _places(self, ray: Any) -> int:
        """How many actors the cluster has room for."""
        found = ray.cluster_resources()
        rooms = [found.get("CPU", 1.0) / self.cpus] if self.cpus else []
        rooms += [found.get("GPU", 0.0) / self.gpus] if self.gpus else []
        return max(1, int(min(rooms, default=1.0)))


class _Crew:
    """The actors: each is coming up, at work on a unit, or dead."""

    def __init__(self, ray: Any, settings: Ray, task: Task) -> None:
        self._ray = ray
        # A dead actor is ours to replace and its unit ours to give again, so Ray retries neither.
        self._actor = ray.remote(
            num_cpus=settings.cpus, num_gpus=settings.gpus, max_restarts=0, max_task_retries=0
        )(Worker)
        self._task = ray.put(task)
        self._coming: dict[Any, Any] = {}  # the promise that it is up -> the actor
        self._busy: dict[Any, tuple[Any, Unit]] = {}  # the promise of an outcome -> who, at what

    def work(self, units: Iterator[Unit], workers: int) -> Iterator[Outcome]:
        """Give units to actors that are up, each the next when it has done one."""
        for _ in range(workers):
            self._hire()
        more, deaths = True, 0
        while self._busy or (more and self._coming):
            for promise in self._ready(more):
                actor, outcome = self._answer(promise)
                unit = next(units, None) if more and actor is not None else None
                if actor is None:
                    deaths += 1
                    if more:
                        self._hire()
                elif unit is not None:
                    self._busy[actor.do.remote(unit)] = actor, unit
                else:
                    more = False
                    self._ray.kill(actor)
                if outcome is not None:
                    deaths = deaths if outcome.lost else 0
                    yield outcome
                if deaths > _DEATHS * workers:
                    raise _no_actor_lives(f"{deaths} died, one after the other")

    def dismiss(self) -> None:
        """Let go of all of them."""
        for actor in [*self._coming.values(), *(actor for actor, _ in self._busy.values())]:
            self._ray.kill(actor)

    def _hire(self) -> None:
        actor = self._actor.remote(self._task)
        self._coming[actor.__ray_ready__.remote()] = actor

    def _ready(self, more: bool) -> list[Any]:
        """The promises that are kept or broken; those of new actors, while there is work for them.

        An actor that the cluster has no room for just never comes up.
        """
        watched = [*self._busy, *(self._coming if more else [])]
        ready: list[Any]
        ready, _ = self._ray.wait(watched, timeout=None if self._busy else _PATIENCE)
        if not ready:
            raise _no_actor_lives(f"none came up in {_PATIENCE:.0f} s")
        return ready

    def _answer(self, promise: Any) -> tuple[Any, Outcome | None]:
        """The actor, or None if it died, and what came of its unit if it had one."""
        actor, unit = self._busy.pop(promise, (self._coming.pop(promise, None), None))
        try:
            found = self._ray.get(promise)
        except self._ray.exceptions.RayError as error:
            how = f"its actor was lost ({type(error).__name__})"
            return None, None if unit is None else Outcome(unit, lost=how)
        return actor, None if unit is None else found


@contextmanager
def _connected() -> Iterator[Any]:
    """The library, connected; a connection that was there before is left as it is."""
    try:
        import ray  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise ArgumentError(
            explain_error(
                "this engine needs Ray",
                got="--engine ray, and no module named 'ray'",
                expected="the extra 'ray'",
                instead="pip install 'pellucid[ray]', or --engine process on one machine",
            )
        ) from None
    ours = not ray.is_initialized()
    if ours:
        ray.init(log_to_driver=False, include_dashboard=False)
    try:
        yield ray
    finally:
        if ours:
            ray.shutdown()


def _no_actor_lives(got: str) -> StudyError:
    return StudyError(
        explain_error(
            "the cluster gives this study no worker that lives",
            got=got,
            expected="nodes with room for an actor, where pellucid is installed",
            instead="`ray status`, or fewer workers (--workers 1)",
        )
    )
