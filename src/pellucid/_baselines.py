"""What stands in the place of pixels that are taken away."""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from pellucid._case import Case

Baseline = Literal["black", "mean", "random", "blur"]
Space = Literal["pixel", "normalized"]
Reference = Literal["zero", "black", "mean", "random", "blur"]


def baseline_pixels(case: Case, pixels: Tensor, baseline: Baseline, space: Space) -> Tensor:
    """The replacement of every pixel (b c h w), in the numbers that the model reads.

    Papers mean different things by one word. In "pixel" space black is black, the mean is the
    image's own colour, noise is uniform over colours; in "normalized" space black is zero (the data
    set's mean colour), the mean is one number over all channels, noise is uniform on [0, 1) after
    normalisation.
    """
    reader = case.images.reader
    literal = space == "pixel"
    if baseline == "black":
        return (reader.black(pixels) if literal else pixels.new_zeros(1, 1, 1, 1)).expand_as(pixels)
    if baseline == "mean":
        return pixels.mean(dim=(2, 3) if literal else (1, 2, 3), keepdim=True).expand_as(pixels)
    if baseline == "random":
        generators = case.generators_of("baseline")  # so that all metrics replace by one image
        drawn = [torch.rand(pixels.shape[1:], generator=g) for g in generators]
        noise = torch.stack(drawn).to(pixels)
        return reader.normalise(noise) if literal else noise
    return blurred(pixels)


def reference_pixels(case: Case, name: Reference) -> Tensor:
    """The image that a method compares with or hides by (b c h w), as the model reads it.

    "zero" is zero after normalisation, the data set's mean colour; the others are as one sees them.
    """
    if name == "zero":
        return torch.zeros_like(case.pixels)
    return baseline_pixels(case, case.pixels, name, "pixel")


def blurred(pixels: Tensor, size: int = 11, sigma: float = 5.0) -> Tensor:
    """Gaussian blur with reflected borders, as RISE's baseline (11 x 11, sigma 5)."""
    offsets = torch.arange(size, dtype=pixels.dtype, device=pixels.device) - size // 2
    weights = torch.exp(-0.5 * (offsets / sigma) ** 2)
    weights = weights / weights.sum()
    channels, margin = pixels.shape[1], size // 2
    padded = F.pad(pixels, (margin,) * 4, mode="reflect")
    rows = F.conv2d(padded, weights.view(1, 1, -1, 1).expand(channels, 1, -1, 1), groups=channels)
    return F.conv2d(rows, weights.view(1, 1, 1, -1).expand(channels, 1, 1, -1), groups=channels)
