"""The words of a text with their scores, beside the numbers that people gave them."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from pellucid._results import Explanation
from pellucid._types import Marks
from pellucid._words import word_scores

Words = Literal["sum", "mean", "max"]  # a word's score, from those of its tokens


def marked_words(explanation: Explanation, marks: Marks, words: Words) -> tuple[Tensor, Tensor]:
    """The score of each word and the mean number that people gave it (w).

    Words behind the last token, which were cut off before the model read the text, do not count.
    """
    ends = [s.span[1] for s in explanation.segments if s.role == "content" and s.span is not None]
    read = [start < max(ends, default=0) for start, _ in marks.spans]
    return word_scores(explanation, marks.spans, words)[read], marks.numbers.mean(dim=0)[read]


def reason_without(marked: Tensor) -> str:
    """Why there is nothing to tell apart, or nothing at all."""
    if not marked.any():
        return "no word is marked"
    return "every word is marked" if marked.all() else ""
