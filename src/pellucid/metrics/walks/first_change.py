"""When a walk first changes its prediction. SiMEC as published, Table 3 of its supplement.

The "count" of that table is of changes, as `prediction_changes` counts them, not of walks.

It misleads where steps differ in length: a walk of tiny steps changes late and has not been
anywhere.
"""

from __future__ import annotations

from pellucid._spec import walk_metric
from pellucid.metrics.walks._evidence import Evidence, Of, Skip, WalkMeasured


@walk_metric(cite="benfenati2024unveiling", stay="higher", leave="lower")
def first_change(evidence: Evidence, *, of: Of = "points", stride: int = 10) -> WalkMeasured:
    """The first iteration at which another class than the first one is predicted."""
    walk, first = evidence.course(of, stride), evidence.walk.predicted[0]
    for iteration, name in zip(walk.iterations.tolist(), walk.predicted, strict=True):
        if name != first:
            return WalkMeasured(iteration)
    raise Skip("the prediction never changed")
