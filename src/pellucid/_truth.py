"""What a metric compares with besides the model: a mask, the right class, or marks of people."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from pellucid._errors import ArgumentError, explain_error
from pellucid._marks import read_marks
from pellucid._results import Explanation
from pellucid._spec import Metric
from pellucid.adapters.base import Adapter, Images
from pellucid.adapters.image import Preprocessing
from pellucid.data.masks import checked_mask, moved_mask


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
    if spec.truth in ("rationale", "attention"):
        return [read_marks(one, ex) for one, ex in zip(found, explanations, strict=True)]
    preprocessing = cast(Images, adapter).reader.preprocessing
    return [_moved(checked_mask(one), preprocessing) for one in found]


_MEANING = {
    None: "nothing besides the model",
    "mask": "the mask of the object",
    "label": "the right class",
    "rationale": "the words that people gave as their reasons",
    "attention": "the words that people looked at",
}


def class_of(label: Any, adapter: Adapter) -> int:
    """The number of a class, given by its name or by a number of any library."""
    named = operator.index(label) if hasattr(label, "__index__") else label
    return adapter.class_index(named, "truth")


def _moved(mask: np.ndarray[Any, Any], preprocessing: Preprocessing) -> Tensor:
    """The mask where the model sees it (h w)."""
    return torch.from_numpy(moved_mask(mask, preprocessing)).long()
