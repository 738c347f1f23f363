"""Completeness. Sundararajan, Taly and Yan, ICML 2017, proposition 1; conservation for relevance.

Some methods promise that their scores sum to what the explained number is above that of a baseline.
Here both numbers are computed again, with the model, from the scores as they are.

It misleads where a sum is taken for an explanation: scores can sum to anything and still stand at
the wrong tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from pellucid._baselines import reference_pixels
from pellucid._case import Case
from pellucid._errors import ArgumentError, explain_error
from pellucid._kept import score_kept
from pellucid._needs import Needs
from pellucid._results import Explanation
from pellucid._spec import metric
from pellucid._types import Measured

Against = Literal[
    "claimed", "nothing", "removed", "zero", "black", "mean", "blur", "mask", "unk", "pad"
]


@metric(
    needs=Needs.GRADIENTS,
    cite=("sundararajan2017axiomatic", "montavon2017explaining"),
    better="lower",
    family="axioms",
    reads="explained",
    absolute=True,
    quick={"baseline": "zero"},
)
def completeness_gap(
    case: Case, explanations: Sequence[Explanation], *, baseline: Against = "claimed"
) -> Measured:
    """Distance of the sum of all scores from what they should sum to: |sum - (f(x) - f(baseline))|.

    The baseline is the one that the explanation "claimed", and one that claims none is skipped:
    integrated gradients have theirs among their parameters, relevance sums to f(x) itself, less
    than "nothing". Or it is named here: the text with the user's tokens "removed" or replaced by
    "mask", "unk" or "pad", "zero" embeddings, or an image that is "zero", "black", its "mean"
    colour or its "blur".
    """
    names = [_claimed(one) if baseline == "claimed" else baseline for one in explanations]
    levels = {name: _level(case, name) for name in dict.fromkeys(names) if name not in _NONE}
    values: list[float | None] = []
    for row, (explanation, name) in enumerate(zip(explanations, names, strict=True)):
        if name in _NONE:
            values.append(None)
            continue
        change = float(case.value[row]) - float(levels[name][row])
        values.append(abs(float(explanation.scores.double().sum()) - change))
    return Measured(values=values, skipped=[_NONE.get(name, "") for name in names])


_NONE = {
    "": "it does not claim that its scores sum to anything",
    "random": "its baseline was drawn at random and is not known any more",
}


def _claimed(explanation: Explanation) -> str:
    """The baseline that the scores are said to be counted from."""
    if "absorbed" in explanation.extras:
        return "nothing"
    if "completeness_gap" in explanation.extras:
        return str(explanation.params.get("baseline", "removed"))
    return ""


def _level(case: Case, name: str) -> Tensor:
    """The explained number of the baseline of every input (b)."""
    every = torch.arange(len(case.batch))
    if name == "nothing":
        return torch.zeros(len(every))
    if case.kind == "image" and name in ("zero", "black", "mean", "blur"):
        pixels = reference_pixels(case, name)  # type: ignore[arg-type]  # checked above
        return case.score_of(case.images.with_pixels(case.batch, pixels), every)
    if case.kind == "text" and name == "zero":
        x = case.input()
        content = case.content.to(x.device)[..., None]
        with torch.no_grad():
            return case.score_from(x.masked_fill(content, 0.0))
    if case.kind == "text" and name in ("removed", "mask", "unk", "pad"):
        by = "delete" if name == "removed" else name
        return score_kept(case, ~case.content, by)  # type: ignore[arg-type]  # checked above
    raise ArgumentError(
        explain_error(
            f"this is no baseline for {case.kind}s",
            got=f"baseline={name!r}",
            expected="'nothing', 'zero', 'black', 'mean' or 'blur'"
            if case.kind == "image"
            else "'nothing', 'removed', 'zero', 'mask', 'unk' or 'pad'",
            instead="baseline='zero'",
        )
    )
