"""The scores as a search for people's reasons. DeYoung et al., ERASER, ACL 2020, section 4.1.

It misleads where plausible is taken for faithful: a model that is right for other reasons than
people are gets a low number for an honest map.
"""

from __future__ import annotations

from collections.abc import Sequence

from pellucid._case import Case
from pellucid._needs import Needs
from pellucid._results import Explanation
from pellucid._spec import metric
from pellucid._types import Marks, Measured
from pellucid.metrics._marked import Words, marked_words
from pellucid.metrics._ranking import tie_fraction
from pellucid.metrics.mean_average_precision import average_precision


@metric(
    needs=Needs.TOKENS,
    cite=("deyoung2020eraser", "mathew2021hatexplain"),
    better="higher",
    family="plausibility",
    kinds=("text",),
    truth="rationale",
)
def rationale_auprc(
    case: Case,
    explanations: Sequence[Explanation],
    truths: Sequence[Marks],
    *,
    words: Words = "sum",
    threshold: float = 0.5,
) -> Measured:
    """Area under the precision-recall curve of the scores as a search for the rationale's words.

    It is the average precision, without interpolation. A word belongs to the rationale where its
    mean mark is at least `threshold`. Constant scores get the part of the words that is marked.
    """
    values: list[float | None] = []
    skipped, tied = [], []
    for explanation, marks in zip(explanations, truths, strict=True):
        scores, marked = marked_words(explanation, marks, words)
        found = bool((marked >= threshold).any())
        values.append(average_precision(scores, marked >= threshold) if found else None)
        skipped.append("" if found else "no word is marked")
        tied.append(tie_fraction(scores))
    return Measured(values=values, skipped=skipped, ties=tied)
