"""What a metric compares with besides the model: the mask of an object, or the right class."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from pellucid._errors import ArgumentError, explain_error
from pellucid._results import Explanation
from pellucid._spec import Metric
from pellucid._types import IGNORED, INSIDE, OUTSIDE
from pellucid.adapters.base import Adapter, Images
from pellucid.adapters.image import Preprocessing


def read_truths(
    truth: Any, explanations: Sequence[Explanation], several: bool, spec: Metric, adapter: Adapter
) -> list[Any]:
    """What belongs to each explanation, as the metric reads it."""
    if (truth is None) != (spec.truth is None):
        raise ArgumentError(
            explain_error(
                f"metric {spec.name!r} compares with {_MEANING[spec.truth]}",
                got="truth=None" if truth is None else f"truth: {type(truth).__name__}",
                expected="no truth=" if spec.truth is None else f"truth={_MEANING[spec.truth]}",
                instead="leave truth= out" if spec.truth is None else f"truth={spec.truth}",
            )
        )
    if spec.truth is None:
        return [None] * len(explanations)
    found = list(truth) if several and hasattr(truth, "__len__") else [truth]
    if len(found) != len(explanations) or (several and isinstance(truth, str)):
        raise ArgumentError(
            explain_error(
                "every explanation has its own truth",
                got=f"{len(found)} for {len(explanations)} explanations",
                expected="a list of the same length, in the same order",
                instead=f"truth=[{spec.truth} for each explanation]",
            )
        )
    if spec.truth == "label":
        return [class_of(one, adapter) for one in found]
    preprocessing = cast(Images, adapter).reader.preprocessing
    return [_moved(_checked(one), preprocessing) for one in found]


_MEANING = {
    None: "nothing besides the model",
    "mask": "the mask of the object",
    "label": "the right class",
}


def class_of(label: Any, adapter: Adapter) -> int:
    """The number of a class, given by its name or by a number of any library."""
    named = operator.index(label) if hasattr(label, "__index__") else label
    return adapter.class_index(named, "truth")


def _checked(mask: Any) -> np.ndarray[Any, Any]:
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


_VALUES = (IGNORED, OUTSIDE, INSIDE)


def _moved(mask: np.ndarray[Any, Any], preprocessing: Preprocessing) -> Tensor:
    """The mask where the model sees it (h w).

    Each value goes through the geometry of the image as a white picture on black; a pixel gets the
    value that has most of it, and what lies beyond the image is not counted.
    """
    mode = "L" if preprocessing.channels == 1 else "RGB"
    pictures = [Image.fromarray((mask == v).astype(np.uint8) * 255).convert(mode) for v in _VALUES]
    shares = np.stack([preprocessing.view(picture)[..., 0] for picture in pictures])  # v h w
    return torch.from_numpy(shares.argmax(axis=0) + IGNORED)


def mask_of_boxes(boxes: Any, height: int, width: int) -> np.ndarray[Any, Any]:
    """The union of boxes (x_min, y_min, x_max, y_max) on an image, the last column and row outside.

    Corners are cut to whole pixels and to the image, so a box that has no area there adds nothing.
    """
    corners = np.asarray(boxes, dtype=float)
    shaped = corners.ndim == 2 and corners.shape[1] == 4 and np.isfinite(corners).all()
    if len(corners) and not shaped:
        raise ArgumentError(
            explain_error(
                "these are not the boxes of an object",
                got=f"boxes of shape {corners.shape}",
                expected="(x_min, y_min, x_max, y_max) in pixels of the image, for each box",
                instead="boxes=[(48, 240, 195, 371)]",
            )
        )
    mask = np.zeros((height, width), dtype=np.int8)
    for left, top, right, bottom in corners.astype(int).clip(min=0).reshape(-1, 4).tolist():
        mask[top:bottom, left:right] = INSIDE
    return mask
