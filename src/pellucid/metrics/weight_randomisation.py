"""Sanity check by random weights. Adebayo et al., NeurIPS 2018, section 3.

An explanation that stays as it was when the model forgets what it learnt is not about the model.

It misleads where different is taken for right: a map that changes with the weights may still be
wrong, and a metric of ranks calls two maps of one object alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from pellucid._case import Case
from pellucid._errors import ArgumentError, explain_error
from pellucid._needs import Needs
from pellucid._results import Explanation
from pellucid._spec import metric
from pellucid._statistics import spearman
from pellucid._types import Measured
from pellucid.metrics._keeping import tokens_of
from pellucid.metrics._likeness import ssim
from pellucid.metrics._ranking import tie_fraction


@metric(
    needs=Needs.STREAM,
    cite="adebayo2018sanity",
    better="lower",
    family="sanity",
)
def weight_randomisation(
    case: Case,
    explanations: Sequence[Explanation],
    *,
    order: Literal["cascading", "independent"] = "cascading",
    likeness: Literal["spearman", "ssim"] = "spearman",
    absolute: bool = False,
    method: Callable[..., Any] | None = None,
) -> Measured:
    """Mean likeness of the scores to those for the same model with ever more random weights.

    The parts are what is behind the blocks, each block from the last to the first, and what is
    before them; the curve has a number for each. "cascading" leaves a part random when the next one
    follows, "independent" has one at a time. A weight is drawn with the mean and the spread that
    its tensor has, in a copy of the model. Likeness is the correlation of ranks (the paper has it
    with and without the sign: `absolute`), or the structural similarity of the maps of images.
    Constant scores are like nothing: 0. `method` is the function that made the explanations, where
    it is none of pellucid's own.
    """
    like = _of_ranks if likeness == "spearman" else _structural
    if likeness == "ssim" and case.kind == "text":
        raise ArgumentError(
            explain_error(
                "tokens have no neighbourhood that could be similar in structure",
                got=f"likeness={likeness!r} for texts",
                expected="likeness='spearman'",
                instead="likeness='spearman'",
            )
        )
    before = [_prepared(_stored(one), one, absolute) for one in explanations]
    stages: list[list[float]] = []
    for _, changed in case.randomised(cascading=order == "cascading"):
        found = []
        for row, explanation in enumerate(explanations):
            (scores,) = case.explained_again(row, explanation, method, adapter=changed)
            found.append(like(before[row], _prepared(scores, explanation, absolute)))
        stages.append(found)
    curves = torch.tensor(stages, dtype=torch.float64).T  # b parts
    told = [len(scores.unique()) > 1 for scores in before]
    return Measured(
        values=[float(c.mean()) if one else None for c, one in zip(curves, told, strict=True)],
        curves=list(curves),
        ties=[tie_fraction(scores) for scores in before],
        skipped=["" if one else "all scores are the same" for one in told],
    )


def _stored(explanation: Explanation) -> Tensor:
    return explanation.scores if explanation.kind == "text" else explanation.map()


def _prepared(scores: Tensor, explanation: Explanation, absolute: bool) -> Tensor:
    """What is compared: the scores of the user's own tokens (n), or the map (h w)."""
    own = scores[tokens_of(explanation)] if explanation.kind == "text" else scores
    return own.double().abs() if absolute else own.double()


def _of_ranks(one: Tensor, other: Tensor) -> float:
    return spearman(one, other) or 0.0


def _structural(one: Tensor, other: Tensor) -> float:
    return ssim(*(_between_zero_and_one(each) for each in (one, other)))


def _between_zero_and_one(scores: Tensor) -> Tensor:
    span = scores.max() - scores.min()
    return (scores - scores.min()) / span if span > 0 else torch.zeros_like(scores)
