"""The table of a study: one number for each method and measure, and how sure it is."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from pellucid.bench.intervals import Column, Interval, Pool, difference, interval
from pellucid.bench.store import Store

Group = tuple[str, ...]


@dataclass(frozen=True)
class Cell:
    """One number of the table."""

    group: Group  # what was studied, such as model, data and method
    measure: str
    better: str | None  # "higher" or "lower"; None: neither is, and none is the best
    value: float | None
    interval: Interval | None  # 95 %
    samples: int
    skipped: Mapping[str, int]  # how many, by reason
    best: bool  # it is the best of its rivals, or not to be told from the best
    first: bool  # it is the best


@dataclass(frozen=True)
class StudyTable:
    """All numbers of a study, with what is missing from it."""

    columns: tuple[str, ...]  # the names of the group's parts
    cells: tuple[Cell, ...]
    states: Mapping[str, int]  # units waiting, done and failed
    seconds: Mapping[Group, float]  # of work
    errors: Mapping[str, int]  # of failed units, and how many
    about: Mapping[str, Any]

    @cached_property
    def by_place(self) -> dict[tuple[Group, str], Cell]:
        """The cells by what was studied and by measure."""
        return {(cell.group, cell.measure): cell for cell in self.cells}

    def parts(self) -> dict[Group, list[Group]]:
        """The groups that are rivals, by all but the last part of their names."""
        found: dict[Group, list[Group]] = defaultdict(list)
        for group in dict.fromkeys(cell.group for cell in self.cells):
            found[group[:-1]].append(group)
        return found

    def measures(self, groups: Iterable[Group]) -> list[str]:
        """The measures that these groups have."""
        chosen = set(groups)
        return list(dict.fromkeys(c.measure for c in self.cells if c.group in chosen))


def table_of(folder: str | Path) -> StudyTable:
    """Read a run, and make its table."""
    with Store.reading(Path(folder)) as store:
        about = store.about()
        columns = tuple(about.get("columns", ()))
        found, skipped, seconds = _gathered(store, columns, about)
        errors = Counter(record.error for record in store.records("failed"))
        states = store.counts()
    directions = {name: one["better"] for name, one in about["measures"].items()}
    cells = tuple(_cells(found, skipped, directions))
    return StudyTable(columns, cells, states, seconds, errors, about)


Columns = dict[tuple[Group, str], Column]


def columns_of(store: Store) -> Columns:
    """Every value of a study, by what was studied and by measure."""
    about = store.about()
    return _gathered(store, tuple(about.get("columns", ())), about)[0]


def _gathered(
    store: Store, columns: tuple[str, ...], about: Mapping[str, Any]
) -> tuple[Columns, dict[tuple[Group, str], Counter[str]], dict[Group, float]]:
    found: Columns = {}
    skipped: dict[tuple[Group, str], Counter[str]] = defaultdict(Counter)
    seconds: dict[Group, float] = defaultdict(float)
    for record in store.records():
        names = columns or tuple(record.labels)
        group = tuple(record.labels[name] for name in names)
        seconds[group] += record.seconds
        for row in record.rows:
            key = group, row.measure
            column = found.setdefault(key, Column())
            counts = row.detail.get("counts")
            if counts and column.pool is None:
                column.pool = _pool(about["measures"][row.measure].get("name"))
            if row.value is None:
                skipped[key][row.skipped] += 1
            else:
                column.values[row.sample] = row.value
            if counts:
                column.counts[row.sample] = counts
    return found, skipped, seconds


@cache
def _pool(metric: str | None) -> Pool | None:
    """How a metric of a whole data set is made from counts; the metrics load a model library."""
    from pellucid.metrics import METRICS

    return METRICS[metric].pool if metric in METRICS else None


def _cells(
    found: Columns,
    skipped: Mapping[tuple[Group, str], Counter[str]],
    directions: Mapping[str, str | None],
) -> Iterator[Cell]:
    """The cells of each set of rivals: the same measure of all but the last part of a group."""
    rivals: dict[tuple[Group, str], list[Group]] = defaultdict(list)
    for group, measure in found:
        rivals[group[:-1], measure].append(group)
    for (_, measure), groups in rivals.items():
        better = directions.get(measure, "higher")
        numbers = {group: found[group, measure].number() for group in groups}
        known = {group: number for group, number in numbers.items() if number is not None}
        sign = 1 if better == "higher" else -1
        first = max(known, key=lambda group: sign * known[group], default=()) if better else ()
        for group in groups:
            column = found[group, measure]
            yield Cell(
                group=group,
                measure=measure,
                better=better,
                value=numbers[group],
                interval=interval(column),
                samples=len(column.samples),
                skipped=skipped[group, measure],
                best=group in known and bool(first) and _is_level(found[first, measure], column),
                first=group == first,
            )


def _is_level(first: Column, other: Column) -> bool:
    """Whether a method is the best one, or not to be told from it."""
    if first is other:
        return True
    apart = difference(first, other)
    return apart is not None and not apart.is_clear
