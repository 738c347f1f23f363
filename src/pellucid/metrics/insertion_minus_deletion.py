"""Insertion minus deletion. Englebert et al., TIS, ICCV Workshops 2023, section 5.

One pass of forwards gives both curves; they share their ends. A model that answers the same to
every picture gets zero, whatever the map.

It misleads as both of its parts do, and a good deletion can hide a bad insertion.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from pellucid._baselines import Baseline, Space
from pellucid._case import Case
from pellucid._results import Explanation
from pellucid._spec import metric
from pellucid._types import Measured
from pellucid.metrics._ranking import Ties, tie_fraction
from pellucid.metrics._replacing import (
    Area,
    Schedule,
    area,
    deleted,
    inserted,
    pixel_counts,
    pixel_order,
    replacing_curves,
)


@metric(
    cite="englebert2023tis",
    better="higher",
    family="faithfulness",
    kinds=("image",),
)
def insertion_minus_deletion(
    case: Case,
    explanations: Sequence[Explanation],
    *,
    steps: int = 224,
    schedule: Schedule = "linspace",
    baseline: Baseline = "black",
    space: Space = "pixel",
    auc: Area = "rise",
    ties: Ties = "stable",
) -> Measured:
    """The area under insertion less the area under deletion, from one baseline.

    The curve is that of insertion less that of deletion, step by step.
    """
    maps = [explanation.map() for explanation in explanations]
    order = pixel_order(case, maps, ties)
    size = order[0].numel()
    counts = pixel_counts(size, steps, schedule, "insertion_minus_deletion")
    versions = torch.cat([inserted(counts, size), deleted(counts)])
    curves = replacing_curves(case, order, versions, baseline, space)  # b 2*(1+steps)
    insertion, deletion = curves.chunk(2, dim=1)
    return Measured(
        values=(area(insertion, auc) - area(deletion, auc)).tolist(),
        curves=list(insertion - deletion),
        ties=[tie_fraction(scores) for scores in maps],
    )
