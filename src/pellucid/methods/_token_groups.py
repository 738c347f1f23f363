"""What of an input is taken away together: its tokens, its words, or stretches of its text.

A player is a group of tokens that stay or go as one; the model's own tokens belong to none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pellucid._arguments import integer
from pellucid._errors import ArgumentError, explain_error
from pellucid._types import Picture, Segment, Text
from pellucid._words import group_by_word

Player = tuple[int, ...]  # the numbers of its tokens
Span = tuple[int, int]


def single_tokens(item: Text | Picture) -> list[Player]:
    """Every token of the input by itself."""
    return [(i,) for i, segment in enumerate(item.segments) if segment.role == "content"]


def whole_words(item: Text | Picture) -> list[Player]:
    """The tokens of every word; in an image every patch."""
    if not isinstance(item, Text):
        return single_tokens(item)
    placed = [(i, s) for i, s in enumerate(item.segments) if s.role == "content"]
    found: list[Player] = [(i,) for i, segment in placed if segment.span is None]
    for part, text in enumerate(item.parts):
        own = [(i, s.span) for i, s in placed if s.part == part and s.span is not None]
        for _, tokens in group_by_word(text, [span for _, span in own]):
            found.append(tuple(sorted(own[k][0] for k in tokens)))
    return sorted(found)


def stretches(item: Text | Picture, players: list[Player], spans: Sequence[Span]) -> list[Player]:
    """These players, with the tokens that touch each of the given characters made one player."""
    chosen = [_tokens_in(item, span) for span in _checked(spans, item)]
    taken = [i for tokens in chosen for i in tokens]
    if len(taken) != len(set(taken)):
        raise ArgumentError(
            explain_error(
                "two spans share a token",
                got=f"spans={list(spans)!r}",
                expected="stretches of the text that have no token in common",
                instead="spans=[(0, 6), (7, 11)]",
            )
        )
    rest = [tuple(i for i in player if i not in taken) for player in players]
    return sorted([player for player in rest if player] + chosen)


def names_of(item: Text | Picture, players: Sequence[Player]) -> list[Any]:
    """What each player is made of: equal for players of equal tokens, wherever they stand."""
    ids = item.rows.get("input_ids") if isinstance(item, Text) and item.rows else None
    return [tuple(ids[i] if ids else item.segments[i].text for i in player) for player in players]


def _tokens_in(item: Text | Picture, span: Span) -> Player:
    start, end = span

    def touches(segment: Segment) -> bool:
        return segment.role == "content" and bool(
            segment.span and segment.span[0] < end and start < segment.span[1]
        )

    found = tuple(i for i, segment in enumerate(item.segments) if touches(segment))
    if not found:
        raise ArgumentError(
            explain_error(
                "a span has no token",
                got=f"({start}, {end})",
                expected="the first character of a stretch of text and the one after its last",
                instead="spans=[(0, 6)]",
            )
        )
    return found


def _checked(spans: Any, item: Text | Picture) -> list[Span]:
    """Pairs of characters of one text."""
    if not isinstance(item, Text) or len(item.parts) != 1:
        raise ArgumentError(
            explain_error(
                "spans are characters of one text",
                got=f"spans={spans!r} for {'a pair' if isinstance(item, Text) else 'an image'}",
                expected="a single text",
                instead="unit='word'",
            )
        )
    try:
        pairs = [(start, end) for start, end in spans]
    except (TypeError, ValueError):
        raise ArgumentError(
            explain_error(
                "spans are not pairs of characters",
                got=f"spans={spans!r}",
                expected="a list of (start, end)",
                instead="spans=[(0, 6)]",
            )
        ) from None
    return [(integer("start", a, 0), integer("end", b, a + 1, a + 1)) for a, b in pairs]
