"""Changes of the order of classes along a walk. SiMEC as published, section 3.1 and Table 1.

It misleads where many classes have next to no probability: their order changes without anything
having happened.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from pellucid._arguments import integer
from pellucid._spec import walk_metric
from pellucid.metrics.walks._evidence import Evidence, Of, WalkMeasured, among


@walk_metric(cite="benfenati2024unveiling", stay="lower", leave="higher")
def ranking_changes(
    evidence: Evidence,
    *,
    of: Of = "points",
    stride: int = 10,
    count: Literal["pairs", "points"] = "pairs",
    top: int | None = None,
    per: int = 1000,
) -> WalkMeasured:
    """Pairs of classes that change their order from one stride to the next, per 1000 iterations.

    inv(k) = #{(a, b): p_a > p_b before and p_a < p_b after}, the Kendall distance; pairs that are
    equal at either time do not count. With `count="points"` a stride counts once however many pairs
    it inverts. `top` classes are ranked, the likeliest at the start (the published tables of
    language models rank five).
    """
    walk = evidence.course(of, stride)
    ranked = replace(walk, probabilities=among(walk, top))
    inverted = ranked.ranking_changes
    if count == "points":
        inverted = (inverted > 0).long()
    total, iterations = int(inverted.sum()), int(walk.iterations[-1] - walk.iterations[0])
    return WalkMeasured(
        total * integer("per", per, 1, 1000) / iterations,
        inverted.double(),
        walk.iterations[1:],
        {"events": total, "comparisons": len(inverted)},
    )
