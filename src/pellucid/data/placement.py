"""Where a model's view lies in the original image, found by looking through the view.

Processors resize, crop and pad in their own ways, so pictures that are known go through them. A
ramp says roughly what part of the image is seen; how wide a stripe in its middle has become, and
where it has gone, are the scale and the shift to a tenth of a pixel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from pellucid._errors import ArgumentError, UnsupportedCombination, explain_error
from pellucid._images import read_image
from pellucid._results import Explanation
from pellucid._types import Picture
from pellucid.adapters.image import Preprocessing
from pellucid.data.masks import Box, checked_boxes, preprocessing_of

Array = np.ndarray[Any, np.dtype[Any]]
_WHITE = 255
_FEELS = 2  # pixels within which filters feel the edge of an image


@dataclass(frozen=True)
class Axis:
    """One axis of the view: a coordinate of the original is `scale` times its own and `offset`.

    Coordinates are those of edges: a pixel reaches from its number to the next.
    """

    scale: float
    offset: float
    length: int  # of the view

    def seen(self, original: Any) -> Any:
        """Where a coordinate of the original lies in the view."""
        return (original - self.offset) / self.scale


def move_boxes(model: Any, boxes: Iterable[Box], size: tuple[int, int]) -> list[Box | None]:
    """Boxes of an image of this height and width where the model sees them, with fractions.

    They are clipped to the view; a box that is cropped away entirely is None.
    """
    rows, columns = placement(preprocessing_of(model), size)
    found: list[Box | None] = []
    for left, top, right, bottom in checked_boxes(boxes, size):
        x = sorted(min(max(columns.seen(edge), 0.0), columns.length) for edge in (left, right))
        y = sorted(min(max(rows.seen(edge), 0.0), rows.length) for edge in (top, bottom))
        inside = x[0] < x[1] and y[0] < y[1]
        found.append((x[0], y[0], x[1], y[1]) if inside else None)
    return found


def to_original(model: Any, explanation: Explanation, image: Any) -> Tensor:
    """The map of an explanation in the pixels of the image that it is of (h w).

    It is read, bilinearly, at the centre of every pixel; one that the model did not see gets 0.
    """
    preprocessing = preprocessing_of(model)
    picture, _ = read_image(image, preprocessing.channels)
    item = explanation.item
    if not isinstance(item, Picture) or not np.array_equal(preprocessing.view(picture), item.view):
        raise ArgumentError(
            explain_error(
                "the explanation is not of this image as this model sees it",
                got=f"an explanation of {explanation.kind}, an image of {picture.size}",
                expected="the image and the model that `explain` was given",
                instead="pellucid.explain(model, image), then to_original(model, ex, image)",
            )
        )
    rows, columns = placement(preprocessing, (picture.height, picture.width))
    return _read(_read(explanation.map(), rows, picture.height).T, columns, picture.width).T


def placement(preprocessing: Preprocessing, size: tuple[int, int]) -> tuple[Axis, Axis]:
    """The vertical and the horizontal axis of the view of an image of this height and width."""

    def seen(values: Array) -> Array:
        mode = "L" if preprocessing.channels == 1 else "RGB"
        grey = np.broadcast_to(values, size).astype(np.uint8)
        return preprocessing.view(Image.fromarray(grey).convert(mode))[..., 0].astype(np.float64)

    black, white = seen(np.zeros(1)), seen(np.full(1, _WHITE))
    image = white - black == _WHITE  # the rest of the view is padding
    rows = _axis(lambda values: seen(values[:, None]) - black, image, size[0])
    columns = _axis(lambda values: (seen(values) - black).T, image.T, size[1])
    return rows, columns


def _axis(seen: Callable[[Array], Array], image: Any, length: int) -> Axis:
    """The axis along which brightness, one value a pixel of the original, is seen (view other)."""
    number, inside = np.arange(length), np.flatnonzero(image.any(axis=1))
    if len(inside):
        own = image.any(axis=0)
        level = _WHITE / (length - 1)  # of brightness, between two pixels of the original
        ramp = seen((number * level).round())[:, own].mean(axis=1)[inside] / level
        quarter = (ramp[-1] - ramp[0]) / 4
        start = math.ceil(ramp[0] + quarter)
        stop = max(math.floor(ramp[-1] - quarter), start) + 1
        striped = _WHITE * ((number >= start) & (number < stop))
        stripe = seen(striped)[:, own].mean(axis=1) / _WHITE
        if stripe.any():
            scale = float((stop - start) / stripe.sum())
            middle = (np.arange(len(stripe)) + 0.5) @ stripe / stripe.sum()
            offset = float((start + stop) / 2 - scale * middle)
            error = np.abs(scale * (inside + 0.5) + offset - (ramp + 0.5)).max()
            if error < _FEELS * max(1, scale) + 1 / level:
                return Axis(scale, offset, len(stripe))
    raise UnsupportedCombination(
        explain_error(
            "it cannot be told where this model's view lies in the image",
            got=f"a view in which {len(inside)} lines of {len(image)} are of the image, and uneven",
            expected="preprocessing that resizes, crops or pads",
            instead="explanation.map(), which is in the pixels of the view",
        )
    )


def _read(values: Tensor, axis: Axis, length: int) -> Tensor:
    """The rows of a map at the centres of the original's pixels."""
    at: Tensor = axis.seen(torch.arange(length, dtype=values.dtype, device=values.device) + 0.5)
    place = (at - 0.5).clamp(0, axis.length - 1)
    low = place.floor().long()
    high = (low + 1).clamp(max=axis.length - 1)
    part = (place - low)[:, None]
    found: Tensor = values[low] * (1 - part) + values[high] * part
    return found * ((at >= 0) & (at <= axis.length))[:, None]
