"""Texts along a walk: the original, and the current one with the words marked that are others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pellucid._decoded import Candidate, Decoded
from pellucid._results import Word
from pellucid._trajectory import Trajectory
from pellucid._types import Segment, Text
from pellucid.viz.frames import stack
from pellucid.viz.markup import Markup, element, join
from pellucid.viz.shown import runs
from pellucid.viz.walk import Walk
from pellucid.viz.wording import name_of, number

_APART = "\u2068\u2069"  # Unicode's isolates: a word written from the right leaves its number alone


@dataclass(frozen=True)
class Change:
    """A token of the original that another one stands for at some point of the walk."""

    segment: Segment
    now: str
    candidates: tuple[Candidate, ...]

    @property
    def was(self) -> str:
        """The token of the original."""
        return self.segment.text


def texts(walk: Walk, text: Text, decoded: Decoded) -> Markup:
    """The original above the current text, which there is once for every point that is shown."""
    versions = [_version(walk.trajectory, text, decoded, point) for point in walk.shown]
    original = element("div", *(_paragraph(part) for part in text.parts), class_="text")
    return element(
        "div",
        element("figure", element("figcaption", "original"), original),
        element("figure", element("figcaption", "current"), stack(versions)),
        class_="versions",
    )


def changed_tokens(trajectory: Trajectory, decoded: Decoded, point: int) -> list[Change]:
    """The moved tokens that another one stands for, in their order."""
    if decoded.changed is None or not decoded.candidates:
        return []
    found = []
    for place, position in enumerate(trajectory.tokens):
        candidates = decoded.candidates[point][place]
        if bool(decoded.changed[point, place]) and candidates:
            found.append(Change(trajectory.segments[position], candidates[0][0], candidates))
    return found


def _version(trajectory: Trajectory, text: Text, decoded: Decoded, point: int) -> Markup:
    """The original with its changed tokens replaced, and the decoded text where it reads otherwise.

    The two differ where pieces of words were put together.
    """
    changes = changed_tokens(trajectory, decoded, point)
    rows = [list(_pieces(part, i, changes)) for i, part in enumerate(text.parts)]
    shown = "".join(p if isinstance(p, str) else p.now for row in rows for p in row)
    read = decoded.texts[point]
    outside = [change for change in changes if change.segment.span is None]
    chips = [element("li", name_of(change.was), " → ", _marked(change)) for change in outside]
    return join(
        element("div", *(_paragraph(*map(_drawn, row)) for row in rows), class_="text"),
        element("ul", *chips, class_="chips") if chips else Markup(),
        element("p", "reads ", element("q", read, dir="auto"), class_="muted")
        if _letters(read) != _letters(shown)
        else Markup(),
    )


def _pieces(text: str, part: int, changes: list[Change]) -> Iterator[str | Change]:
    """A text of the input in order, its changed tokens in their places."""
    words = [
        Word(change.was, 0.0, change.segment.span, part)
        for change in changes
        if change.segment.span is not None and change.segment.part == part
    ]
    for run in runs(text, words):
        spans = {word.span for word in run.words}
        own = [c for c in changes if c.segment.part == part and c.segment.span in spans]
        if own:
            yield from own
        else:
            yield run.text


def _drawn(piece: str | Change) -> str:
    return piece if isinstance(piece, str) else _marked(piece)


def _marked(change: Change) -> Markup:
    """The new token; what it stands for and what else was near are on hover and focus.

    A direction of its own keeps it from turning the line that it stands in.
    """
    lines = [
        f"was {_isolated(change.was)}",
        *(f"{_isolated(t)}  {number(s)}" for t, s in change.candidates),
    ]
    title = "\n".join(lines)
    return element("mark", name_of(change.now), class_="heat changed", dir="auto", title=title)


def _isolated(token: str) -> str:
    return f"{_APART[0]}{name_of(token)}{_APART[1]}"


def _paragraph(*content: str) -> Markup:
    return element("p", *content, dir="auto")


def _letters(text: str) -> str:
    return "".join(text.casefold().split())
