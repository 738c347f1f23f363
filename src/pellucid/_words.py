"""Words from sub-words, by character offsets, in any script.

A word is a run of letters, digits and the marks that belong to them; an ideograph or a kana
character is a word of its own (those scripts put no spaces between words); an emoji stays whole
with its modifiers and joiners. Tokens are never cut: where one spans several words, they are one.
Words that someone else has cut, such as those of a data set, are taken as they are: `word_scores`.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, Protocol

import torch
from torch import Tensor

from pellucid._errors import ArgumentError, explain_error
from pellucid._types import Picture, Segment, Text

Aggregate = Literal["sum", "mean", "max"]

_JOINER, _APOSTROPHES = "\u200d", "'\u2019"
_IDEOGRAPHIC = (
    (0x3040, 0x30FF),  # kana
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)


def word_spans(text: str) -> list[tuple[int, int]]:
    """The [start, end) characters of every word and every punctuation mark of a text."""
    spans: list[tuple[int, int]] = []
    previous = "space"
    for index in range(len(text)):
        kind = _kind(text, index, previous)
        joins = kind == "extends" or previous == "joined" or (kind == previous == "letter")
        if kind == "space" or (previous == "space" and unicodedata.category(text[index]) == "Cf"):
            previous = "space"
            continue
        if joins and spans and previous != "space":
            spans[-1] = (spans[-1][0], index + 1)
        else:
            spans.append((index, index + 1))
        if kind != "extends":
            previous = kind
        elif text[index] == _JOINER and previous != "letter":
            previous = "joined"
    return spans


def character_spans(text: str) -> list[tuple[int, int]]:
    """The [start, end) of every character that a person sees; white space is none."""
    spans: list[tuple[int, int]] = []
    for start, end in word_spans(text):
        previous = "space"
        for index in range(start, end):
            kind = _kind(text, index, previous)
            if index > start and (kind == "extends" or text[index - 1] == _JOINER):
                spans[-1] = (spans[-1][0], index + 1)
            else:
                spans.append((index, index + 1))
            previous = previous if kind == "extends" else kind
    return spans


def group_by_word(
    text: str, spans: Sequence[tuple[int, int]]
) -> list[tuple[tuple[int, int], list[int]]]:
    """The words that tokens make up: the characters of each, and the numbers of its tokens.

    A token that stands on white space alone belongs to the word that follows it.
    """
    words = word_spans(text)
    groups: list[tuple[range, list[int]]] = []  # words that are joined, and their tokens
    waiting: list[int] = []  # white space before the next word
    for index, (start, end) in sorted(enumerate(spans), key=lambda item: item[1]):
        touched = [w for w, (a, b) in enumerate(words) if a < end and start < b]
        if not touched:
            waiting.append(index)
        elif groups and touched[0] in groups[-1][0]:
            joined = range(groups[-1][0].start, max(groups[-1][0].stop, touched[-1] + 1))
            groups[-1] = (joined, [*groups[-1][1], *waiting, index])
            waiting = []
        else:
            groups.append((range(touched[0], touched[-1] + 1), [*waiting, index]))
            waiting = []
    if waiting and groups:
        groups[-1][1].extend(waiting)
    return [((words[w[0]][0], words[w[-1]][1]), tokens) for w, tokens in groups]


class Scored(Protocol):
    """An explanation, as far as it is read here."""

    @property
    def item(self) -> Text | Picture: ...
    @property
    def scores(self) -> Tensor: ...


def spaced_words(text: str) -> list[tuple[int, int]]:
    """The [start, end) characters of what stands between white space, as data sets count words."""
    return [found.span() for found in re.finditer(r"\S+", text)]


def words_of_tokens(
    segments: Sequence[Segment], spans: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """The tokens of a text and the word of each, by number; the model's own tokens are left out.

    A token over several words belongs to the first of those that have most of its characters.
    """
    found: list[tuple[int, int]] = []
    for index, segment in enumerate(segments):
        if segment.role == "content" and segment.part == 0 and segment.span is not None:
            shares = list(_shares(segment.span, spans))
            found.append((index, max(shares, key=lambda share: share[1])[0]))
    return found


def word_scores(
    explanation: Scored,
    spans: Sequence[tuple[int, int]],
    how: Aggregate = "sum",
    part: int = 0,
) -> Tensor:
    """The scores of words that are given by their [start, end) characters (w).

    A token over several words gives each the share of its score that it has of its characters; one
    on white space alone belongs to the word that follows. The model's special tokens are left out,
    and a word that no token stands on, as after a truncation, gets 0. "sum" keeps the total of the
    scores; "max" takes the one of largest size, with its sign. `part` is which text of a pair.
    """
    reduce = aggregation("how", how)
    text = _checked_text(explanation.item, part)
    spans = checked_spans(spans, text.parts[part])
    pieces: list[list[Tensor]] = [[] for _ in spans]
    for segment, score in zip(text.segments, explanation.scores.double(), strict=True):
        if segment.role == "content" and segment.part == part and segment.span is not None:
            for word, share in _shares(segment.span, spans):
                pieces[word].append(share * score)
    nothing = [torch.zeros((), dtype=torch.float64, device=explanation.scores.device)]
    return torch.stack([reduce(torch.stack(found or nothing)) for found in pieces])


def aggregation(argument: str, name: Any) -> Callable[[Tensor], Tensor]:
    """How the scores of the tokens of a word become one."""
    if name not in _AGGREGATES:
        raise ArgumentError(
            explain_error(
                "unknown aggregate",
                got=f"{argument}={name!r}",
                expected="'sum', 'mean' or 'max'",
                instead=f"{argument}='sum'",
            )
        )
    return _AGGREGATES[name]


def _largest(scores: Tensor) -> Tensor:
    return scores[scores.abs().argmax()]


_AGGREGATES: dict[str, Callable[[Tensor], Tensor]] = {
    "sum": torch.sum,
    "mean": torch.mean,
    "max": _largest,
}


def _shares(
    token: tuple[int, int], spans: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, float]]:
    """The words that a token stands on, and how much of it stands on each."""
    start, end = token
    first = bisect_right(spans, start, key=lambda span: span[1])
    last = max(first, bisect_right(spans, end - 1, key=lambda span: span[0]))
    inside = {w: min(end, spans[w][1]) - max(start, spans[w][0]) for w in range(first, last)}
    total = sum(inside.values())
    if total:
        yield from ((word, count / total) for word, count in inside.items() if count)
    else:
        follows = (w for w in range(first, len(spans)) if spans[w][0] < spans[w][1])
        yield next(follows, len(spans) - 1), 1.0


def _checked_text(item: Text | Picture, part: int) -> Text:
    if isinstance(item, Text) and part in range(len(item.parts)):
        return item
    raise ArgumentError(
        explain_error(
            "only texts have words",
            got=f"part={part} of {type(item).__name__.lower()}",
            expected="an explanation of a text; part=1 where it is of a pair",
            instead="part=0, after pellucid.explain(model, ' '.join(words))",
        )
    )


def checked_spans(spans: Sequence[tuple[int, int]], text: str) -> list[tuple[int, int]]:
    """The words in the order of the text, with nothing but white space between them."""
    found = [(int(start), int(end)) for start, end in spans]
    edges = [0, *(edge for span in found for edge in span), len(text)]
    between = "".join(text[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True))
    if edges != sorted(edges) or between.strip() or not found:
        raise ArgumentError(
            explain_error(
                "these are not the words of the text that was explained",
                got=f"{len(found)} words, and {between.strip()[:40]!r} of the text in none of them"
                if edges == sorted(edges)
                else f"words that overlap, or end after the {len(text)} characters of the text",
                expected="[start, end) characters of every word, in their order",
                instead="the spans of the words of the text that `explain` was given",
            )
        )
    return found


def align(text: str, pieces: Sequence[str]) -> list[tuple[int, int]]:
    """Character spans of decoded token texts, for tokenizers that report none or wrong ones.

    A piece that is not found (a part of a character, an unknown word) stands on the next character
    that is not white space, and shares it with its like.
    """
    lowered = [
        character.lower() if len(character.lower()) == 1 else character for character in text
    ]
    folded = "".join(lowered)
    spans: list[tuple[int, int]] = []
    position = 0
    for piece in pieces:
        bare = piece.strip().lower().removeprefix("##")
        reach = len(text) if len(bare) > 1 else position + 4  # one letter is found anywhere
        found = folded.find(bare, position, reach) if bare else -1
        if found >= 0:
            position = found + len(bare)
            spans.append((found, position))
        else:
            start = position + len(text[position:]) - len(text[position:].lstrip())
            spans.append((start, min(start + 1, len(text))))
    return spans


def _kind(text: str, index: int, previous: str) -> str:
    """What a character is to the word before it: space, letter, symbol, or an extension of it."""
    character = text[index]
    code, category = ord(character), unicodedata.category(character)
    if 0x1F1E6 <= code <= 0x1F1FF:  # two of these make a flag
        return "extends" if previous == "flag" and _odd_flag(text, index) else "flag"
    if category == "Cf" or category[0] == "M" or 0x1F3FB <= code <= 0x1F3FF:
        return "extends"
    if category[0] in "ZC":
        return "space"
    if any(low <= code <= high for low, high in _IDEOGRAPHIC):
        return "ideograph"
    if category[0] in "LN" or character == "_":
        return "letter"
    within = previous == "letter" and index + 1 < len(text) and text[index + 1].isalpha()
    return "letter" if character in _APOSTROPHES and within else "symbol"


def _odd_flag(text: str, index: int) -> bool:
    """Whether this half of a flag is the second of its pair."""
    before = 0
    while index > before and 0x1F1E6 <= ord(text[index - before - 1]) <= 0x1F1FF:
        before += 1
    return before % 2 == 1
