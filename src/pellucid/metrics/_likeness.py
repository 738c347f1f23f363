"""Structural similarity. Wang, Bovik, Sheikh and Simoncelli, TIP 2004, equation 13."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

_SIDE, _SIGMA = 11, 1.5  # of the window
_C1, _C2 = 0.01**2, 0.03**2  # for images between 0 and 1


def ssim(one: Tensor, other: Tensor) -> float:
    """The mean of the index over all windows that lie within both images (h w).

    Where an image is smaller than a window, the window is as small.
    """
    sides = [min(_SIDE, side) for side in one.shape]
    window = torch.outer(*(_gaussian(side) for side in sides))[None, None]

    def mean(image: Tensor) -> Tensor:
        return F.conv2d(image.double()[None, None], window)[0, 0]

    a, b = mean(one), mean(other)
    var_a, var_b = mean(one.double() ** 2) - a**2, mean(other.double() ** 2) - b**2
    together = mean(one.double() * other.double()) - a * b
    index = (2 * a * b + _C1) * (2 * together + _C2)
    return float((index / ((a**2 + b**2 + _C1) * (var_a + var_b + _C2))).mean())


def _gaussian(side: int) -> Tensor:
    offsets = torch.arange(side, dtype=torch.float64) - (side - 1) / 2
    weights = torch.exp(-0.5 * (offsets / _SIGMA) ** 2)
    return weights / weights.sum()
