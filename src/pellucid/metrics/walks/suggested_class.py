"""What a model says of the inputs that a walk suggests. SiMEC, section 4 and Figure 4.

Y_c are those of another class than the original, Y_s the rest; the probability is always that of
the original's class. The inputs are the alternative prompts of a text, or the decoded points.

It misleads where suggestions are no language: another class for a meaningless text is no discovery.
"""

from __future__ import annotations

import math

import torch

from pellucid._spec import walk_metric
from pellucid.metrics.walks._evidence import Evidence, Skip, Suggested, WalkMeasured


@walk_metric(cite="benfenati2024unveiling", stay="lower", leave="higher")
def flip_rate(evidence: Evidence) -> WalkMeasured:
    """Share of the suggested inputs that are of another class: mean over points of |Y_c| / |Y|."""
    found = evidence.suggested
    return _mean([(one.iteration, float(one.changed)) for one in found], found)


@walk_metric(cite="benfenati2024unveiling", stay="higher", leave="lower")
def probability_changed(evidence: Evidence) -> WalkMeasured:
    """Probability of the first class for suggested inputs of another one: mean over points."""
    found = evidence.suggested
    return _mean([(one.iteration, one.probability) for one in found if one.changed], found)


@walk_metric(cite="benfenati2024unveiling", stay="higher", leave="lower")
def probability_stayed(evidence: Evidence) -> WalkMeasured:
    """Probability of the first class for suggested inputs of that class: mean over points."""
    found = evidence.suggested
    return _mean([(one.iteration, one.probability) for one in found if not one.changed], found)


def _mean(chosen: list[tuple[int, float]], of: list[Suggested]) -> WalkMeasured:
    """The mean at every point, NaN where the set is empty, and the mean of those that are not."""
    if not chosen:
        raise Skip("no suggested input is in this set")
    iterations = sorted({one.iteration for one in of})
    curve = []
    for iteration in iterations:
        own = [value for k, value in chosen if k == iteration]
        curve.append(math.fsum(own) / len(own) if own else math.nan)
    points = torch.tensor(curve, dtype=torch.float64)
    return WalkMeasured(
        float(points.nanmean()),
        points,
        torch.tensor(iterations),
        {"chosen": len(chosen), "suggested": len(of)},
    )
