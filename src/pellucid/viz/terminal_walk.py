"""A walk in a terminal: how it ended, its numbers at some points, and the words that changed."""

from __future__ import annotations

import math

from rich.console import Console
from rich.table import Table
from rich.text import Text as Line

from pellucid._trajectory import Trajectory
from pellucid.viz.changes import changed_tokens
from pellucid.viz.colour import Array
from pellucid.viz.course import (
    at,
    changes,
    decoded_said,
    extent,
    point_said,
    remarks,
    result,
    title,
)
from pellucid.viz.curves import series_curve, thinned
from pellucid.viz.markup import visible
from pellucid.viz.walk import Walk
from pellucid.viz.wording import name_of, number, short

_ROWS = 6
_WORDS = 12
_BARS = "▁▂▃▄▅▆▇█"
_SPARK = 32  # characters


def print_walk(walk: Walk, console: Console | None = None) -> None:
    """Print it; everything is said in words and numbers, colours add nothing."""
    console = console or Console(highlight=False)
    trajectory = walk.trajectory
    heading = f"{title(trajectory)} of {trajectory.provenance.model}"
    console.print(Line(visible(heading), style="bold"))
    console.print(Line(visible(extent(trajectory))))
    console.print(Line(visible(f"{trajectory.outcome} {result(trajectory)}")))
    console.print(_points(walk))
    console.print(_sparks(trajectory))
    for line in _inputs(walk):
        console.print(Line(visible(line)))
    for sentence in remarks(walk):
        console.print(Line(visible(sentence), style="dim"))


def sparkline(values: Array, *, log: bool = False) -> str:
    """The numbers as bars of eight heights, each the largest of its stretch; blank without one."""
    length = min(_SPARK, len(values))
    heights = [
        float(max(values[len(values) * i // length : len(values) * (i + 1) // length]))
        for i in range(length)
    ]
    if log:
        heights = [math.log10(value) if value > 0 else math.nan for value in heights]
    real = [value for value in heights if math.isfinite(value)]
    low = (min(real) if log else 0.0) if real else 0.0
    span = (max(real) - low if real else 0.0) or 1.0
    bars = (
        _BARS[round((value - low) / span * (len(_BARS) - 1))] if math.isfinite(value) else " "
        for value in heights
    )
    return "".join(bars)


def _points(walk: Walk) -> Table:
    """Some of the saved points, the first and the last among them."""
    trajectory, decoded = walk.trajectory, walk.decoded
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    names = ["iteration", "drift", "distance", "path"]
    for name in names:
        table.add_column(name, justify="right")
    table.add_column("the point is")
    if decoded is not None:
        table.add_column("its input is")
    last = len(trajectory.iterations) - 1
    for point in sorted({round(last * i / max(1, _ROWS - 1)) for i in range(_ROWS)}):
        row = [str(int(trajectory.iterations[point])), *at(trajectory, point).values()]
        row.append(str(point_said(trajectory, point)))
        if decoded is not None:
            mark = "" if bool(decoded.agrees[point]) else " ✗"
            row.append(str(decoded_said(trajectory, decoded, point)) + mark)
        table.add_row(*(Line(visible(cell)) for cell in row))
    return table


def _sparks(trajectory: Trajectory) -> Table:
    table = Table.grid(padding=(0, 2))
    for name, key, log in (("drift (log)", "drift", True), ("distance", "displacement", False)):
        values = thinned(series_curve(trajectory, key)).y
        ends = f"{number(float(values[0]))} to {number(float(values[-1]))}"
        table.add_row(name, sparkline(values, log=log), ends)
    return table


def _inputs(walk: Walk) -> list[str]:
    """What the last point decodes to, where that is known."""
    decoded, trajectory = walk.decoded, walk.trajectory
    if decoded is None:
        return []
    last = len(trajectory.iterations) - 1
    lines = [changes(decoded, last, trajectory.kind)]
    words = changed_tokens(trajectory, decoded, last)
    if words:
        replaced = [f"{name_of(word.was)} → {name_of(word.now)}" for word in words[:_WORDS]]
        more = [f"and {len(words) - _WORDS} more"] if len(words) > _WORDS else []
        lines.append(", ".join([*replaced, *more]))
    if decoded.texts:
        lines.append(f"“{short(decoded.texts[last], 400)}”")
    return [line for line in lines if line]
