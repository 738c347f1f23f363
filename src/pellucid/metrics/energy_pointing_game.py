"""The energy-based pointing game. Wang et al., Score-CAM, CVPR Workshops 2020.

It misleads where the model does not look at the object: a faithful map of a shortcut loses. A
signed map counts by its size, whatever its sign.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from pellucid._case import Case
from pellucid._results import Explanation
from pellucid._spec import metric
from pellucid._types import IGNORED, INSIDE, Measured


@metric(
    cite=("wang2020score", "englebert2023tis"),
    better="higher",
    family="localisation",
    kinds=("image",),
    truth="mask",
)
def energy_pointing_game(
    case: Case, explanations: Sequence[Explanation], truths: Sequence[Tensor]
) -> Measured:
    """The part of the map's size, sum |A| over the labelled pixels, that lies on the object.

    A map that is equal everywhere gets the part of the image that the object covers.
    """
    pairs = zip(explanations, truths, strict=True)
    sizes = [one.map().abs() * (truth != IGNORED) for one, truth in pairs]
    objects = [truth == INSIDE for truth in truths]
    skipped = [_reason(a, inside) for a, inside in zip(sizes, objects, strict=True)]
    values = [
        None if reason else float((a * inside).sum() / a.sum())
        for a, inside, reason in zip(sizes, objects, skipped, strict=True)
    ]
    return Measured(values=values, skipped=skipped)


def _reason(size: Tensor, inside: Tensor) -> str:
    if not inside.any():
        return "no object in the mask"
    return "" if size.any() else "a map of zeros"
