"""Two runs side by side: the same methods by the same measures, on the samples that both have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pellucid._errors import StoreError, explain_error
from pellucid.bench.intervals import Difference, difference
from pellucid.bench.store import Store
from pellucid.bench.table import Group, columns_of


@dataclass(frozen=True)
class Compared:
    """One number of two runs; `apart` is the first less the second."""

    group: Group
    measure: str
    first: float | None
    second: float | None
    apart: Difference | None


def compare(first: str | Path, second: str | Path) -> list[Compared]:
    """What two runs have in common, in the order of the first."""
    with Store.reading(Path(first)) as one, Store.reading(Path(second)) as other:
        ours, theirs = columns_of(one), columns_of(other)
    found = [
        Compared(
            *key,
            ours[key].number(),
            theirs[key].number(),
            difference(ours[key], theirs[key]),
        )
        for key in ours
        if key in theirs
    ]
    if not found:
        raise StoreError(
            explain_error(
                "these runs have nothing in common",
                got=f"{first}: {_names(ours)}; {second}: {_names(theirs)}",
                expected="the same names of models, data, methods and metrics",
                instead='name = "..." in the entries of one plan, as in the other',
            )
        )
    return found


def _names(columns: object) -> str:
    names = list(_lines(columns))
    return ", ".join(names[:4]) + (", ..." if len(names) > 4 else "") or "nothing done"


def _lines(columns: object) -> Iterator[str]:
    assert isinstance(columns, dict)
    return (f"{' / '.join(group)} by {measure}" for group, measure in columns)
