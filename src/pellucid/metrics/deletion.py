"""Deletion for images. Petsiuk et al., RISE, BMVC 2018; protocol as in TIS, section 5.

Take the pixels away in the order of their score, the highest first, and watch the probability of
the class: the faster it falls, the better the map. Masks are not explanations of what a model
would do on natural images: the changed pictures are unlike any that it was trained on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from pellucid._baselines import Baseline, Space, baseline_pixels
from pellucid._case import Case
from pellucid._errors import ArgumentError, explain_error
from pellucid._perturb import evaluate_versions
from pellucid._results import Explanation
from pellucid._spec import metric
from pellucid._types import Batch, Measured
from pellucid.metrics._ranking import Ties, ranks, tie_fraction

Schedule = Literal["linspace", "ceil"]


@metric(
    cite=("petsiuk2018rise", "englebert2023tis"),
    better="lower",
    family="faithfulness",
    kinds=("image",),
)
def deletion(
    case: Case,
    explanations: Sequence[Explanation],
    *,
    steps: int = 224,
    schedule: Schedule = "linspace",
    baseline: Baseline = "black",
    space: Space = "pixel",
    auc: Literal["rise", "tis"] = "rise",
    ties: Ties = "stable",
) -> Measured:
    """Area under the class probability as the highest-scored pixels are replaced, step by step.

    After step s, floor(s HW / steps) pixels are gone ("linspace") or min(HW, s ceil(HW / steps))
    ("ceil", the authors' code); the two agree where steps divides HW, as 224 does 224 x 224.
    """
    maps = [explanation.map() for explanation in explanations]
    order = torch.stack(
        [ranks(m, ties, g).view(m.shape) for m, g in zip(maps, case.generators, strict=True)]
    )
    counts = pixel_counts(order[0].numel(), steps, schedule)
    curves = deletion_curves(case, order, counts, baseline, space)  # b steps+1
    return Measured(
        values=_area(curves, auc).tolist(),
        curves=list(curves),
        ties=[tie_fraction(scores) for scores in maps],
    )


def pixel_counts(size: int, steps: int, schedule: Schedule) -> Tensor:
    """How many pixels are gone after each step, the last of which takes all (steps)."""
    if steps < 1:
        raise ArgumentError(
            explain_error(
                "deletion needs a step",
                got=f"steps={steps}",
                expected="at least 1",
                instead="steps=224",
            )
        )
    step = torch.arange(1, steps + 1)
    if schedule == "linspace":
        return step * size // steps
    return (step * math.ceil(size / steps)).clamp(max=size)


def deletion_curves(
    case: Case, order: Tensor, counts: Tensor, baseline: Baseline, space: Space
) -> Tensor:
    """p(class) with nothing replaced, then with the given numbers of pixels (b 1+steps)."""
    pixels = case.pixels  # b c h w
    distinct, inverse = counts.unique(return_inverse=True)
    base = baseline_pixels(case, pixels, baseline, space)
    order = order.to(pixels.device)

    def make(jobs: Tensor) -> Batch:
        rows = (jobs // len(distinct)).to(pixels.device)
        count = distinct[jobs % len(distinct)].to(pixels.device)
        replaced = order[rows] < count[:, None, None]  # j h w
        changed = torch.where(replaced[:, None], base[rows], pixels[rows])
        return case.images.with_pixels(case.batch.take(rows), changed)

    rows = torch.arange(len(order)).repeat_interleave(len(distinct))
    found = evaluate_versions(case, rows, make).view(len(order), -1)
    return torch.cat([case.value.cpu()[:, None], found[:, inverse]], dim=1)


def _area(curves: Tensor, auc: Literal["rise", "tis"]) -> Tensor:
    """The normalised trapezoid from step 0 ("rise"), or the mean of the later steps ("tis")."""
    if auc == "tis":
        return curves[:, 1:].mean(dim=1)
    return torch.trapezoid(curves, dim=1) / (curves.shape[1] - 1)
