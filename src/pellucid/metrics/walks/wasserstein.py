"""How far decoded inputs are predicted from their points. SiMEC as published, section 4.

The ground metric between classes is not stated there. Classes have no order, so by default they
are all one apart ("nominal"), which makes the distance the total variation; "index" takes their
numbers for places on a line; "l1" is the city-block distance, twice the nominal one, which the
published figures label their axis with.

It misleads where decoding changes nothing or everything: it compares predictions, not what a person
would read.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from pellucid._spec import walk_metric
from pellucid._trajectory import Trajectory
from pellucid.metrics.walks._evidence import Evidence, Skip, WalkMeasured

Ground = Literal["nominal", "index", "l1"]
_SLACK = 1e-6  # by which rounded probabilities miss one


@walk_metric(cite="benfenati2024unveiling", stay="lower", leave="lower")
def wasserstein(
    evidence: Evidence, *, ground: Ground = "nominal", stride: int = 10
) -> WalkMeasured:
    """Mean distance between the predictions of points and of what they were decoded to.

    Of very many classes those that were not kept are one more class.
    """
    walk = evidence.course("points", stride)
    p = _distributions(walk, ground)
    q = _distributions(evidence.course("decoded", stride), ground)
    apart = distance(p, q, ground)
    return WalkMeasured(
        float(apart.mean()), apart, walk.iterations, {"median": float(apart.quantile(0.5))}
    )


def distance(p: Tensor, q: Tensor, ground: Ground) -> Tensor:
    """The Wasserstein-1 distance of distributions over classes (s c, s c -> s)."""
    if ground == "index":
        return (p - q).cumsum(dim=1)[:, :-1].abs().sum(dim=1)
    l1 = (p - q).abs().sum(dim=1)
    return l1 if ground == "l1" else l1 / 2


def _distributions(walk: Trajectory, ground: Ground) -> Tensor:
    """The probabilities as distributions, or the reason why they are none."""
    p = walk.probabilities
    rest = 1 - p.sum(dim=1, keepdim=True)
    if rest.abs().max() <= _SLACK:
        return p
    if walk.classes == tuple(range(len(walk.classes))) or rest.min() < -_SLACK:
        raise Skip("the model's outputs are not probabilities of classes that exclude each other")
    if ground == "index":
        raise Skip("classes that were not kept have no place on a line")
    return torch.cat([p, rest], dim=1)
