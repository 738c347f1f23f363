"""One person at work: what was asked, what was found, and how it is stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

from pellucid._errors import ArgumentError, explain_error
from pellucid._results import Explanation
from pellucid.adapters.torch_model import TorchAdapter
from pellucid.app.models import Served

_PATIENCE = 0.2  # seconds between two looks at whether a person still waits


class Stopped(Exception):  # nothing went wrong
    """The person who asked for it does not want it any more."""


class Session:
    """What belongs to one person and to nobody else."""

    def __init__(self) -> None:
        self.stop = Event()
        self.pause = Event()
        self.explained: Explained | None = None
        self.walk: Walk | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Session:
        """A new one: gradio copies what a page begins with for everyone who opens it."""
        return Session()

    def explained_for(self, model: str, raw: Any) -> Explained:
        """The explanations of this input, or an error that says where they are made."""
        made = self.explained
        if made is None or (made.model, made.raw) != (model, raw) or not made.found:
            raise ArgumentError(
                explain_error(
                    "this input has not been explained yet",
                    got="no explanation of this input by this model",
                    expected="one or several explanations",
                    instead="press Explain in the first tab",
                )
            )
        return made

    def leave(self) -> None:
        """The person is gone: nothing goes on, and nothing stays on the disk."""
        self.stop.set()
        self.forget_walk()

    def forget_walk(self) -> None:
        """No walk can be gone on with."""
        if self.walk is not None:
            self.walk.remove()
        self.walk = None


@dataclass(frozen=True, eq=False)
class Explained:
    """Explanations, with the model and the input that they are of."""

    model: str
    raw: Any
    found: tuple[Explanation, ...]


@dataclass(frozen=True, eq=False)
class Walk:
    """A walk as it was asked for, and the file from which it goes on."""

    model: str
    raw: Any
    options: Mapping[str, Any]
    checkpoint: Path

    def remove(self) -> None:
        """Delete the file, and those beside it."""
        for path in self.checkpoint.parent.glob(f"{self.checkpoint.name}*"):
            path.unlink(missing_ok=True)


@contextmanager
def alone(
    served: Served, stop: Event, passes: Callable[[int], None] = lambda _: None
) -> Iterator[TorchAdapter]:
    """The model for one person at a time, who can stop before any pass through it.

    `passes` is told how many have begun. A method cannot be interrupted, but all that takes long
    are passes.
    """
    count = 0

    def before(*_: Any) -> None:
        nonlocal count
        _check(stop)
        count += 1
        passes(count)

    while not served.lock.acquire(timeout=_PATIENCE):
        _check(stop)
    try:
        _check(stop)
        hook = served.adapter.module.register_forward_pre_hook(before)
        try:
            yield served.adapter
        finally:
            hook.remove()
    finally:
        served.lock.release()


def _check(stop: Event) -> None:
    if stop.is_set():
        raise Stopped
