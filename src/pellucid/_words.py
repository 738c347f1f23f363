"""Words from sub-words, by character offsets, in any script.

A word is a run of letters, digits and the marks that belong to them; an ideograph or a kana
character is a word of its own (those scripts put no spaces between words); an emoji stays whole
with its modifiers and joiners. Tokens are never cut: where one spans several words, they are one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Literal, Protocol

import torch
from torch import Tensor

from pellucid._types import Segment

_JOINER, _APOSTROPHES = "\u200d", "'\u2019"
_IDEOGRAPHIC = (
    (0x3040, 0x30FF),  # kana
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)


class Scored(Protocol):
    """What is read of an explanation here."""

    @property
    def scores(self) -> Tensor: ...
    @property
    def segments(self) -> tuple[Segment, ...]: ...


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


def spaced_words(text: str) -> list[tuple[int, int]]:
    """The [start, end) characters of what stands between white space, as data sets count words."""
    return [found.span() for found in re.finditer(r"\S+", text)]


def words_of_tokens(explanation: Scored, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The tokens of the text and the word of each, as numbers, by the characters they share.

    A token of several words belongs to the one it covers most of; one of none is left out.
    """
    found: list[tuple[int, int]] = []
    for index, segment in enumerate(explanation.segments):
        if segment.role != "content" or segment.span is None or segment.part != 0:
            continue
        start, end = segment.span
        shared = [min(end, b) - max(start, a) for a, b in spans]
        most = max(shared, default=0)
        if most > 0:
            found.append((index, shared.index(most)))
    return found


def word_scores(
    explanation: Scored,
    spans: Sequence[tuple[int, int]],
    how: Literal["sum", "mean", "max"] = "sum",
) -> Tensor:
    """The score of each word (w): of its tokens the sum, the mean, or the largest by size.

    A word without a token gets 0.
    """
    tokens: list[list[int]] = [[] for _ in spans]
    for index, word in words_of_tokens(explanation, spans):
        tokens[word].append(index)
    scores = explanation.scores.double()
    found = torch.zeros(len(spans), dtype=torch.float64)
    for word, own in enumerate(tokens):
        if own and how == "max":
            found[word] = scores[own][scores[own].abs().argmax()]
        elif own:
            found[word] = scores[own].sum() if how == "sum" else scores[own].mean()
    return found


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
