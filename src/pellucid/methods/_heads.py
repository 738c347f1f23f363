"""Ways to join the attention heads of a block into one map."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

Fuse = Literal["mean", "min", "max"]


def fused(maps: Tensor, fuse: Fuse) -> Tensor:
    """One map (b t s) of the maps of all heads (b h t s)."""
    if fuse == "mean":
        return maps.mean(dim=1)
    return maps.amin(dim=1) if fuse == "min" else maps.amax(dim=1)
