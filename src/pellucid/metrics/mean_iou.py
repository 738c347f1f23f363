"""Mean intersection over union of a map as a segmentation. Chefer et al., CVPR 2021; VTranM.

It misleads where the object is not what the model goes by, and for maps with a few high peaks, of
which the cut at the mean keeps little.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor

from pellucid._case import Case
from pellucid._results import Explanation
from pellucid._spec import metric
from pellucid._types import Measured
from pellucid.metrics._segmenting import segmented

_CLASSES = ("object", "background")


def mean_of_ious(counts: Mapping[str, int]) -> float | None:
    """The mean over object and background of both / either, without a class that is nowhere."""
    ious = [
        counts[f"both_{name}"] / counts[f"either_{name}"]
        for name in _CLASSES
        if counts[f"either_{name}"]
    ]
    return sum(ious) / len(ious) if ious else None


@metric(
    cite=("chefer2021transformer", "wu2024token"),
    better="higher",
    family="localisation",
    kinds=("image",),
    truth="mask",
    pool=mean_of_ious,
)
def mean_iou(case: Case, explanations: Sequence[Explanation], truths: Sequence[Tensor]) -> Measured:
    """Intersection over union of the map, cut at its mean: the mean of object and background.

    A data set's number is made of the summed counts, which differs from the mean over images. Of
    one image, a class that its mask does not have is left out.
    """
    counts, values = [], []
    for explanation, truth in zip(explanations, truths, strict=True):
        above, inside = segmented(explanation.map(), truth)
        found = _overlaps("object", above, inside) | _overlaps("background", ~above, ~inside)
        present = {"object": bool(inside.any()), "background": bool((~inside).any())}
        counts.append(found)
        values.append(mean_of_ious({k: n * present[k.split("_")[1]] for k, n in found.items()}))
    return Measured(
        values=values,
        skipped=["no labelled pixel" if value is None else "" for value in values],
        counts=counts,
    )


def _overlaps(name: str, found: Tensor, true: Tensor) -> dict[str, int]:
    return {
        f"both_{name}": int((found & true).sum()),
        f"either_{name}": int((found | true).sum()),
    }
