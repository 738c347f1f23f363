"""A study in plain data: units of work, and what comes of them.

A unit's key is a hash of all that its result depends on. The same work has the same key in any
plan, on any machine and in any order, so what is done already is known by its key alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Unit:
    """The smallest piece of a study that is done, kept and counted as one."""

    key: str
    labels: Mapping[str, str]  # what its rows are grouped by, such as model, data and method
    work: Mapping[str, Any]  # JSON: all that a worker needs to know


@dataclass(frozen=True)
class Row:
    """One number about one sample."""

    sample: str
    measure: str
    value: float | None  # None: skipped, and `skipped` says why
    skipped: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)  # JSON: counts, curve, ties ...


@dataclass(frozen=True, eq=False)
class Result:
    """What a unit's work returns: the same numbers whenever it is done, so no times."""

    rows: Sequence[Row]
    maps: Mapping[str, Array] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Outcome:
    """How one attempt at a unit ended: with a result, with an error, or with its worker's death."""

    unit: Unit
    result: Result | None = None
    error: str = ""  # what the work raised, in one line
    trace: str = ""  # the same with where it was raised
    lost: str = ""  # how the worker died; the unit is not to blame
    seconds: float = 0.0


Work: TypeAlias = Callable[[Unit], Result]


class Task(Protocol):
    """A kind of study: how it is cut into units, and how one is done. Plain data, so it travels."""

    def units(self) -> Iterable[Unit]:
        """All units, those that share a model next to each other."""

    def about(self) -> Mapping[str, Any]:
        """JSON that is kept with the results: the plan, its measures, where it was run."""

    def open(self) -> Work:
        """What does a unit; called once in a worker, which keeps what it loads."""


def key_of(content: Mapping[str, Any]) -> str:
    """SHA-256 of JSON in its one canonical form."""
    return hashlib.sha256(canonical(content).encode()).hexdigest()


def canonical(content: Any) -> str:
    """JSON in one form; what is not finite has none."""
    return _ENCODER.encode(content)


_ENCODER = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)
