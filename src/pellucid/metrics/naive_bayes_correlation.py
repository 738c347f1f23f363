"""Agreement with how often tokens occur in each class. SLALOM's paper, section 6.3 and E.4.

It misleads where the model is better than counting words: it is then right to differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from pellucid._arguments import real
from pellucid._case import Case
from pellucid._errors import ArgumentError, explain_error
from pellucid._needs import Needs
from pellucid._results import Explanation
from pellucid._spec import metric
from pellucid._statistics import spearman
from pellucid._types import Measured
from pellucid.metrics._ranking import tie_fraction

_FEWEST = 3  # different tokens


@metric(
    needs=Needs.TOKENS,
    cite="leemann2024attention",
    better="higher",
    family="plausibility",
    kinds=("text",),
    quick={"weights": {"the": 0.1, "film": 0.5, "is": -0.2, "a": 0.3, "of": -0.4, "t": 0.7}},
)
def naive_bayes_correlation(
    case: Case, explanations: Sequence[Explanation], *, weights: Mapping[str, float] | None = None
) -> Measured:
    """Rank correlation of the scores with naive-Bayes weights of the tokens, each token once.

    `weights` are those of the class that was explained, log((n1 + a) / (n0 + a)) of each token as
    `pellucid.surrogates.NaiveBayes` counts it: ``dict(zip(nb.units, nb.weight.tolist()))``. A token
    counts with its first score, one without a weight not at all; scores without a sign are compared
    with the size of the weights.
    """
    known = _checked(weights)
    values, skipped, tied = [], [], []
    for explanation in explanations:
        scores, reference = _pairs(explanation, known)
        enough = len(scores) >= _FEWEST
        values.append(spearman(scores, reference) if enough else None)
        skipped.append(_reason(scores, reference) if enough else _too_few(len(scores)))
        tied.append(tie_fraction(scores) if enough else 0.0)
    return Measured(values=values, skipped=skipped, ties=tied)


def _pairs(explanation: Explanation, weights: Mapping[str, float]) -> tuple[Tensor, Tensor]:
    """The first score of every different token that has a weight, and that weight (n)."""
    first: dict[str, float] = {}
    for segment, score in zip(explanation.segments, explanation.scores.tolist(), strict=True):
        if segment.role == "content" and segment.text in weights:
            first.setdefault(segment.text, score)
    reference = torch.tensor([weights[token] for token in first], dtype=torch.float64)
    scores = torch.tensor(list(first.values()), dtype=torch.float64)
    return scores, reference if explanation.signed else reference.abs()


def _reason(scores: Tensor, reference: Tensor) -> str:
    if len(scores.unique()) == 1:
        return "all tokens score the same"
    return "all tokens have the same weight" if len(reference.unique()) == 1 else ""


def _too_few(many: int) -> str:
    return f"{many} different tokens with a weight, fewer than {_FEWEST}"


def _checked(weights: Any) -> Mapping[str, float]:
    """Finite weights by the text of the token."""
    named = isinstance(weights, Mapping) and all(isinstance(token, str) for token in weights)
    if named and weights:
        return {token: real(f"weights[{token!r}]", w) for token, w in weights.items()}
    raise ArgumentError(
        explain_error(
            "naive_bayes_correlation compares with weights of tokens",
            got=f"weights: {type(weights).__name__}",
            expected="a finite number for each token's text, in a dictionary that is not empty",
            instead="weights=dict(zip(nb.units, nb.weight.tolist()))",
        )
    )
