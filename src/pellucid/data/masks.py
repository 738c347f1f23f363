"""Masks and boxes of objects, and how they move with their image into what the model sees."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from PIL import Image
from torch import Tensor

from pellucid._errors import ArgumentError, InputError, explain_error
from pellucid._images import opened
from pellucid._types import IGNORED, INSIDE, OUTSIDE
from pellucid.adapters import as_adapter
from pellucid.adapters.base import Images
from pellucid.adapters.image import Preprocessing

Mask = np.ndarray[Any, np.dtype[np.int8]]  # h w
Box = tuple[float, float, float, float]  # x_min, y_min, x_max, y_max
_VALUES = (IGNORED, OUTSIDE, INSIDE)


def move_mask(model: Any, mask: Any) -> Mask:
    """The mask of an image where the model sees it (h w)."""
    return moved_mask(checked_mask(mask), preprocessing_of(model))


def moved_mask(mask: Mask, preprocessing: Preprocessing) -> Mask:
    """Each value goes through the geometry of the image as a white picture on black.

    A pixel gets the value that has most of it, and what lies beyond the image is not counted.
    """
    mode = "L" if preprocessing.channels == 1 else "RGB"
    pictures = [Image.fromarray((mask == v).astype(np.uint8) * 255).convert(mode) for v in _VALUES]
    shares = np.stack([preprocessing.view(picture)[..., 0] for picture in pictures])  # v h w
    return cast(Mask, (shares.argmax(axis=0) + IGNORED).astype(np.int8))


def preprocessing_of(model: Any) -> Preprocessing:
    """The geometry of what a model of images reads."""
    adapter = as_adapter(model)
    if adapter.kind != "image":
        raise ArgumentError(
            explain_error(
                "masks and boxes move with images",
                got=f"{adapter.name}, which reads texts",
                expected="a model of images",
                instead="pellucid.load('pellucid/digits-vit')",
            )
        )
    return cast(Images, adapter).reader.preprocessing


# ---- masks ---------------------------------------------------------------------------------------


def checked_mask(mask: Any) -> Mask:
    """The mask as whole numbers (h w)."""
    if isinstance(mask, Tensor):
        mask = mask.detach().cpu().numpy()
    values = np.asarray(mask)
    numbers = values.dtype.kind in "biuf"
    if values.ndim != 2 or not values.size or not numbers or not np.isin(values, _VALUES).all():
        shown = np.unique(values).tolist()[:5] if numbers else values.dtype
        raise ArgumentError(
            explain_error(
                "this is not the mask of an object",
                got=f"truth of shape {values.shape} with {shown}",
                expected="(height, width) of 1 inside, 0 outside and -1 where it is not counted",
                instead="truth=np.where(trimap == 3, -1, trimap == 1)",
            )
        )
    return values.astype(np.int8)


def decoded_mask(raw: Any, codes: Mapping[int, int] | None = None) -> Mask:
    """The mask that is stored as an image or an array; `codes` says what its values mean.

    Without codes, 0 is outside and the only other value, 1 or 255, is inside.
    """
    values = np.asarray(raw if isinstance(raw, np.ndarray | Tensor) else opened(raw))
    found = set(np.unique(values).tolist())
    plain = {0: OUTSIDE, 1: INSIDE} if found <= {0, 1} else {0: OUTSIDE, 255: INSIDE}
    meaning = plain if codes is None else codes
    if values.ndim != 2 or not found <= set(meaning) or not set(meaning.values()) <= set(_VALUES):
        raise InputError(
            explain_error(
                "the values of this mask have no meaning",
                got=f"shape {values.shape} with {sorted(found)[:8]}, read by {dict(meaning)}",
                expected="one channel, and 1 (inside), 0 (outside) or -1 (not counted) for each",
                instead="codes={1: 1, 2: 0, 3: -1}",
            )
        )
    mask = np.full(values.shape, IGNORED, dtype=np.int8)
    for value, meant in meaning.items():
        mask[values == value] = meant
    return mask


# ---- boxes ---------------------------------------------------------------------------------------


def boxes_to_mask(boxes: Iterable[Box], size: tuple[int, int]) -> Mask:
    """The union of boxes in an image of this height and width, edges cut down to whole pixels."""
    mask = np.full(size, OUTSIDE, dtype=np.int8)
    for box in checked_boxes(boxes, size):
        left, top, right, bottom = map(int, box)
        mask[top:bottom, left:right] = INSIDE
    return mask


def checked_boxes(boxes: Any, size: tuple[int, int]) -> tuple[Box, ...]:
    """The boxes, clipped to their image; one that lies wholly outside belongs to another."""
    height, width = size
    return tuple(_clipped(box, height, width) for box in boxes)


def _clipped(raw: Any, height: int, width: int) -> Box:
    corners = [float(edge) for edge in raw] if _is_box(raw) else []
    if len(corners) == 4 and np.isfinite(corners).all():
        left, top, right, bottom = corners
        some = left < width and top < height and right > 0 and bottom > 0
        if left <= right and top <= bottom and some:
            return max(left, 0.0), max(top, 0.0), min(right, width), min(bottom, height)
    raise InputError(
        explain_error(
            "this is not a box in the picture",
            got=f"{raw!r} in a picture {width} wide and {height} high",
            expected="(x_min, y_min, x_max, y_max) in its pixels, half-open, some of it inside",
            instead=f"boxes=[(0, 0, {width}, {height})]",
        )
    )


def _is_box(raw: Any) -> bool:
    if isinstance(raw, Sequence) and not isinstance(raw, str | bytes):
        return all(isinstance(edge, int | float | np.number) for edge in raw)
    return isinstance(raw, np.ndarray | Tensor) and raw.ndim == 1
