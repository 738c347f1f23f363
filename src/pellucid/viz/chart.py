"""A line chart as an SVG: axes, lines with their names at their ends, and a mark that can move."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pellucid.viz.curves import Curve, thinned
from pellucid.viz.markup import Markup, element, join
from pellucid.viz.wording import number, short

_WIDTH, _HEIGHT = 360, 200
_LEFT, _TOP, _BOTTOM = 42, 14, 24
_LABEL = 12  # characters of a name at the end of its line
_LINE = 12.5  # from one name to the next
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

Place = Callable[[float], float]


@dataclass(frozen=True)
class Axis:
    """Where numbers lie between 0 and 1 of an axis, and which of them are written beside it."""

    place: Place
    ticks: Sequence[tuple[float, str]]

    @classmethod
    def linear(cls, low: float, high: float) -> Axis:
        """Even steps of 1, 2 or 5 times a power of ten."""
        span = (high - low) or 1.0
        step = 10.0 ** math.floor(math.log10(span / 2))
        step = next(s * step for s in (1, 2, 5, 10) if span / (s * step) <= 5)
        first = math.ceil(low / step - 1e-9)
        values = [step * i for i in range(first, math.floor((low + span) / step + 1e-9) + 1)]
        return cls(lambda value: (value - low) / span, [(v, f"{v:.6g}") for v in values])

    @classmethod
    def log(cls, low: float, high: float) -> Axis:
        """Powers of ten; numbers that are not positive have no place."""
        least, most = math.floor(math.log10(low)), math.ceil(math.log10(high))
        most = max(most, least + 1)
        every = -(-(most - least) // 5)
        powers = range(least, most + 1, every)
        return cls(
            lambda value: (math.log10(value) - least) / (most - least),
            [(10.0**power, f"10{str(power).translate(_RAISED)}") for power in powers],
        )


def chart(
    caption: str,
    curves: Sequence[Curve],
    *,
    steps: int,
    log: bool = False,
    top: float | None = None,
    dots: Sequence[Curve] = (),
    crosses: Sequence[float] = (),
    legend: str = "",
) -> Markup:
    """The curves over the iterations; `dots` belong to the curves in order, `crosses` to none."""
    drawn = [thinned(curve) for curve in curves]
    y = _vertical(drawn, log, top)
    if y is None:
        empty = element("p", "Zero at every step.", class_="muted")
        return element("figure", element("figcaption", caption), empty, class_="chart")
    named = any(curve.label for curve in curves)
    right = 86 if named else 12
    width, height = _WIDTH - _LEFT - right, _HEIGHT - _TOP - _BOTTOM
    x = Axis.linear(0.0, float(max(steps, 1)))

    def across(value: float) -> float:
        return _LEFT + width * x.place(value)

    def down(value: float) -> float:
        return _TOP + height * (1 - y.place(value))

    body = join(
        element("rect", x=_LEFT, y=_TOP, width=width, height=height, class_="area"),
        _grid(x, y, across, down, width),
        *(_line(curve, i, across, down, log) for i, curve in enumerate(drawn)),
        *(_dots(curve, i, across, down) for i, curve in enumerate(dots)),
        *(_cross(across(value)) for value in crosses),
        _names(drawn, across, down) if named else Markup(),
        element("line", x1=_LEFT, x2=_LEFT, y1=_TOP, y2=_TOP + height, class_="marker"),
    )
    svg = element(
        "svg",
        body,
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        role="img",
        aria_label=_description(caption, curves),
        style=f"--plot:{width}px",
    )
    words = element("p", legend, class_="muted") if legend else Markup()
    return element("figure", element("figcaption", caption), svg, words, class_="chart")


# ---- the parts of a chart ------------------------------------------------------------------------


def _vertical(curves: Sequence[Curve], log: bool, top: float | None) -> Axis | None:
    """The axis that holds all the numbers; none where a logarithm has nothing to show."""
    values = np.concatenate([curve.y for curve in curves])
    values = values[np.isfinite(values)]
    if log:
        values = values[values > 0]
        return Axis.log(float(values.min()), float(values.max())) if values.size else None
    if top is None:
        top = float(values.max(initial=0.0))
        if top <= 0:
            return None
    return Axis.linear(0.0, top)


def _grid(x: Axis, y: Axis, across: Place, down: Place, width: float) -> Markup:
    foot = _HEIGHT - _BOTTOM
    rows = [
        join(
            element("line", x1=_LEFT, x2=_LEFT + width, y1=_at(down(value)), y2=_at(down(value))),
            element("text", text, x=_LEFT - 5, y=_at(down(value) + 3.5), text_anchor="end"),
        )
        for value, text in y.ticks
    ]
    columns = [
        element("text", text, x=_at(across(value)), y=foot + 14, text_anchor="middle")
        for value, text in x.ticks
        if value == int(value)
    ]
    return element("g", *rows, *columns, class_="grid")


def _line(curve: Curve, index: int, across: Place, down: Place, log: bool) -> Markup:
    """The line, broken where a number has no place on the axis."""
    pieces: list[list[str]] = [[]]
    for x, y in zip(curve.x.tolist(), curve.y.tolist(), strict=True):
        if math.isfinite(y) and (y > 0 or not log):
            pieces[-1].append(f"{_at(across(x))},{_at(down(y))}")
        elif pieces[-1]:
            pieces.append([])
    path = "".join(
        f"M{' '.join(piece if len(piece) > 1 else 2 * piece)}" for piece in pieces if piece
    )
    return element("path", d=path, class_=f"line line-{index}")


def _dots(curve: Curve, index: int, across: Place, down: Place) -> Markup:
    marks = [
        element("circle", cx=_at(across(x)), cy=_at(down(y)), r=2.4)
        for x, y in zip(curve.x.tolist(), curve.y.tolist(), strict=True)
        if math.isfinite(y)
    ]
    return element("g", *marks, class_=f"dots line-{index}")


def _cross(x: float) -> Markup:
    y = _TOP - 7
    path = f"M{_at(x - 3)},{y - 3}l6,6m0,-6l-6,6"
    return element("path", d=path, class_="cross")


def _names(curves: Sequence[Curve], across: Place, down: Place) -> Markup:
    """Every line's name beside its end, moved apart where they would lie on each other."""
    ends = sorted((down(float(curve.y[-1])), i) for i, curve in enumerate(curves))
    placed: list[float] = []
    for y, _ in ends:
        placed.append(max(y, placed[-1] + _LINE) if placed else y)
    over = max(0.0, placed[-1] - (_HEIGHT - _BOTTOM))
    for i in range(len(placed) - 1, -1, -1):
        limit = placed[i + 1] - _LINE if i + 1 < len(placed) else placed[i] - over
        placed[i] = min(placed[i], limit)
    edge = max(across(float(curve.x[-1])) for curve in curves)
    return join(
        *(
            element(
                "text",
                element("title", curves[i].label),
                short(curves[i].label, _LABEL),
                x=_at(edge + 7),
                y=_at(y + 3.5),
                class_=f"name line-{i}",
            )
            for y, (_, i) in zip(placed, ends, strict=True)
        )
    )


def _description(caption: str, curves: Sequence[Curve]) -> str:
    ends = [
        f"{curve.label} from {number(float(curve.y[0]))} to {number(float(curve.y[-1]))}".strip()
        for curve in curves
    ]
    return f"{caption}: {'; '.join(ends)}"


def _at(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
