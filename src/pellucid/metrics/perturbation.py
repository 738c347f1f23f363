"""Positive and negative perturbation. Chefer et al., CVPR 2021; the 21 levels of VTranM, B.3.

Blacken the pixels in the order of their score and watch the accuracy: it should fall at once where
the highest go first, and hold where the lowest do. Which class was explained, the predicted or the
right one, is a matter of the explanation; accuracy is by the right one (`truth=`) for both.

It misleads where black pixels are evidence of their own, and for images that the model gets wrong
to begin with, which count as lost at every level.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pellucid._baselines import Baseline, Space
from pellucid._case import Case
from pellucid._results import Explanation
from pellucid._spec import metric
from pellucid._types import Measured
from pellucid.metrics._ranking import Ties, tie_fraction
from pellucid.metrics._replacing import (
    area,
    deleted,
    pixel_counts,
    pixel_order,
    predicted_classes,
)


@metric(
    cite=("chefer2021transformer", "wu2024token"),
    better="lower",
    family="faithfulness",
    kinds=("image",),
    truth="label",
)
def positive_perturbation(
    case: Case,
    explanations: Sequence[Explanation],
    labels: Sequence[int],
    *,
    steps: int = 20,
    baseline: Baseline = "black",
    space: Space = "pixel",
    ties: Ties = "stable",
) -> Measured:
    """Area under the accuracy as the highest-scored pixels are blackened, 5 % at a time.

    Of one image the accuracy is 1 or 0 at each level; the area for a data set is the mean.
    """
    maps = [explanation.map() for explanation in explanations]
    return _perturbed(case, maps, labels, steps, baseline, space, ties)


@metric(
    cite=("chefer2021transformer", "wu2024token"),
    better="higher",
    family="faithfulness",
    kinds=("image",),
    truth="label",
)
def negative_perturbation(
    case: Case,
    explanations: Sequence[Explanation],
    labels: Sequence[int],
    *,
    steps: int = 20,
    baseline: Baseline = "black",
    space: Space = "pixel",
    ties: Ties = "stable",
) -> Measured:
    """Area under the accuracy as the lowest-scored pixels are blackened, 5 % at a time.

    Of one image the accuracy is 1 or 0 at each level; the area for a data set is the mean.
    """
    maps = [-explanation.map() for explanation in explanations]
    return _perturbed(case, maps, labels, steps, baseline, space, ties)


def _perturbed(
    case: Case,
    maps: Sequence[Tensor],
    labels: Sequence[int],
    steps: int,
    baseline: Baseline,
    space: Space,
    ties: Ties,
) -> Measured:
    """Accuracy with the first floor(s HW / steps) pixels gone, s = 0 ... steps, and its area."""
    order = pixel_order(case, maps, ties)
    counts = pixel_counts(order[0].numel(), steps, "linspace", "a perturbation test")
    classes = predicted_classes(case, order, deleted(counts), baseline, space)  # b 1+steps
    correct = (classes == torch.tensor(labels)[:, None]).double()
    return Measured(
        values=area(correct, "rise").tolist(),
        curves=list(correct),
        ties=[tie_fraction(scores) for scores in maps],
    )
