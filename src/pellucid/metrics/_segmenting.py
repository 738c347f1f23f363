"""A map as a segmentation: what it takes for the object. Chefer et al., CVPR 2021."""

from __future__ import annotations

import torch
from torch import Tensor

from pellucid._types import IGNORED, INSIDE


def segmented(scores: Tensor, truth: Tensor) -> tuple[Tensor, Tensor]:
    """Above the mean of the map or not, and on the object or not, where the truth is known (n).

    The mean is that of the whole image.
    """
    known = truth != IGNORED
    return (scores > _mean(scores))[known], (truth == INSIDE)[known]


def unit_scores(scores: Tensor) -> Tensor:
    """The map between 0 and 1; a constant one has no range and gets 0 everywhere."""
    low, high = scores.min(), scores.max()
    return (scores - low) / (high - low) if high > low else torch.zeros_like(scores)


def _mean(scores: Tensor) -> Tensor:
    """The mean, which rounding must not put below the scores of a constant map."""
    return scores.mean() if scores.max() > scores.min() else scores.max()
