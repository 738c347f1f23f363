"""Spearman's correlation of class rankings along a walk. SiMEC as published, its supplement.

It misleads where many classes have next to no probability: their order is half of the number.
"""

from __future__ import annotations

import itertools

import torch

from pellucid._spec import walk_metric
from pellucid._statistics import spearman
from pellucid.metrics.walks._evidence import Evidence, Of, Skip, WalkMeasured, among


@walk_metric(cite="benfenati2024unveiling", stay="higher", leave="lower")
def ranking_correlation(
    evidence: Evidence, *, of: Of = "points", stride: int = 10, top: int | None = None
) -> WalkMeasured:
    """Mean rank correlation of the class probabilities from one stride to the next.

    1 - 6 sum d^2 / (N (N^2 - 1)) where no two are equal. A point at which all classes are equally
    likely has no ranking and is left out.
    """
    walk = evidence.course(of, stride)
    points = among(walk, top)
    found = [spearman(p, q) for p, q in itertools.pairwise(points)]
    known = [value for value in found if value is not None]
    if not known:
        raise Skip("all classes are equally likely")
    curve = [torch.nan if value is None else value for value in found]
    return WalkMeasured(
        sum(known) / len(known),
        torch.tensor(curve, dtype=torch.float64),
        walk.iterations[1:],
        {"comparisons": len(known)},
    )
