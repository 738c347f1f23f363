"""Words from sub-words, by character offsets, in any script.

A word is a run of letters, digits and the marks that belong to them; an ideograph or a kana
character is a word of its own (those scripts put no spaces between words); an emoji stays whole
with its modifiers and joiners. Tokens are never cut: where one spans several words, they are one.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

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
    for index, character in enumerate(text):
        kind = _kind(text, index, previous)
        if kind == "space":
            previous = kind
        elif kind == "extends" and spans and previous != "space":
            spans[-1] = (spans[-1][0], index + 1)
            previous = "joined" if character == _JOINER else previous
        elif spans and ((kind == previous == "letter") or previous == "joined"):
            spans[-1] = (spans[-1][0], index + 1)
            previous = kind
        else:
            spans.append((index, index + 1))
            previous = kind
    return spans


def group_by_word(text: str, spans: Sequence[tuple[int, int]]) -> list[list[int]]:
    """The indices of the tokens (given by their character spans) that make up each word."""
    words = word_spans(text)
    groups: list[list[int]] = []
    reach = -1  # the last word that the group so far touches
    for index, (start, end) in sorted(enumerate(spans), key=lambda item: item[1]):
        touched = [w for w, (a, b) in enumerate(words) if a < end and start < b]
        if groups and (not touched or touched[0] <= reach):
            groups[-1].append(index)
        else:
            groups.append([index])
        reach = max([reach, *touched])
    return groups


def align(text: str, pieces: Sequence[str]) -> list[tuple[int, int]]:
    """Character spans of decoded token texts, for tokenizers that report none or wrong ones.

    A piece that is not found (half of a character, a normalised one) shares the character at which
    it stands.
    """
    spans: list[tuple[int, int]] = []
    position = 0
    folded = text.casefold() if len(text.casefold()) == len(text) else text
    for piece in pieces:
        bare = piece.strip().casefold()
        found = folded.find(bare, position) if bare else -1
        if found < 0:
            spans.append((min(position, len(text)), min(position + 1, len(text))))
            continue
        spans.append((found, found + len(bare)))
        position = found + len(bare)
    return spans


def _kind(text: str, index: int, previous: str) -> str:
    """What a character is to the word before it: space, letter, symbol, or an extension of it."""
    character = text[index]
    category = unicodedata.category(character)
    if character == _JOINER or category[0] == "M" or 0x1F3FB <= ord(character) <= 0x1F3FF:
        return "extends"
    if category[0] in "ZC":
        return "space"
    if any(low <= ord(character) <= high for low, high in _IDEOGRAPHIC):
        return "ideograph"
    if category[0] in "LN" or character == "_":
        return "letter"
    within = previous == "letter" and index + 1 < len(text) and text[index + 1].isalpha()
    return "letter" if character in _APOSTROPHES and within else "symbol"
