"""How much more of the space one walk explored than another. SiMEC as published, section 4.

The box around a token's points along their principal axes, as many as it takes for 90 % of the
variance. The axes are those of both walks' points, since volumes of different dimensions have no
ratio: a walk of more dimensions in which it goes less than one unit far gets the smaller volume for
it. `axes="own"` measures each walk along its own all the same, as the published numbers seem to.

It misleads where walks have few points: a box around them is then mostly the noise of their
directions.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from pellucid._errors import ArgumentError, explain_error
from pellucid._spec import walk_metric
from pellucid._trajectory import Trajectory
from pellucid._types import Picture
from pellucid.metrics.walks._evidence import Evidence, Skip, WalkMeasured


@walk_metric(cite="benfenati2024unveiling", stay=None, leave="higher")
def volume_ratio(
    evidence: Evidence,
    *,
    scale: Literal["log10", "plain"] = "log10",
    axes: Literal["common", "own"] = "common",
    share: float = 0.9,
) -> WalkMeasured:
    """How many times the other walk's volume this one explored, the mean over its tokens.

    log10 rho = sum_i (log10 r_i - log10 r_i'), so 1 is a volume ten times as large. The mean of
    the ratios themselves, as published, is `scale="plain"`; a single token can decide that.
    """
    walk, other = evidence.walk, evidence.other
    _check_together(walk, other)
    if min(len(walk.iterations), len(other.iterations)) < 2:
        raise Skip("one recorded point")
    common = axes == "common"
    own = walk.log_volume(share=share, beside=other if common else None)  # m
    others = other.log_volume(share=share, beside=walk if common else None)
    logs = own - others
    moved = ~logs.isnan()
    if not moved.any():
        raise Skip("no token moved in both walks along a common axis")
    ratios = logs[moved].exp() if scale == "plain" else logs[moved] / math.log(10)
    return WalkMeasured(
        float(ratios.mean()),
        more={
            "tokens": int(moved.sum()),
            "still": int((~moved).sum()),
            "log10_volume": float(own[moved].mean()) / math.log(10),
            "log10_volume_other": float(others[moved].mean()) / math.log(10),
        },
    )


def _check_together(walk: Trajectory, other: Trajectory) -> None:
    """Walks of the same tokens of one input of one model, in one space."""
    one, two = ((w.provenance.weights, w.space, w.tokens, w.segments) for w in (walk, other))
    if one != two or not _same_picture(walk, other):
        told = [f"{w!r} of {len(w.tokens)} tokens in {w.space!r}" for w in (walk, other)]
        raise ArgumentError(
            explain_error(
                "only walks of the same tokens of one input have a ratio of volumes",
                got=" and ".join(told),
                expected="walks from one input of one model, in one space, with the same tokens=",
                instead="other=pellucid.explore(model, the_same_input, goal='stay', tokens=...)",
            )
        )


def _same_picture(walk: Trajectory, other: Trajectory) -> bool:
    """Whether both began at one picture; texts are compared by their tokens."""
    one, two = walk.item, other.item
    if not isinstance(one, Picture) or not isinstance(two, Picture):
        return type(one) is type(two)
    return np.array_equal(one.view, two.view)
