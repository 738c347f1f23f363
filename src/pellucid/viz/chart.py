"""A line chart as an SVG: axes, lines with their names at their ends, and a mark that can move."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from pellucid.viz.curves import Curve, thinned
from pellucid.viz.markup import Markup, element, join
from pellucid.viz.wording import number, short

_WIDTH, _HEIGHT = 360, 200
_LEFT, _TOP, _BOTTOM = 42, 14, 24
_NAMED, _PLAIN = 86, 12  # right of the area, with and without names
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


@dataclass(frozen=True)
class Area:
    """Where a chart is drawn, in units of the picture."""

    x: Axis
    y: Axis
    width: float
    height: float

    def across(self, value: float) -> float:
        """Where an iteration lies."""
        return _LEFT + self.width * self.x.place(value)

    def down(self, value: float) -> float:
        """Where a number of a curve lies."""
        return _TOP + self.height * (1 - self.y.place(value))


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
    y = _vertical([*drawn, *dots], log, top)
    if y is None:
        nothing = element("p", "Zero at every step.", class_="muted")
        return element("figure", element("figcaption", caption), nothing, class_="chart")
    x = Axis.linear(0.0, float(max(steps, 1)))
    right = _NAMED if any(curve.label for curve in curves) else _PLAIN
    area = Area(x, y, _WIDTH - _LEFT - right, _HEIGHT - _TOP - _BOTTOM)
    svg = element(
        "svg",
        _grid(area),
        *(_line(area, curve, i, log) for i, curve in enumerate(drawn)),
        *(_dots(area, curve, i) for i, curve in enumerate(dots)),
        *(_cross(area.across(value)) for value in crosses),
        _names(area, drawn),
        element("line", x1=_LEFT, x2=_LEFT, y1=_TOP, y2=_TOP + area.height, class_="marker"),
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        role="img",
        aria_label=_description(caption, curves),
        style=f"--plot:{area.width}px",
    )
    words = element("p", legend, class_="muted") if legend else Markup()
    return element("figure", element("figcaption", caption), svg, words, class_="chart")


# ---- the parts of a chart ------------------------------------------------------------------------


def _vertical(curves: Sequence[Curve], log: bool, top: float | None) -> Axis | None:
    """The axis that holds all the numbers, up to `top` at least where most of it would be filled.

    There is none where nothing is above zero.
    """
    values = np.concatenate([curve.y for curve in curves])
    values = values[np.isfinite(values)]
    if log:
        values = values[values > 0]
        return Axis.log(float(values.min()), float(values.max())) if values.size else None
    most = float(values.max(initial=0.0))
    if most <= 0:
        return None
    return Axis.linear(0.0, top if top is not None and most > top / 2 else most)


def _grid(area: Area) -> Markup:
    """The ground that is pressed on, the lines of the numbers, and the iterations below."""
    left, right, foot = _LEFT, _LEFT + area.width, _TOP + area.height
    rows = [
        join(
            element("line", x1=left, x2=right, y1=_at(area.down(value)), y2=_at(area.down(value))),
            element("text", text, x=left - 5, y=_at(area.down(value) + 3.5), text_anchor="end"),
        )
        for value, text in area.y.ticks
    ]
    columns = [
        element("text", text, x=_at(area.across(value)), y=foot + 14, text_anchor="middle")
        for value, text in area.x.ticks
        if value == int(value)
    ]
    ground = element("rect", x=left, y=_TOP, width=area.width, height=area.height, class_="area")
    return element("g", ground, *rows, *columns, class_="grid")


def _line(area: Area, curve: Curve, index: int, log: bool) -> Markup:
    """The line, broken where a number has no place on the axis."""
    pieces: list[list[str]] = [[]]
    for x, y in zip(curve.x.tolist(), curve.y.tolist(), strict=True):
        if math.isfinite(y) and (y > 0 or not log):
            pieces[-1].append(f"{_at(area.across(x))},{_at(area.down(y))}")
        elif pieces[-1]:
            pieces.append([])
    path = "".join(f"M{' '.join(piece)}" for piece in pieces if len(piece) > 1)
    alone = [piece[0].split(",") for piece in pieces if len(piece) == 1]
    return join(
        element("path", d=path, class_=f"line line-{index}"),
        *(element("circle", cx=x, cy=y, r=1.5, class_=f"line line-{index}") for x, y in alone),
    )


def _dots(area: Area, curve: Curve, index: int) -> Markup:
    marks = [
        element("circle", cx=_at(area.across(x)), cy=_at(area.down(y)), r=2.4)
        for x, y in zip(curve.x.tolist(), curve.y.tolist(), strict=True)
        if math.isfinite(y)
    ]
    return element("g", *marks, class_=f"dots line-{index}")


def _cross(x: float) -> Markup:
    """Above the area, where no curve is."""
    return element("path", d=f"M{_at(x - 3)},{_TOP - 10}l6,6m0,-6l-6,6", class_="cross")


def _names(area: Area, curves: Sequence[Curve]) -> Markup:
    """Every line's name beside its end."""
    named = [(i, curve) for i, curve in enumerate(curves) if curve.label]
    places = apart([area.down(float(curve.y[-1])) for _, curve in named], _LINE, _HEIGHT - _BOTTOM)
    return join(
        *(
            element(
                "text",
                element("title", curve.label),
                short(curve.label, _LABEL),
                x=_at(area.across(float(curve.x[-1])) + 7),
                y=_at(y + 3.5),
                class_=f"name line-{i}",
            )
            for (i, curve), y in zip(named, places, strict=True)
        )
    )


def apart(places: Sequence[float], gap: float, most: float) -> list[float]:
    """The places, in their order, moved so that they keep a gap and none lies beyond the last."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    moved = list(places)
    for before, after in pairwise(order):
        moved[after] = max(moved[after], moved[before] + gap)
    for i in reversed(order):
        moved[i] = min(moved[i], most)
        most = moved[i] - gap
    return moved


def _description(caption: str, curves: Sequence[Curve]) -> str:
    ends = [
        f"{curve.label} from {number(float(curve.y[0]))} to {number(float(curve.y[-1]))}".strip()
        for curve in curves
    ]
    return f"{caption}: {'; '.join(ends)}"


def _at(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
