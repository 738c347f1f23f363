"""Infidelity. Yeh et al., NeurIPS 2019, definition 2.1.

How far the scores are from saying what a perturbation I does: E[(I . A - (f(x) - f(x - I)))^2].

It misleads where maps are compared that mean different things: scores are read as numbers of a
given scale, so an unscaled map may lose to a map of zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from pellucid._arguments import integer, real
from pellucid._baselines import Reference, reference_pixels
from pellucid._case import Case
from pellucid._errors import ArgumentError, explain_error
from pellucid._needs import Needs
from pellucid._perturb import score_pixels
from pellucid._results import Explanation
from pellucid._spec import metric
from pellucid._types import Measured
from pellucid.metrics._keeping import tokens_of, values_of_kept


@metric(
    needs=Needs.NOTHING,  # any image can be painted over, and any text shortened
    cite="yeh2019infidelity",
    better="lower",
    family="faithfulness",
    reads="explained",
    absolute=True,
    quick={"samples": 6},
)
def infidelity(
    case: Case,
    explanations: Sequence[Explanation],
    *,
    samples: int = 100,
    by: Literal["removal", "noise"] = "removal",
    side: int = 0,
    baseline: Reference = "zero",
    sigma: float = 0.2,
    scale: bool = False,
) -> Measured:
    """Mean squared error of the scores as a prediction of what random perturbations change.

    "removal" takes away random tokens of a text, each number of them as likely, or hides a random
    square of an image by the `baseline`, `side` pixels long (0: a quarter of the shorter side); the
    prediction is the sum of the scores there, so it is for scores that share out the explained
    number. "noise" adds normal numbers of size `sigma`, as the model reads them and the same for
    all channels of a pixel; the prediction is their product with the map, so it is for gradients.

    With `scale`, the scores are first multiplied by the factor that fits best: section 3.2.
    """
    integer("samples", samples, 1, 100)
    if case.kind == "image":
        pairs = _of_images(case, explanations, samples, by, side, baseline, sigma)
    else:
        pairs = _of_texts(case, explanations, samples, by)
    return Measured(
        values=[_error(*pair, scale) if len(pair[0]) else None for pair in pairs],
        skipped=["" if len(pair[0]) else "fewer than 2 tokens" for pair in pairs],
    )


def _error(predicted: Tensor, lost: Tensor, scale: bool) -> float:
    size = predicted.square().mean()
    if scale and size > 0:
        predicted = predicted * (predicted * lost).mean() / size
    return float((predicted - lost).square().mean())


def _of_texts(
    case: Case, explanations: Sequence[Explanation], samples: int, by: str
) -> list[tuple[Tensor, Tensor]]:
    """For each text, the sums of removed scores and what the target lost (samples)."""
    if by != "removal":
        raise ArgumentError(
            explain_error(
                "tokens are removed, noise is for pixels",
                got=f"by={by!r} for a text",
                expected="by='removal'",
                instead="by='removal'",
            )
        )
    kept = [_removals(case, row, tokens_of(one), samples) for row, one in enumerate(explanations)]
    found = zip(explanations, kept, values_of_kept(case, kept), case.value.tolist(), strict=True)
    return [
        ((~keep).double() @ explanation.scores.double(), value - left)
        for explanation, keep, left, value in found
    ]


def _removals(case: Case, row: int, own: Tensor, samples: int) -> Tensor:
    """What stays after 1 to n - 1 random tokens went (samples t); nothing for a single token."""
    many = int(own.sum())
    kept = torch.ones(samples if many > 1 else 0, len(own), dtype=torch.bool)
    for j, stays in enumerate(kept):
        generator = case.generator(row, j)
        gone = int(torch.randint(1, many, (1,), generator=generator))
        stays[own] = torch.randperm(many, generator=generator) >= gone
    return kept


def _of_images(
    case: Case,
    explanations: Sequence[Explanation],
    samples: int,
    by: str,
    side: int,
    baseline: Reference,
    sigma: float,
) -> list[tuple[Tensor, Tensor]]:
    """For each image, I . A and what the target lost (samples)."""
    x = case.pixels
    height, width = x.shape[-2:]
    length = min(integer("side", side, 0, 56) or min(height, width) // 4, height, width)
    empty = reference_pixels(case, baseline) if by == "removal" else x

    def changed(rows: Tensor, numbers: Tensor) -> tuple[Tensor, Tensor]:
        draw = [case.generator(*pair) for pair in zip(rows.tolist(), numbers.tolist(), strict=True)]
        if by == "noise":
            drawn = torch.stack([torch.randn(height, width, generator=g) for g in draw])
            noise = real("sigma", sigma, 0.2) * drawn.to(x)
            return x[rows] - noise[:, None], noise
        hidden = torch.stack([_square(height, width, length, g) for g in draw]).to(x.device)
        return torch.where(hidden[:, None], empty[rows], x[rows]), hidden

    maps = torch.stack([_shared_out(one, height, width) for one in explanations])  # b h w
    predicted = torch.empty(len(maps), samples, dtype=torch.float64)
    lost = torch.empty_like(predicted)
    for rows, numbers, change, left in score_pixels(case, [samples] * len(maps), changed):
        predicted[rows, numbers] = (change.cpu().double() * maps[rows]).sum(dim=(1, 2))
        lost[rows, numbers] = (case.value[rows.to(case.value.device)] - left).cpu().double()
    return list(zip(predicted, lost, strict=True))


def _shared_out(explanation: Explanation, height: int, width: int) -> Tensor:
    """The scores of pixels, or those of patches spread evenly over theirs (h w)."""
    if explanation.scores.dim() == 2:
        return explanation.scores.double()
    found = torch.zeros(height, width, dtype=torch.float64)
    for segment, score in zip(explanation.segments, explanation.scores.tolist(), strict=True):
        if segment.box is not None:
            top, left, bottom, right = segment.box
            found[top:bottom, left:right] += score / ((bottom - top) * (right - left))
    return found


def _square(height: int, width: int, side: int, generator: torch.Generator) -> Tensor:
    """True on a square of the image (h w), each place of it as likely."""
    top, left = (
        int(torch.randint(0, size - side + 1, (1,), generator=generator))
        for size in (height, width)
    )
    mask = torch.zeros(height, width, dtype=torch.bool)
    mask[top : top + side, left : left + side] = True
    return mask
