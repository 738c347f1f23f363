"""Noisy linear imputation. Rong et al., ICML 2022, section 4.3.

A removed pixel becomes the weighted mean of its neighbours, removed ones included: one linear
system for all of them. Its matrix is the Laplacian of the grid of pixels, restricted to those
removed, so it is symmetric and positive definite, and conjugate gradients solve it with nothing but
sums of neighbours, many images at once.
"""

from __future__ import annotations

import torch
from torch import Tensor

_ACCURACY = 1e-8  # of the residual, relative to the right-hand side
_STEPS = 2000


def imputed(images: Tensor, removed: Tensor) -> Tensor:
    """The images (j c h w) with the mean of its neighbours in every removed pixel (j h w).

    At the border the weights of the neighbours that there are sum to less, and are scaled up.
    """
    gone = removed[:, None]  # j 1 h w
    known = torch.where(gone, 0.0, images.double())
    total = _around(torch.ones_like(known[:, :1]))  # the weight of all neighbours
    solved = _solved(known, gone, total)
    return torch.where(gone, solved, known).to(images)


def _solved(known: Tensor, gone: Tensor, total: Tensor) -> Tensor:
    """x with total x - around(x) = around(known) on the removed pixels, and zero elsewhere."""
    right = _around(known) * gone
    x = torch.zeros_like(right)
    residual = right
    direction = residual / total
    size = (residual * direction).sum(dim=(-2, -1), keepdim=True)  # j c 1 1
    enough = _ACCURACY**2 * size
    for _ in range(_STEPS):
        if bool((size <= enough).all()):
            break
        image = (total * direction - _around(direction)) * gone
        curvature = (direction * image).sum(dim=(-2, -1), keepdim=True)
        step = torch.where(size > enough, size / curvature.clamp(min=1e-300), 0.0)
        x, residual = x + step * direction, residual - step * image
        scaled = residual / total
        smaller = (residual * scaled).sum(dim=(-2, -1), keepdim=True)
        direction = scaled + smaller / size.clamp(min=1e-300) * direction
        size = torch.where(size > enough, smaller, size)
    return x


def _around(x: Tensor) -> Tensor:
    """The sum of the eight neighbours of every pixel (j c h w), 1/6 of the near, 1/12 of the far.

    The weights are [1 2 1]' [1 2 1] / 12 but for the pixel itself.
    """
    return (_along(_along(x, -1), -2) - 4 * x) / 12


def _along(x: Tensor, axis: int) -> Tensor:
    """Twice each number and its two neighbours along an axis, beyond the border nothing."""
    found = 2 * x
    size = x.shape[axis]
    found.narrow(axis, 1, size - 1).add_(x.narrow(axis, 0, size - 1))
    found.narrow(axis, 0, size - 1).add_(x.narrow(axis, 1, size - 1))
    return found
