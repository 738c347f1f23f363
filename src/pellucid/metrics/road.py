"""ROAD: remove and debias. Rong et al., ICML 2022.

Pixels are removed in the order of their score, as in a perturbation test, but what stands in their
place is what their neighbours suggest, so that the mask itself does not tell the class.

It misleads where neighbours cannot stand in for what was removed, as at edges and in texture; of
one image it is a coarse number.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pellucid._answers import PREDICTED
from pellucid._arguments import real
from pellucid._case import Case
from pellucid._errors import ArgumentError, explain_error
from pellucid._perturb import stream
from pellucid._results import Explanation
from pellucid._spec import metric
from pellucid._types import Measured
from pellucid.metrics._imputing import imputed
from pellucid.metrics._ranking import Ties, tie_fraction
from pellucid.metrics._replacing import pixel_order


@metric(
    cite="rong2022consistent",
    better="lower",
    family="faithfulness",
    kinds=("image",),
    truth="label",
    quick={"percent": (10, 50)},
)
def road(
    case: Case,
    explanations: Sequence[Explanation],
    labels: Sequence[int],
    *,
    percent: Sequence[float] = (10, 20, 30, 40, 50, 70, 90),
    noise: float = 0.01,
    ties: Ties = "stable",
) -> Measured:
    """Mean accuracy without the highest-scored 10, 20, ... 90 % of pixels, imputed by neighbours.

    An imputed pixel is the mean of its neighbours and normal noise of size `noise`, in the numbers
    that the model reads. Of one image the accuracy is 1 or 0 at each level. For the order that
    removes the lowest first, measure ``dataclasses.replace(ex, scores=-ex.scores)``.
    """
    maps = [explanation.map() for explanation in explanations]
    order = pixel_order(case, maps, ties)  # b h w
    counts = torch.tensor([int(one * order[0].numel() / 100) for one in _checked(percent)])
    classes = _classes(case, order, counts, real("noise", noise, 0.01))  # b levels
    correct = (classes == torch.tensor(labels)[:, None]).double()
    return Measured(
        values=correct.mean(dim=1).tolist(),
        curves=list(correct),
        ties=[tie_fraction(scores) for scores in maps],
    )


def _classes(case: Case, order: Tensor, counts: Tensor, noise: float) -> Tensor:
    """The class predicted without so many of each image's pixels (b levels)."""
    pixels = case.pixels
    rows = torch.arange(len(order)).repeat_interleave(len(counts))

    def work(jobs: Tensor) -> Tensor:
        own, level = rows[jobs], jobs % len(counts)
        removed = (order[own] < counts[level][:, None, None]).to(pixels.device)  # j h w
        drawn = [
            torch.randn(pixels.shape[1:], generator=case.generator(row, number))
            for row, number in zip(own.tolist(), level.tolist(), strict=True)
        ]
        filled = imputed(pixels[own], removed)
        filled = filled + noise * torch.stack(drawn).to(pixels) * removed[:, None]
        answers = case.answer(case.images.with_pixels(case.batch.take(own), filled), own)
        return answers[:, PREDICTED].long().cpu()

    classes = torch.empty(len(rows), dtype=torch.long)
    for jobs, found in stream(case, rows, work):
        classes[jobs] = found
    return classes.view(len(order), -1)


def _checked(percent: Sequence[float]) -> list[float]:
    """Parts of the image that leave something to impute from."""
    found = [real("percent", one, 10) for one in percent]
    if not found or not all(0 < one < 100 for one in found):
        raise ArgumentError(
            explain_error(
                "these are not parts of an image that can be imputed from the rest",
                got=f"percent={percent!r}",
                expected="numbers above 0 and below 100",
                instead="percent=(10, 20, 30, 40, 50, 70, 90)",
            )
        )
    return found
