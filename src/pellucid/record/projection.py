"""The linear map behind the heads of an attention: how what each head has read enters the stream.

It is seen as the first linear map of all heads side by side, whatever module computes it. A block
may scale what comes out of it (LayerScale, a residual multiplier); the gradient of the sum that the
attention branch ends in tells by how much.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

LINEAR = (F.linear, torch.addmm)


@dataclass(frozen=True, eq=False)
class Projection:
    """The map of every head (h c d), without the bias that all share, and what it returned."""

    weight: Tensor
    output: Tensor

    def scaled(self, after: Tensor) -> Tensor:
        """The map of every head into the sum `after` (b t d), of whose graph the output is (h c d).

        Behind the output there is a factor a channel at most, which the examination has checked.
        """
        (scale,) = torch.autograd.grad(after.sum(), self.output, retain_graph=True)
        return self.weight * scale.flatten(0, -2)[0]


def read_projection(
    func: Callable[..., Any], args: Sequence[Any], output: Tensor, values: Tensor, queries: int
) -> Projection | None:
    """The projection that a linear map is, if its input is as large as all heads side by side.

    `values` (b h s c) are those of the attention before it, which had so many `queries`.
    """
    source, weight = (args[0], args[1].T) if func is F.linear else (args[1], args[2])
    batch, heads, _, width = values.shape
    whole = batch * queries * heads * width
    if source.shape[-1] != heads * width or source.numel() != whole:
        return None
    return Projection(weight.detach().unflatten(0, (heads, width)), output)  # h c d


def affine_gap(
    attention: Tensor, values: Tensor, projection: Tensor, branch: Tensor
) -> tuple[Tensor, Tensor]:
    """How far m = x + sum_h A_h V_h P_h + b is from true, and how large the terms are.

    The bias b is the same for every token, so what the heads leave of the branch (b t d) must be.
    """
    heads = torch.einsum("bhts,bhsc,hcd->btd", attention.to(values.dtype), values, projection)
    rest = branch - heads
    return (rest - rest[:1, :1]).abs().max(), heads.abs().max()
