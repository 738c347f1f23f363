"""Order of the effects of single removals: leave-one-out. Jain and Wallace, NAACL 2019, section 4.

The companion of `removal_fidelity`, as the code of SLALOM's authors has it.

It misleads where words stand in for each other: no single removal changes anything then, and the
ranks are those of noise.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pellucid._case import Case
from pellucid._needs import Needs
from pellucid._results import Explanation
from pellucid._spec import metric
from pellucid._statistics import spearman
from pellucid._types import Measured
from pellucid.metrics._keeping import tokens_of, values_of_kept
from pellucid.metrics._predicting import predicted_change
from pellucid.metrics._ranking import tie_fraction

_FEWEST = 3  # tokens: an order of two says next to nothing


@metric(
    needs=Needs.TOKENS | Needs.TOKEN_DROP,
    cite=("jain2019attention", "leemann2024attention"),
    better="higher",
    family="faithfulness",
    kinds=("text",),
    reads="log_odds",
)
def removal_correlation(case: Case, explanations: Sequence[Explanation]) -> Measured:
    """Rank correlation of predicted and true change of log-odds as each token alone is removed."""
    kept = [_without_each(tokens_of(one)) for one in explanations]
    values, skipped, tied = [], [], []
    for explanation, keep, left in zip(explanations, kept, values_of_kept(case, kept), strict=True):
        predicted = predicted_change(explanation, keep)
        values.append(spearman(predicted, left) if len(keep) else None)
        skipped.append(_reason(predicted, left))
        tied.append(tie_fraction(predicted) if len(keep) else 0.0)
    return Measured(values=values, skipped=skipped, ties=tied)


def _without_each(own: Tensor) -> Tensor:
    """All tokens but one of the text's (m t); none where the text has too few."""
    one = torch.eye(len(own), dtype=torch.bool)[own]
    return ~one if len(one) >= _FEWEST else one[:0]


def _reason(predicted: Tensor, left: Tensor) -> str:
    if not len(left):
        return f"fewer than {_FEWEST} tokens"
    if len(predicted.unique()) == 1:
        return "all tokens score the same"
    return "every removal has the same effect" if len(left.unique()) == 1 else ""
