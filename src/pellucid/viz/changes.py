"""Texts along a walk: the original, and the current one with the words marked that are others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pellucid._decoded import Candidate, Decoded
from pellucid._results import Word
from pellucid._trajectory import Trajectory
from pellucid._types import Text
from pellucid.viz.frames import stack
from pellucid.viz.markup import Markup, element, join
from pellucid.viz.shown import runs
from pellucid.viz.walk import Walk
from pellucid.viz.wording import name_of, number

_APART = "\u2068\u2069"  # Unicode's isolates: a word written from the right leaves its number alone


@dataclass(frozen=True)
class Change(Word):
    """A token of the original (`text`) that another one stands for at some point of the walk."""

    now: str = ""
    candidates: tuple[Candidate, ...] = ()


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
            segment = trajectory.segments[position]
            span = segment.span or (-1, -1)
            now = candidates[0][0]
            found.append(Change(segment.text, 0.0, span, segment.part, now, candidates))
    return found


def _version(trajectory: Trajectory, text: Text, decoded: Decoded, point: int) -> Markup:
    """The original with its changed tokens replaced, and the decoded text where it reads otherwise.

    The two differ where pieces of words were put together.
    """
    changes = changed_tokens(trajectory, decoded, point)
    inside = [change for change in changes if change.span != (-1, -1)]
    outside = [change for change in changes if change.span == (-1, -1)]
    pieces = [
        list(_pieces(part, [c for c in inside if c.part == number]))
        for number, part in enumerate(text.parts)
    ]
    shown = "".join(
        piece if isinstance(piece, str) else piece.now for row in pieces for piece in row
    )
    read = decoded.texts[point]
    chips = [element("li", name_of(change.text), " → ", _marked(change)) for change in outside]
    return join(
        element("div", *(_paragraph(*map(_drawn, row)) for row in pieces), class_="text"),
        element("ul", *chips, class_="chips") if chips else Markup(),
        element("p", "reads ", element("q", read, dir="auto"), class_="muted")
        if _letters(read) != _letters(shown)
        else Markup(),
    )


def _pieces(text: str, changes: list[Change]) -> Iterator[str | Change]:
    """The text in order, cut at its changed tokens; those that share characters stand together."""
    for run in runs(text, changes):
        own = [word for word in run.words if isinstance(word, Change)]
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
        f"was {_apart(change.text)}",
        *(f"{_apart(t)}  {number(s)}" for t, s in change.candidates),
    ]
    title = "\n".join(lines)
    return element("mark", name_of(change.now), class_="heat changed", dir="auto", title=title)


def _apart(token: str) -> str:
    return f"{_APART[0]}{name_of(token)}{_APART[1]}"


def _paragraph(*content: str) -> Markup:
    return element("p", *content, dir="auto")


def _letters(text: str) -> str:
    return "".join(text.casefold().split())
