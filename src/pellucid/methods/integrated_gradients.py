"""Integrated gradients. Sundararajan, Taly and Yan, ICML 2017, equation 1.

The integral is a Gauss-Legendre sum, which is exact where the gradient on the way is a polynomial
of degree below twice the steps. What the scores then lack of their sum is reported, not hidden.

It misleads where the baseline is not the absence that is meant, or where the way to it leads
through inputs unlike any that were seen: half a word is no word. Change the baseline and look
again.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from pellucid._arguments import integer
from pellucid._baselines import Reference, reference_pixels
from pellucid._case import Case
from pellucid._errors import ArgumentError, explain_error
from pellucid._needs import Needs
from pellucid._perturb import gradients, sum_by_row
from pellucid._spec import method
from pellucid._types import Attribution

Baseline = Literal["zero", "black", "mean", "random", "blur", "mask", "unk", "pad"]
_PIXELS, _TOKENS = get_args(Reference), ("zero", "mask", "unk", "pad")
_LARGE = 0.05  # of the change that is explained: a gap that the reader is told of


@method(
    needs=Needs.GRADIENTS,
    cite="sundararajan2017axiomatic",
    signed=True,
    presets={"tis": {"steps": 50, "baseline": "zero"}},
    quick={"steps": 4},
)
def integrated_gradients(
    case: Case, *, steps: int = 50, baseline: Baseline = "zero"
) -> Attribution:
    """The way from a baseline to the input times the mean gradient on it; sums to the change.

    The `baseline` of an image is "zero" after normalisation, "black", its "mean" colour, a "blur"
    of it or "random" colours; that of a text is "zero" embeddings or a "mask", "unk" or "pad" token
    in every place, and the model's own tokens stay. `steps` are points of the Gauss-Legendre rule.

    The extra "completeness_gap" is the sum of all scores less the change that they should sum to.
    """
    x, start = case.input(), _baseline(case, baseline)
    nodes, weights = _legendre(integer("steps", steps, 1, 50), x)
    mean = torch.zeros_like(x, dtype=case.dtype)
    way = x - start

    def point(rows: Tensor, k: Tensor) -> Tensor:
        return start[rows] + _along(nodes[k], way) * way[rows]

    for rows, k, found in gradients(case, steps, point):
        mean += sum_by_row(rows, _along(weights[k], found) * found, len(x))
    scores = case.sum_features(way * mean)
    with torch.no_grad():
        change = case.value - case.score_from(start)
    gap = scores.double().flatten(1).sum(dim=1) - change
    return Attribution(scores, {"completeness_gap": gap}, _notes(gap, change, steps))


def _along(numbers: Tensor, state: Tensor) -> Tensor:
    """One number a state, with axes to multiply it by."""
    return numbers.to(state.dtype).view(-1, *[1] * (state.dim() - 1))


def _legendre(steps: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Nodes between 0 and 1, and weights that sum to 1."""
    nodes, weights = np.polynomial.legendre.leggauss(steps)
    found = torch.from_numpy(nodes), torch.from_numpy(weights)
    return (1 + found[0]).to(like.device) / 2, found[1].to(like.device) / 2


def _baseline(case: Case, name: Baseline) -> Tensor:
    """Where the way begins: an image, or a text of which only the model's own tokens are left."""
    known = _PIXELS if case.kind == "image" else _TOKENS
    if name not in known:
        raise ArgumentError(
            explain_error(
                f"this is no baseline for {case.kind}s",
                got=f"baseline={name!r}",
                expected=f"one of {', '.join(map(repr, known))}",
                instead="baseline='zero'",
            )
        )
    if case.kind == "image":
        return reference_pixels(case, name)  # type: ignore[arg-type]  # checked above
    x = case.input()
    empty = torch.zeros_like(x) if name == "zero" else case.blank(name)  # type: ignore[arg-type]
    return torch.where(case.content.to(x.device)[..., None], empty, x)


def _notes(gap: Tensor, change: Tensor, steps: int) -> list[tuple[str, ...]]:
    """A sentence for every input whose scores are far from summing to what they explain."""
    return [
        (
            f"the scores sum to {total + lack:.4g} where the target changed by {total:.4g}: "
            f"more steps than {steps} would be closer",
        )
        if abs(lack) > _LARGE * abs(total)
        else ()
        for lack, total in zip(gap.tolist(), change.tolist(), strict=True)
    ]
