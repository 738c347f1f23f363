"""The two dimensions of a SLALOM as an SVG: what a token says, across; how much it counts, up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pellucid._slalom import SlalomExplanation
from pellucid.viz.chart import Axis
from pellucid.viz.markup import Markup, element
from pellucid.viz.members import Member, members
from pellucid.viz.wording import name_of, number, short

_WIDTH, _HEIGHT = 480, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 34, 10, 12, 36
_LEAST, _MOST = 2.5, 9.0  # radii, of no effect and of the largest
_NAMED = 18  # names at most; fewer where they would lie on each other
_LETTER, _LINE = 6.4, 12.0  # of a name: the width of a letter, and its height
_LABEL = 16  # letters of a name
_MARGIN = 0.06  # of the range, on each side

Box = tuple[float, float, float, float]  # left, top, right, bottom


@dataclass(frozen=True)
class _Dot:
    member: Member
    x: float
    y: float
    radius: float


def plane(explanation: SlalomExplanation) -> Markup:
    """The units by value and importance; the larger a mark, the more its removal changes."""
    found = members(explanation)
    if not found:
        return Markup()
    x = _axis([member.value for member in found])
    y = _axis([member.importance for member in found])
    largest = max(abs(member.removal) for member in found) or 1.0
    dots = [
        _Dot(m, _across(x, m.value), _down(y, m.importance), _radius(m.removal / largest))
        for m in found
    ]
    svg = element(
        "svg",
        _grid(x, y),
        *(_mark(dot, explanation.signed) for dot in reversed(dots)),
        *_names(dots),
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        role="img",
        aria_label=_description(found),
    )
    told = sum(member.identified for member in found)
    words = (
        f"A mark's size is what its removal does. Filled: the samples tell its importance "
        f"({told} of {len(found)}); open: they tell mostly the removal. "
        f"Held-out fidelity {explanation.fidelity:.2f}."
    )
    caption = element("figcaption", "Value and importance")
    legend = element("p", words, class_="muted")
    return element("figure", caption, svg, legend, class_="chart plane")


def _axis(values: Sequence[float]) -> Axis:
    low, high = min(values), max(values)
    margin = _MARGIN * ((high - low) or 1.0)
    return Axis.linear(low - margin, high + margin)


def _across(axis: Axis, value: float) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * axis.place(value)


def _down(axis: Axis, value: float) -> float:
    return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * axis.place(value)


def _radius(part: float) -> float:
    """The area grows with the effect."""
    return _LEAST + (_MOST - _LEAST) * math.sqrt(abs(part))


def _grid(x: Axis, y: Axis) -> Markup:
    """Lines at round numbers, and what the two directions are."""
    left, right, foot = _LEFT, _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    lines: list[Markup] = []
    for value, text in y.ticks:
        at = f"{_down(y, value):.1f}"
        lines.append(element("line", x1=left, x2=right, y1=at, y2=at))
        lines.append(element("text", text, x=left - 5, y=at, dy="0.35em", text_anchor="end"))
    for value, text in x.ticks:
        at = f"{_across(x, value):.1f}"
        strong = "zero" if value == 0 else None
        lines.append(element("line", x1=at, x2=at, y1=_TOP, y2=foot, class_=strong))
        lines.append(element("text", text, x=at, y=foot + 14, text_anchor="middle"))
    middle = (left + right) / 2
    lines.append(element("text", "value", x=middle, y=_HEIGHT - 6, text_anchor="middle"))
    turned = f"rotate(-90 8 {(_TOP + foot) / 2})"
    place = {"x": 8, "y": (_TOP + foot) / 2, "text_anchor": "middle", "transform": turned}
    lines.append(element("text", "importance", **place))
    return element("g", *lines, class_="grid")


def _mark(dot: _Dot, signed: bool) -> Markup:
    member = dot.member
    hue = "amount" if not signed else "for" if member.removal >= 0 else "against"
    told = "told" if member.identified else "untold"
    title = (
        f"{name_of(member.text)}: value {number(member.value)}, importance "
        f"{number(member.importance)} ± {number(member.error)}, "
        f"removal {number(member.removal, signed=True)}"
    )
    return element(
        "circle",
        element("title", title),
        cx=f"{dot.x:.1f}",
        cy=f"{dot.y:.1f}",
        r=f"{dot.radius:.1f}",
        class_=f"mark {told} of-{hue}",
    )


def _names(dots: Sequence[_Dot]) -> list[Markup]:
    """The names of those whose removal does most, each where it covers neither name nor mark."""
    covered: list[Box] = [
        (d.x - d.radius, d.y - d.radius, d.x + d.radius, d.y + d.radius) for d in dots[:_NAMED]
    ]
    found = []
    for dot in dots[:_NAMED]:
        text = short(name_of(dot.member.text), _LABEL)
        for anchor, box in _places(dot, _LETTER * len(text)):
            inside = box[0] >= _LEFT and box[2] <= _WIDTH and box[1] >= 0
            if inside and not any(_overlap(box, other) for other in covered):
                covered.append(box)
                edge = box[0] if anchor == "start" else box[2]
                place = {"x": f"{edge:.1f}", "y": f"{box[3] - 3:.1f}", "text_anchor": anchor}
                found.append(element("text", text, class_="label", **place))
                break
    return found


def _places(dot: _Dot, width: float) -> list[tuple[str, Box]]:
    """Where a name may stand: right or left of its mark, above or below it."""
    gap, half = dot.radius + 2, _LINE / 2
    beside = (dot.y - half, dot.y + half)
    above = (dot.y - dot.radius - _LINE, dot.y - dot.radius)
    below = (dot.y + dot.radius, dot.y + dot.radius + _LINE)
    return [
        ("start", (dot.x + gap, beside[0], dot.x + gap + width, beside[1])),
        ("end", (dot.x - gap - width, beside[0], dot.x - gap, beside[1])),
        ("start", (dot.x, above[0], dot.x + width, above[1])),
        ("start", (dot.x, below[0], dot.x + width, below[1])),
    ]


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _description(found: Sequence[Member]) -> str:
    most = "; ".join(
        f"{name_of(m.text)}: value {number(m.value)}, importance {number(m.importance)}"
        for m in found[:3]
    )
    return f"value and importance of {len(found)} units; the removals that do most: {most}"
