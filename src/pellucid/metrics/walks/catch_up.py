"""Whether decoded inputs follow their points into another class. SiMEC as published, supplement.

A change from one class to another at a point is matched with the first such change, then or later,
of the decoded inputs, each of which is used once.

It misleads where walks change class seldom: a share of two or three changes is hardly a number.
"""

from __future__ import annotations

import itertools

from pellucid._spec import walk_metric
from pellucid._trajectory import Trajectory
from pellucid.metrics.walks._evidence import Evidence, Skip, WalkMeasured

Change = tuple[int, str, str]  # the iteration, the class before, the class then


@walk_metric(cite="benfenati2024unveiling", stay="higher", leave="higher")
def catch_up(evidence: Evidence, *, stride: int = 10) -> WalkMeasured:
    """Share of the points' changes of class that the decoded inputs make as well, later or then."""
    events, delays = _matched(evidence, stride)
    return WalkMeasured(len(delays) / events, more={"events": events, "matched": len(delays)})


@walk_metric(cite="benfenati2024unveiling", stay="lower", leave="lower")
def catch_up_delay(evidence: Evidence, *, stride: int = 10) -> WalkMeasured:
    """Iterations by which the decoded inputs' changes of class follow those of their points."""
    events, delays = _matched(evidence, stride)
    if not delays:
        raise Skip("no change of class was followed by the decoded inputs")
    return WalkMeasured(sum(delays) / len(delays), more={"events": events, "matched": len(delays)})


def _matched(evidence: Evidence, stride: int) -> tuple[int, list[int]]:
    """How many changes the points made, and how long after them the followed ones were made."""
    decoded = _changes(evidence.course("decoded", stride))
    own = _changes(evidence.course("points", stride))
    if not own:
        raise Skip("the prediction never changed")
    delays = []
    for iteration, before, then in own:
        later = (c for c in decoded if c[0] >= iteration and c[1:] == (before, then))
        match = next(later, None)
        if match is not None:
            decoded.remove(match)
            delays.append(match[0] - iteration)
    return len(own), delays


def _changes(walk: Trajectory) -> list[Change]:
    pairs = itertools.pairwise(zip(walk.iterations.tolist(), walk.predicted, strict=True))
    return [(k, before, then) for (_, before), (k, then) in pairs if before != then]
