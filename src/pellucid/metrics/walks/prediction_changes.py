"""Prediction changes along a walk. SiMEC as published, section 3.1 and Table 1.

It misleads near a border between classes, where a walk that hardly moves changes its prediction
often.
"""

from __future__ import annotations

from pellucid._arguments import integer
from pellucid._spec import walk_metric
from pellucid.metrics.walks._evidence import Against, Evidence, Of, WalkMeasured


@walk_metric(cite="benfenati2024unveiling", stay="lower", leave="higher")
def prediction_changes(
    evidence: Evidence,
    *,
    of: Of = "points",
    stride: int = 10,
    against: Against = "previous",
    per: int = 1000,
) -> WalkMeasured:
    """How often the likeliest class is another than one stride before, per 1000 iterations."""
    walk = evidence.course(of, stride)
    changed = walk.prediction_changes
    if against == "start":
        first = evidence.walk.predicted[0]
        changed = changed.new_tensor([name != first for name in walk.predicted[1:]])
    count, iterations = int(changed.sum()), int(walk.iterations[-1] - walk.iterations[0])
    return WalkMeasured(
        count * integer("per", per, 1, 1000) / iterations,
        changed.double(),
        walk.iterations[1:],
        {"events": count, "comparisons": len(changed)},
    )
