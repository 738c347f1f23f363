"""What a step costs. SiMEC as published, section 4 and its supplement.

It misleads where machines, batch sizes or loads differ, and where steps differ in length: far in
few steps is cheap.
"""

from __future__ import annotations

from pellucid._spec import walk_metric
from pellucid.metrics.walks._evidence import Evidence, Skip, WalkMeasured


@walk_metric(cite="benfenati2024unveiling", stay="lower", leave="lower")
def seconds_per_token(evidence: Evidence) -> WalkMeasured:
    """Seconds of one iteration for one moving token: T = time / (iterations |P|).

    The time is that of walking alone, shared evenly in a batch; decoding is another call.
    """
    walk = evidence.walk
    if walk.steps == 0:
        raise Skip("no step was taken")
    each = walk.provenance.seconds / walk.steps
    return WalkMeasured(each / len(walk.tokens), more={"seconds_per_iteration": each})
