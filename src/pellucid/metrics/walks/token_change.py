"""How much the texts of a walk change. SiMEC as published, section 4.

It misleads where change is taken for exploration: going to and fro between two tokens changes them
every time.
"""

from __future__ import annotations

from typing import Literal

import torch

from pellucid._spec import walk_metric
from pellucid.metrics.walks._evidence import Against, Evidence, Skip, WalkMeasured


@walk_metric(cite="benfenati2024unveiling", stay="higher", leave="higher", kinds=("text",))
def token_change(
    evidence: Evidence,
    *,
    stride: int = 10,
    against: Against = "previous",
    scale: Literal["share", "count"] = "share",
) -> WalkMeasured:
    """Share of the walked tokens that are read as others than one stride before.

    d(k) = #{r in P: token changed} / |P|; the model's own tokens are in no P.
    """
    walk = evidence.walk
    if walk.kind != "text":
        raise Skip("only texts have tokens of words")
    ids = evidence.decoded.token_ids
    assert ids is not None
    own = [t for t in walk.tokens if walk.segments[t].role == "content"]
    rows = evidence.rows(stride)
    read = ids[rows][:, torch.tensor(own)]  # s m
    before = read[:1] if against == "start" else read[:-1]
    curve = (read[1:] != before).double().sum(dim=1)
    if scale == "share":
        curve = curve / len(own)
    return WalkMeasured(float(curve.mean()), curve, walk.iterations[rows[1:]])
