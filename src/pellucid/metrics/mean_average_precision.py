"""Average precision of a map as a segmentation. Chefer et al., CVPR 2021; VTranM.

The mean over a data set is the mean of one average precision an image.

It misleads where the object is not what the model goes by; a segmentation of the object is not an
explanation of a decision.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from pellucid._case import Case
from pellucid._results import Explanation
from pellucid._spec import metric
from pellucid._types import IGNORED, INSIDE, Measured
from pellucid.metrics._ranking import tie_fraction
from pellucid.metrics._segmenting import unit_scores


@metric(
    cite=("chefer2021transformer", "wu2024token"),
    better="higher",
    family="localisation",
    kinds=("image",),
    truth="mask",
)
def mean_average_precision(
    case: Case,
    explanations: Sequence[Explanation],
    truths: Sequence[Tensor],
    *,
    of: Literal["both", "object"] = "both",
) -> Measured:
    """Average precision of the map on the object and of its opposite on the background.

    "both" ranks the two decisions of every pixel in one list; "object" ranks the map alone.
    """
    maps = [explanation.map() for explanation in explanations]
    values = [
        _of_one(scores, truth, of == "both") for scores, truth in zip(maps, truths, strict=True)
    ]
    return Measured(
        values=values,
        skipped=["nothing to find in the mask" if value is None else "" for value in values],
        ties=[tie_fraction(scores) for scores in maps],
    )


def _of_one(scores: Tensor, truth: Tensor, both: bool) -> float | None:
    known = truth != IGNORED
    r, inside = unit_scores(scores)[known], (truth == INSIDE)[known]
    if both:
        opposite = 1 - r if scores.max() > scores.min() else r  # a constant map says neither
        r, inside = torch.cat([opposite, r]), torch.cat([~inside, inside])
    return average_precision(r, inside) if inside.any() else None


def average_precision(scores: Tensor, positive: Tensor) -> float:
    """AP = sum_n (R_n - R_{n-1}) P_n over the distinct scores, the highest first."""
    order = scores.argsort(descending=True)
    ranked, hits = scores[order], positive[order].double().cumsum(dim=0)
    last = torch.cat([ranked[1:] != ranked[:-1], ranked.new_ones(1, dtype=torch.bool)])
    ends = last.nonzero().flatten()  # of each run of equal scores
    precision = hits[ends] / (ends + 1)
    recall = hits[ends] / hits[-1]
    return float((recall.diff(prepend=recall.new_zeros(1)) * precision).sum())
