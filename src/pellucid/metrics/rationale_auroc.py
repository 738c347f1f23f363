"""Whether words that people gave as their reasons score higher than others. DeYoung et al. 2020.

It misleads where plausible is taken for faithful: a model that is right for other reasons than
people are gets a low number for an honest map.
"""

from __future__ import annotations

from collections.abc import Sequence

from pellucid._case import Case
from pellucid._needs import Needs
from pellucid._rank_statistics import auroc
from pellucid._results import Explanation
from pellucid._spec import metric
from pellucid._types import Marks, Measured
from pellucid.metrics._marked import Words, marked_words, reason_without
from pellucid.metrics._ranking import tie_fraction


@metric(
    needs=Needs.TOKENS,
    cite=("deyoung2020eraser", "mathew2021hatexplain"),
    better="higher",
    family="plausibility",
    kinds=("text",),
    truth="rationale",
)
def rationale_auroc(
    case: Case,
    explanations: Sequence[Explanation],
    truths: Sequence[Marks],
    *,
    words: Words = "sum",
    threshold: float = 0.5,
) -> Measured:
    """Chance that a word of the rationale scores higher than another word; 0.5 tells nothing.

    A word belongs to the rationale where its mean mark is at least `threshold`. Equal scores count
    one half.
    """
    values, skipped, tied = [], [], []
    for explanation, marks in zip(explanations, truths, strict=True):
        scores, marked = marked_words(explanation, marks, words)
        values.append(auroc(scores, marked >= threshold))
        skipped.append(reason_without(marked >= threshold))
        tied.append(tie_fraction(scores))
    return Measured(values=values, skipped=skipped, ties=tied)
