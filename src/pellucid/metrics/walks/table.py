"""Numbers of several walks as a table: one row for each algorithm and metric."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pellucid._statistics import summary


@dataclass(frozen=True)
class WalkRow:
    """One metric over several walks; the numbers are None where all were skipped."""

    name: str  # of the algorithm, or whatever the walks have in common
    metric: str
    mean: float | None
    se: float | None  # std / sqrt(n)
    std: float | None  # ddof 0
    n: int  # that have a number
    skipped: Mapping[str, int] = field(default_factory=dict)  # how many, by reason


class WalkTable(list[WalkRow]):
    """Rows that print as a table."""

    def row(self, name: str, metric: str) -> WalkRow:
        """The row of this name and metric; a KeyError where there is none."""
        for row in self:
            if (row.name, row.metric) == (name, metric):
                return row
        raise KeyError((name, metric))

    def __repr__(self) -> str:
        head = ("name", "metric", "mean", "std", "se", "n", "skipped")
        lines = [head, *(_cells(row) for row in self)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
        left = (0, 1, 6)
        return "\n".join(
            "  ".join(
                cell.ljust(width) if i in left else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        )


def walk_row(name: str, metric: str, values: Iterable[float | str]) -> WalkRow:
    """The row of these numbers; a sentence stands for a number that was skipped."""
    found = list(values)
    numbers = [value for value in found if not isinstance(value, str)]
    reasons = Counter(value for value in found if isinstance(value, str))
    told = summary(numbers)
    if told is None:
        return WalkRow(name, metric, None, None, None, 0, dict(reasons))
    return WalkRow(name, metric, told.mean, told.se, told.std, told.n, dict(reasons))


def walk_table(groups: Mapping[str, Sequence[Mapping[str, float | str]]]) -> WalkTable:
    """A table of named groups of walks, each walk by its numbers: {metric: number or reason}.

    A metric that some walks of a group do not have at all counts those that do.
    """
    metrics = dict.fromkeys(name for walks in groups.values() for one in walks for name in one)
    return WalkTable(
        walk_row(name, metric, own)
        for metric in metrics
        for name, walks in groups.items()
        if (own := [one[metric] for one in walks if metric in one])
    )


def _cells(row: WalkRow) -> tuple[str, ...]:
    numbers = [row.mean, row.std, row.se]
    shown = ["-" if value is None else f"{value:.4g}" for value in numbers]
    reasons = ", ".join(f"{count} x {reason}" for reason, count in row.skipped.items())
    return row.name, row.metric, *shown, str(row.n), reasons
