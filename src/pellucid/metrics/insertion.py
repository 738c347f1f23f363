"""Insertion for images. Petsiuk et al., RISE, BMVC 2018; protocol as in TIS, section 5.

Put the pixels of the image in the place of the baseline's, the highest-scored first, and watch the
probability of the class: the faster it rises, the better the map.

It misleads where a blurred picture still shows the object: the curve then starts high for every
map, and the differences between methods are small.
"""

from __future__ import annotations

from collections.abc import Sequence

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
    inserted,
    pixel_counts,
    pixel_order,
    replacing_curves,
)


@metric(
    cite=("petsiuk2018rise", "englebert2023tis"),
    better="higher",
    family="faithfulness",
    kinds=("image",),
)
def insertion(
    case: Case,
    explanations: Sequence[Explanation],
    *,
    steps: int = 224,
    schedule: Schedule = "linspace",
    baseline: Baseline = "blur",
    space: Space = "pixel",
    auc: Area = "rise",
    ties: Ties = "stable",
) -> Measured:
    """Area under the class probability as the highest-scored pixels appear on the baseline.

    The steps are those of `deletion`; the first number of the curve is that of the baseline alone.
    """
    maps = [explanation.map() for explanation in explanations]
    order = pixel_order(case, maps, ties)
    size = order[0].numel()
    versions = inserted(pixel_counts(size, steps, schedule, "insertion"), size)
    curves = replacing_curves(case, order, versions, baseline, space)  # b 1+steps
    return Measured(
        values=area(curves, auc).tolist(),
        curves=list(curves),
        ties=[tie_fraction(scores) for scores in maps],
    )
