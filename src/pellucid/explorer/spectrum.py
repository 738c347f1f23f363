"""The ends of a metric's spectrum, as walks that know their metric note them at every step."""

from __future__ import annotations

import torch
from torch import Tensor

from pellucid.geometry.pullback import Pullback

SPECTRUM = ("largest", "smallest", "rank")


def spectrum(metric: Pullback) -> Tensor:
    """The largest eigenvalue, the smallest that counts as nonzero, and how many do (b 3).

    Blocks of single tokens count as the one metric whose diagonal they are, without interactions.
    """
    largest, smallest, rank = (
        one.view(len(one), -1) for one in (metric.largest, metric.smallest, metric.rank)
    )
    least = torch.where(rank > 0, smallest, torch.inf).amin(dim=1)
    ends = [largest.amax(dim=1), torch.where(least.isinf(), 0.0, least)]
    return torch.stack([*ends, rank.sum(dim=1).to(largest)], dim=1)


def by_name(found: Tensor) -> dict[str, Tensor]:
    """The numbers of `spectrum` (b 3) as series of a step."""
    return dict(zip(SPECTRUM, found.unbind(dim=1), strict=True))
