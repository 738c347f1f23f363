"""Pixel accuracy of a map as a segmentation. Chefer et al., CVPR 2021; VTranM.

It misleads where the object is small: a map that marks nothing is right about almost all pixels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor

from pellucid._case import Case
from pellucid._results import Explanation
from pellucid._spec import metric
from pellucid._types import Measured
from pellucid.metrics._segmenting import segmented


def accuracy(counts: Mapping[str, int]) -> float | None:
    """Correct pixels of all that are labelled."""
    return counts["correct"] / counts["labelled"] if counts["labelled"] else None


@metric(
    cite=("chefer2021transformer", "wu2024token"),
    better="higher",
    family="localisation",
    kinds=("image",),
    truth="mask",
    pool=accuracy,
)
def pixel_accuracy(
    case: Case, explanations: Sequence[Explanation], truths: Sequence[Tensor]
) -> Measured:
    """The part of the labelled pixels that the map, cut at its mean, puts on the right side.

    A data set's number is made of the summed counts, not the mean over images.
    """
    counts = []
    for explanation, truth in zip(explanations, truths, strict=True):
        above, inside = segmented(explanation.map(), truth)
        counts.append({"correct": int((above == inside).sum()), "labelled": len(inside)})
    return Measured(
        values=[accuracy(one) for one in counts],
        skipped=["" if one["labelled"] else "no labelled pixel" for one in counts],
        counts=counts,
    )
