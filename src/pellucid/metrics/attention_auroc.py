"""Whether tokens that people looked at score higher. SLALOM's paper, section 6.3, on Yelp-HAT.

People's attention has no sign, so the size of a score counts.

It misleads where it is taken for faithfulness: a model may be right for reasons that no person
looked at, and the faithful map then scores low.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from pellucid._case import Case
from pellucid._needs import Needs
from pellucid._rank_statistics import auroc
from pellucid._results import Explanation
from pellucid._spec import metric
from pellucid._types import Marks, Measured
from pellucid._words import words_of_tokens
from pellucid.metrics._marked import reason_without
from pellucid.metrics._ranking import tie_fraction

Consensus = Literal["and", "or", "majority"]


@metric(
    needs=Needs.TOKENS,
    cite=("leemann2024attention", "sen2020human"),
    better="higher",
    family="plausibility",
    kinds=("text",),
    truth="attention",
)
def attention_auroc(
    case: Case,
    explanations: Sequence[Explanation],
    truths: Sequence[Marks],
    *,
    consensus: Consensus = "and",
    unit: Literal["position", "type"] = "position",
) -> Measured:
    """Chance that a token that people looked at has a larger score than another, in absolute size.

    A word counts where all people marked it ("and"), one of them did ("or"), or more than half did
    ("majority"); its tokens inherit that, and tokens of punctuation are left out. "type", the
    released evaluation, takes each token once: its first score and its last mark.
    """
    values, skipped, tied = [], [], []
    for explanation, marks in zip(explanations, truths, strict=True):
        scores, seen = _tokens(explanation, _agreed(marks.numbers, consensus), marks, unit)
        values.append(auroc(scores, seen))
        skipped.append(reason_without(seen))
        tied.append(tie_fraction(scores))
    return Measured(values=values, skipped=skipped, ties=tied)


def _agreed(numbers: Tensor, consensus: Consensus) -> Tensor:
    """Whether a word counts as looked at (w), by what several people marked (p w)."""
    if consensus == "majority":
        return (numbers > 0).double().mean(dim=0) > 0.5
    return (numbers > 0).all(dim=0) if consensus == "and" else (numbers > 0).any(dim=0)


def _tokens(
    explanation: Explanation, agreed: Tensor, marks: Marks, unit: str
) -> tuple[Tensor, Tensor]:
    """The size of the score of each token, and whether people looked at it (n)."""
    scores = explanation.scores.double()
    size = scores.abs() if explanation.signed else scores
    found: dict[int | str, tuple[float, bool]] = {}
    for index, word in words_of_tokens(explanation.segments, marks.spans):
        text = explanation.segments[index].text
        if _is_punctuation(text):
            continue
        key = text if unit == "type" else index
        first, _ = found.get(key, (float(size[index]), False))
        found[key] = (first, bool(agreed[word]))
    sizes, seen = zip(*found.values(), strict=True) if found else ((), ())
    return torch.tensor(sizes, dtype=torch.float64), torch.tensor(seen, dtype=torch.bool)


def _is_punctuation(text: str) -> bool:
    return set(text.strip()) <= set(".,!?;:")  # those that the released evaluation leaves out
