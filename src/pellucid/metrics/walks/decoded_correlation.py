"""Whether decoded inputs are as certain as their points. SiMEC as published, its supplement.

It misleads where all points are about equally certain: a correlation of nearly constant numbers is
noise.
"""

from __future__ import annotations

from pellucid._spec import walk_metric
from pellucid._statistics import pearson
from pellucid.metrics.walks._evidence import Evidence, Skip, WalkMeasured


@walk_metric(cite="benfenati2024unveiling", stay="higher", leave="higher")
def decoded_correlation(evidence: Evidence, *, stride: int = 10) -> WalkMeasured:
    """Pearson's r between a class's probability at the points and at what they were decoded to.

    The class is the likeliest of each point. The p-value beside it takes the points of a walk for
    independent, which they are not: read it as the papers' tables do, not as evidence.
    """
    points, decoded = evidence.course("points", stride), evidence.course("decoded", stride)
    if not set(points.predicted) <= set(points.labels):
        raise Skip("the likeliest class is not among those whose probabilities were kept")
    likeliest = points.probabilities.argmax(dim=1, keepdim=True)
    p, q = (one.probabilities.gather(1, likeliest)[:, 0] for one in (points, decoded))
    found = pearson(p, q)
    if found.statistic is None:
        raise Skip(found.skipped)
    more = {} if found.p is None else {"p": found.p}
    return WalkMeasured(found.statistic, more=more)
