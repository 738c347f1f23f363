"""Likeness to the words that people gave as their reasons. Benfenati et al. 2024, on HateXplain.

It misleads where plausible is taken for faithful, and with signed scores: words that speak against
the class count against the likeness.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from torch import Tensor

from pellucid._case import Case
from pellucid._needs import Needs
from pellucid._results import Explanation
from pellucid._spec import metric
from pellucid._types import Marks, Measured
from pellucid.metrics._marked import Words, marked_words


@metric(
    needs=Needs.TOKENS,
    cite=("benfenati2024unveiling", "mathew2021hatexplain"),
    better="higher",
    family="plausibility",
    kinds=("text",),
    truth="rationale",
)
def rationale_cosine(
    case: Case,
    explanations: Sequence[Explanation],
    truths: Sequence[Marks],
    *,
    words: Words = "sum",
    scale: Literal["none", "minmax"] = "none",
) -> Measured:
    """Cosine between the scores of the words and the mean rationale of several people.

    Dividing the scores by their maximum, as is done before, changes nothing. "minmax", which moves
    the lowest to 0 and the highest to 1, does: constant scores are then zeros.
    """
    values, skipped = [], []
    for explanation, marks in zip(explanations, truths, strict=True):
        scores, marked = marked_words(explanation, marks, words)
        if scale == "minmax" and len(scores):
            scores = scores - scores.min()
        reason = "no word is marked" if not marked.any() else _none(scores)
        values.append(None if reason else cosine(scores, marked))
        skipped.append(reason)
    return Measured(values=values, skipped=skipped)


def cosine(scores: Tensor, marked: Tensor) -> float:
    """<s, g> / |s| |g|."""
    return float((scores / scores.norm()) @ (marked / marked.norm()))


def _none(scores: Tensor) -> str:
    return "" if scores.any() else "scores of zeros"
