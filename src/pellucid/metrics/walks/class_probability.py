"""What becomes of the predicted class along a walk. SiMEC as published, Figure 2.

It misleads where the last point is taken for the walk: look at the curve, as a walk may have been
elsewhere in between.
"""

from __future__ import annotations

from torch import Tensor

from pellucid._spec import walk_metric
from pellucid._trajectory import Trajectory
from pellucid.metrics.walks._evidence import Evidence, Of, Skip, WalkMeasured


@walk_metric(cite="benfenati2024unveiling", stay="higher", leave="lower")
def original_probability(
    evidence: Evidence, *, of: Of = "points", stride: int = 10
) -> WalkMeasured:
    """Probability of the class that was predicted at first: o(k) = p(k)[i*], at the last point."""
    walk = evidence.course(of, stride)
    return _last(walk, walk.probabilities[:, evidence.original])


@walk_metric(cite="benfenati2024unveiling", stay=None, leave=None)
def top_probability(evidence: Evidence, *, of: Of = "points", stride: int = 10) -> WalkMeasured:
    """Probability of the likeliest class: m(k) = max_c p(k)[c], at the last point."""
    walk = evidence.course(of, stride)
    return _last(walk, _likeliest(walk))


@walk_metric(cite="benfenati2024unveiling", stay="lower", leave="higher")
def probability_gap(evidence: Evidence, *, of: Of = "points", stride: int = 10) -> WalkMeasured:
    """How much likelier the likeliest class is than the first one: m(k) - o(k), at the last point.

    Zero exactly where the prediction is that of the start.
    """
    walk = evidence.course(of, stride)
    return _last(walk, _likeliest(walk) - walk.probabilities[:, evidence.original])


def _likeliest(walk: Trajectory) -> Tensor:
    """The largest probability at each point, where it is among those that were kept."""
    if not set(walk.predicted) <= set(walk.labels):
        raise Skip("the likeliest class is not among those whose probabilities were kept")
    return walk.probabilities.amax(dim=1)


def _last(walk: Trajectory, curve: Tensor) -> WalkMeasured:
    return WalkMeasured(float(curve[-1]), curve, walk.iterations)
