"""An explanation in a terminal: coloured words or blocks, and the numbers in plain text."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.style import Style
from rich.table import Table
from rich.text import Text as Line

from pellucid._results import Explanation
from pellucid._slalom import SlalomExplanation
from pellucid._types import Text
from pellucid.viz.colour import AGAINST, AMOUNT, FOR, Array, Scale
from pellucid.viz.markup import visible
from pellucid.viz.shown import runs, scale_of
from pellucid.viz.terminal_plane import plane_table
from pellucid.viz.wording import (
    are_probabilities,
    aside,
    directions,
    meaning,
    name_of,
    number,
    parameters,
    percent,
    subject,
)

_TOP = 8
_LABELS = 5
_BAR = 20  # characters
_MAP = 32  # characters
_FAINT = 0.08  # of the range; weaker scores keep the terminal's own colours
_GREY = (140, 140, 140)  # as light as the colours, so that black is read on all of them


def print_explanation(explanation: Explanation, console: Console | None = None) -> None:
    """Print it; without a terminal no escape codes are written, and the numbers remain."""
    console = console or Console(highlight=False)
    scale = scale_of(explanation)
    console.print(_heading(explanation))
    console.print(_prediction(explanation))
    if isinstance(explanation.item, Text):
        for part in range(len(explanation.item.parts)):
            console.print(_coloured(explanation, part, scale))
    elif console.color_system is not None:
        console.print(_blocks(explanation, scale, console.width))
    console.print(_legend(explanation, scale))
    if isinstance(explanation, SlalomExplanation):
        console.print(plane_table(explanation))
    else:
        console.print(_top(explanation, scale))
    for sentence in (aside(explanation), *explanation.notes):
        if sentence:
            console.print(Line(visible(sentence), style="dim"))


def _heading(explanation: Explanation) -> Line:
    settings = ", ".join(parameters(explanation))
    method = f"{explanation.method}({settings})" if settings else explanation.method
    return Line.assemble(
        (visible(method), "bold"),
        visible(f" on {explanation.provenance.model}\n"),
        visible(f"explains {subject(explanation)}"),
    )


def _prediction(explanation: Explanation) -> Table:
    table = Table.grid(padding=(0, 2))
    bars = are_probabilities(explanation.prediction)
    shown = sorted(explanation.prediction.items(), key=lambda pair: -pair[1])
    for rank, (label, value) in enumerate(shown):
        mark = label == explanation.label
        if rank < _LABELS or mark:
            bar = "█" * round(_BAR * value) if bars else ""
            digits = percent(value) if bars else number(value)
            name = Line(visible(name_of(label)), style="bold" if mark else "")
            table.add_row(name, Line(digits, justify="right"), Line(bar + " ◂ explained" * mark))
    return table


def _coloured(explanation: Explanation, part: int, scale: Scale) -> Line:
    """One text of the input on the colours of its words."""
    assert isinstance(explanation.item, Text)
    words = [word for word in explanation.words() if word.part == part]
    line = Line("\n")
    for run in runs(explanation.item.parts[part], words):
        strength = float(scale.strength(run.score))
        line.append(visible(run.text), _style(strength, scale) if run.words else None)
    return line


def _style(strength: float, scale: Scale) -> Style | None:
    """The ground of a score, from grey at zero to its full colour."""
    if abs(strength) < _FAINT:
        return None
    return Style.parse(f"black on {_hex(strength, scale)}")


def _hex(strength: float, scale: Scale) -> str:
    full = AMOUNT if not scale.signed else FOR if strength > 0 else AGAINST
    share = abs(strength)
    mixed = (round(g + (c - g) * share) for g, c in zip(_GREY, full, strict=True))
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def _blocks(explanation: Explanation, scale: Scale, width: int) -> Line:
    """The heat map, two cells a character: small grids enlarged, and of large ones every n-th."""
    grid = explanation.scores if explanation.scores.dim() == 2 else explanation.patches()
    strength = scale.strength(grid.numpy())
    times = max(1, _MAP // strength.shape[1])
    every = -(-strength.shape[1] // min(width, 2 * _MAP))
    strength = strength.repeat(times, axis=0).repeat(times, axis=1)[::every, ::every]
    line = Line("\n")
    for upper, lower in _pairs(strength):
        for top, bottom in zip(upper, lower, strict=True):
            line.append("▀", Style.parse(f"{_hex(top, scale)} on {_hex(bottom, scale)}"))
        line.append("\n")
    line.rstrip()
    return line


def _pairs(rows: Array) -> Iterator[tuple[Array, Array]]:
    """Rows two by two; an odd last one is paired with zeros."""
    for index in range(0, len(rows), 2):
        yield rows[index], rows[index + 1] if index + 1 < len(rows) else 0 * rows[index]


def _legend(explanation: Explanation, scale: Scale) -> Line:
    low, high = (visible(text) for text in directions(explanation))
    start = number(-scale.limit, signed=True) if scale.signed else "0"
    line = Line("\n")
    if scale.limit:
        line.append(f" {low} {start} ", _style(-1.0, scale) if scale.signed else None)
        line.append("  ")
        line.append(f" {number(scale.limit, signed=scale.signed)} {high} ", _style(1.0, scale))
        line.append("\n")
    return line.append(meaning(explanation, scale), "dim")


def _top(explanation: Explanation, scale: Scale) -> Table:
    table = Table.grid(padding=(0, 2))
    for name, score in explanation.top(_TOP):
        style = _style(float(scale.strength(score)), scale) or ""
        digits = Line(f" {number(score, signed=scale.signed)} ", style, justify="right")
        table.add_row(Line(visible(name)), digits)
    return table
