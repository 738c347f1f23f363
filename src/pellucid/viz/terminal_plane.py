"""The two dimensions of a SLALOM in a terminal: a small plane of characters, and the numbers."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text as Line

from pellucid._slalom import SlalomExplanation
from pellucid.viz.markup import visible
from pellucid.viz.members import Member, members
from pellucid.viz.wording import name_of, number

_WIDTH, _HEIGHT = 56, 13  # characters
_MARKED = "123456789"


def plane_table(explanation: SlalomExplanation) -> Table:
    """The plane, and below it the units whose removal does most, by the digits that mark them."""
    found = members(explanation)
    table = Table.grid()
    table.add_row(_plane(found))
    table.add_row(_numbers(found[: len(_MARKED)]))
    table.add_row(Line(f"held-out fidelity {explanation.fidelity:.2f}", style="dim"))
    return table


def _plane(found: Sequence[Member]) -> Line:
    """Importance up, value across; later marks give way to earlier ones."""
    values, importances = [m.value for m in found], [m.importance for m in found]
    rows = [[" "] * _WIDTH for _ in range(_HEIGHT)]
    for rank in reversed(range(len(found))):
        column = _cell(values[rank], values, _WIDTH)
        row = _HEIGHT - 1 - _cell(importances[rank], importances, _HEIGHT)
        rows[row][column] = _MARKED[rank] if rank < len(_MARKED) else "·"
    low, high = (number(f(values, default=0.0)) for f in (min, max))
    axis = f"value {low}{high:>{max(_WIDTH - 6 - len(low), 1)}}"
    lines = ["\nimportance", *("│" + "".join(row).rstrip() for row in rows), "└" + "─" * _WIDTH]
    return Line("\n".join([*lines, f" {axis}"]))


def _cell(value: float, values: Sequence[float], cells: int) -> int:
    """Which cell of a line from the least value to the largest a value falls in."""
    low, high = min(values), max(values)
    part = (value - low) / (high - low) if high > low else 0.5
    return min(int(part * cells), cells - 1)


def _numbers(found: Sequence[Member]) -> Table:
    table = Table.grid(padding=(0, 2))
    heads = ("", "", "removal", "value", "importance", "")
    table.add_row(*(Line(head, style="dim", justify="right") for head in heads))
    for mark, member in zip(_MARKED, found, strict=False):
        table.add_row(
            mark,
            Line(visible(name_of(member.text))),
            Line(number(member.removal, signed=True), justify="right"),
            Line(f"{member.value:.2f}", justify="right"),
            Line(f"{member.importance:.2f} ± {member.error:.2f}", justify="right"),
            Line("" if member.identified else "importance not told", style="dim"),
        )
    return table
