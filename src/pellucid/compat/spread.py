"""Scores of patches and pixels over the numbers of an image, their sum kept."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pellucid._types import Picture


def spread(scores: Tensor, pictures: Sequence[Picture], channels: int) -> Tensor:
    """One number for each of the image's (b c h w), from scores of tokens (b t) or pixels (b h w).

    A patch's score is shared evenly by its pixels, and a pixel's by its channels, so that an image
    has the sum that its patches had; scores of the model's own tokens have no place in it, and a
    border that belongs to no patch gets zero.
    """
    if scores.dim() == 2:
        scores = torch.stack(
            [_over_pixels(row, one) for row, one in zip(scores, pictures, strict=True)]
        )
    return (scores / channels)[:, None].expand(-1, channels, -1, -1).clone()


def _over_pixels(scores: Tensor, picture: Picture) -> Tensor:
    found = scores.new_zeros(picture.view.shape[:2])
    for segment, score in zip(picture.segments, scores, strict=True):
        if segment.box is not None:
            top, left, bottom, right = segment.box
            found[top:bottom, left:right] = score / ((bottom - top) * (right - left))
    return found
