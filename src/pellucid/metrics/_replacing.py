"""Images whose pixels are replaced in the order of their scores, and the curve that it gives.

A version is one whole number: 0 is the image itself, k > 0 has its k highest-scored pixels
replaced, and -k has only those left. So deletion and insertion share their ends, and a version that
is asked for twice is evaluated once, whichever metric or method asks.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Hashable, Sequence
from typing import Literal

import torch
from torch import Tensor

from pellucid._answers import PREDICTED, answers_to
from pellucid._baselines import Baseline, Space, baseline_pixels
from pellucid._case import Case
from pellucid._errors import ArgumentError, explain_error
from pellucid._target import QUANTITIES
from pellucid._types import Batch
from pellucid.metrics._ranking import Ties, inverse, ranks

Schedule = Literal["linspace", "ceil"]
Area = Literal["rise", "tis"]


def pixel_order(case: Case, maps: Sequence[Tensor], ties: Ties) -> Tensor:
    """The rank of every pixel, 0 for the highest score (b h w)."""
    found = [ranks(m, ties, g).view(m.shape) for m, g in zip(maps, case.generators, strict=True)]
    return torch.stack(found).int()


def pixel_counts(size: int, steps: int, schedule: Schedule, metric: str) -> Tensor:
    """How many pixels are changed after each step, the last of which takes all (steps)."""
    if steps < 1:
        raise ArgumentError(
            explain_error(
                f"{metric} needs a step",
                got=f"steps={steps}",
                expected="at least 1",
                instead="steps=224",
            )
        )
    step = torch.arange(1, steps + 1)
    if schedule == "linspace":
        return step * size // steps
    return (step * math.ceil(size / steps)).clamp(max=size)


def deleted(counts: Tensor) -> Tensor:
    """The versions of deletion: the image, then the image without so many pixels (1+steps)."""
    return torch.cat([counts.new_zeros(1), counts])


def inserted(counts: Tensor, size: int) -> Tensor:
    """The versions of insertion: the baseline, then the baseline with so many pixels (1+steps)."""
    only = torch.where(counts < size, -counts, 0)  # all pixels: the image itself
    only = torch.where(counts > 0, only, size)  # no pixel: nothing but the baseline
    return torch.cat([counts.new_full((1,), size), only])


def replacing_curves(
    case: Case, order: Tensor, versions: Tensor, baseline: Baseline, space: Space
) -> Tensor:
    """The number of the class that is read, for these versions of each image (b v)."""
    read = QUANTITIES.index(case.target.quantity or "logit")
    return _answers(case, order, versions, baseline, space)[..., read]


def predicted_classes(
    case: Case, order: Tensor, versions: Tensor, baseline: Baseline, space: Space
) -> Tensor:
    """The class that is predicted for these versions of each image (b v)."""
    return _answers(case, order, versions, baseline, space)[..., PREDICTED].long()


def _answers(
    case: Case, order: Tensor, versions: Tensor, baseline: Baseline, space: Space
) -> Tensor:
    """What the model answers to these versions of each image (b v q+1)."""
    base = baseline_pixels(case, case.pixels, baseline, space)  # b c h w
    rows = torch.arange(len(order)).repeat_interleave(len(versions))
    make = replaced_batches(case, order, versions, base)
    found = answers_to(case, rows, _keys(order, versions, case.pixels, base), make)
    return found.view(len(order), len(versions), -1)


def _keys(order: Tensor, versions: Tensor, pixels: Tensor, base: Tensor) -> list[Hashable]:
    """What was done to each image in each version.

    Replacing a pixel by its equal is doing nothing, so only pixels that differ are counted: black
    ground need not be blackened again. The ends do not depend on the order.
    """
    keys: list[Hashable] = []
    for own, x, other in zip(order.flatten(1), pixels.cpu(), base.cpu(), strict=True):
        sequence = inverse(own)  # of pixels, the highest-scored first
        changes = (x != other).any(dim=0).flatten()[sequence]
        among = torch.cat([changes.new_zeros(1), changes]).cumsum(dim=0)  # the first 0, 1, ...
        first, every = among[versions.abs()], int(among[-1])
        replaced = torch.where(versions >= 0, first, every - first)
        ranked, replacement = _digest(sequence[changes]), _digest(other)
        ends: dict[int, Hashable] = {every: replacement, 0: "unchanged"}
        for number, kept in zip(replaced.tolist(), (versions < 0).tolist(), strict=True):
            keys.append(ends.get(number, (ranked, replacement, number, kept)))
    return keys


def _digest(tensor: Tensor) -> bytes:
    content = tensor.cpu().contiguous().view(torch.uint8)  # numpy has no bfloat16
    return hashlib.sha256(content.numpy().tobytes()).digest()


def replaced_batches(
    case: Case, order: Tensor, versions: Tensor, base: Tensor
) -> Callable[[Tensor], Batch]:
    """What makes the batch of some jobs; job r * len(versions) + v is version v of image r."""
    pixels = case.pixels  # b c h w
    order, versions = order.to(pixels.device), versions.to(pixels.device)

    def make(jobs: Tensor) -> Batch:
        jobs = jobs.to(pixels.device)
        rows, version = jobs // len(versions), versions[jobs % len(versions)][:, None, None]
        first = order[rows] < version.abs()  # j h w
        changed = torch.where((first == (version >= 0))[:, None], base[rows], pixels[rows])
        return case.images.with_pixels(case.batch.take(rows), changed)

    return make


def area(curves: Tensor, auc: Area) -> Tensor:
    """The normalised trapezoid from step 0 ("rise"), or the mean of the later steps ("tis")."""
    if auc == "tis":
        return curves[:, 1:].mean(dim=1)
    return torch.trapezoid(curves, dim=1) / (curves.shape[1] - 1)
