"""Deletion for images. Petsiuk et al., RISE, BMVC 2018; protocol as in TIS, section 5.

Take the pixels away in the order of their score, the highest first, and watch the probability of
the class: the faster it falls, the better the map. Masks are not explanations of what a model
would do on natural images: the changed pictures are unlike any that it was trained on.

It misleads where the baseline itself decides: black, blur and mean colour give different orders of
methods, and maps of scattered pixels make pictures that a model fears most.
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
    deleted,
    pixel_counts,
    pixel_order,
    replacing_curves,
)


@metric(
    cite=("petsiuk2018rise", "englebert2023tis"),
    better="lower",
    family="faithfulness",
    kinds=("image",),
)
def deletion(
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
    """Area under the class probability as the highest-scored pixels are replaced, step by step.

    After step s, floor(s HW / steps) pixels are gone ("linspace") or min(HW, s ceil(HW / steps))
    ("ceil", the authors' code); the two agree where steps divides HW, as 224 does 224 x 224.
    """
    maps = [explanation.map() for explanation in explanations]
    order = pixel_order(case, maps, ties)
    counts = pixel_counts(order[0].numel(), steps, schedule, "deletion")
    curves = replacing_curves(case, order, deleted(counts), baseline, space)  # b 1+steps
    return Measured(
        values=area(curves, auc).tolist(),
        curves=list(curves),
        ties=[tie_fraction(scores) for scores in maps],
    )
