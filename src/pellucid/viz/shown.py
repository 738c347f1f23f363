"""What of an explanation is shown, whatever it is drawn with: words, tokens, and their range."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pellucid._results import Explanation, Word
from pellucid._types import Text
from pellucid.viz.colour import Scale

_PIXELS = 0.99  # a few extreme pixels would leave the rest without colour


@dataclass(frozen=True)
class Run:
    """A stretch of a text: between words (`words` empty), one word, or several that share it."""

    text: str
    words: tuple[Word, ...] = ()

    @property
    def score(self) -> float:
        """The sum over the words."""
        return sum(word.score for word in self.words)


def runs(text: str, words: Sequence[Word]) -> Iterator[Run]:
    """The whole text in order, cut at the words; words without characters join a neighbour."""
    position = 0
    for start, end, group in _groups(words):
        if position < start:
            yield Run(text[position:start])
        yield Run(text[start:end] or group[0].text, tuple(group))
        position = end
    if position < len(text):
        yield Run(text[position:])


def tokens(explanation: Explanation) -> list[Word]:
    """The tokens that stand in the text, with their scores."""
    return [
        Word(segment.text, score, segment.span, segment.part)
        for segment, score in zip(explanation.segments, explanation.scores.tolist(), strict=True)
        if segment.role == "content" and segment.span is not None
    ]


def outside(explanation: Explanation) -> list[tuple[str, float]]:
    """The tokens that stand nowhere in the input, such as [CLS], with their scores."""
    if explanation.scores.dim() != 1:
        return []
    text = isinstance(explanation.item, Text)
    return [
        (segment.text, score)
        for segment, score in zip(explanation.segments, explanation.scores.tolist(), strict=True)
        if segment.role != "content" or (text and segment.span is None)
    ]


def scale_of(explanation: Explanation) -> Scale:
    """The one range by which everything in the explanation is coloured."""
    if isinstance(explanation.item, Text):
        units = [*explanation.words(), *tokens(explanation)]
        return Scale.of([word.score for word in units], explanation.signed)
    if explanation.scores.dim() == 1:
        return Scale.of(explanation.patches().numpy(), explanation.signed)
    return Scale.of(explanation.scores.double().numpy(), explanation.signed, _PIXELS)


def _groups(words: Sequence[Word]) -> list[tuple[int, int, list[Word]]]:
    """The words that share characters, with the characters [start, end) that they share."""
    groups: list[tuple[int, int, list[Word]]] = []
    for word in sorted(words, key=lambda word: word.span):
        start, end = word.span
        first, reach, group = groups[-1] if groups else (0, 0, [])
        if group and (start < reach or start == end or first == reach):
            groups[-1] = (first, max(reach, end), [*group, word])
        else:
            groups.append((start, end, [word]))
    return groups
