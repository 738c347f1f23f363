"""Linear layers, convolutions and products with a weight in one form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from pellucid.relevance.operations import Operation


@dataclass(frozen=True)
class LinearMap:
    """y = f(x, w) + b, where f is linear in each of its two arguments."""

    x: Tensor
    weight: Tensor
    bias: Tensor | None  # in a shape that is added to y
    forward: Callable[[Tensor, Tensor], Tensor]
    convolves: bool

    def back(self, arriving: Tensor, weight: Tensor) -> Tensor:
        """The transpose of f(., w), applied to what arrives at the outputs."""
        if not self.convolves:
            return arriving @ weight
        with torch.enable_grad():
            x = torch.zeros_like(self.x).requires_grad_()
            (found,) = torch.autograd.grad(self.forward(x, weight), x, arriving)
        return found


def linear_map(operation: Operation) -> LinearMap:
    """The map that a linear operation carries out, on detached tensors."""
    name = operation.name
    if name == "addmm":
        bias, x, weight = operation.args
        return LinearMap(x.detach(), weight.T, bias, F.linear, convolves=False)
    if name not in ("linear", "conv1d", "conv2d", "conv3d"):
        x, weight = operation.args
        return LinearMap(x.detach(), weight.T, None, F.linear, convolves=False)
    given = operation.named("input", "weight", "bias", "stride", "padding", "dilation", "groups")
    x, weight, bias = (given.pop(key) for key in ("input", "weight", "bias"))
    if name == "linear":
        return LinearMap(x.detach(), weight, bias, F.linear, convolves=False)
    settings = {key: value for key, value in given.items() if value is not None}
    if bias is not None:
        bias = bias.view(-1, *[1] * (weight.dim() - 2))  # of c h w
    convolve: Callable[..., Tensor] = operation.function
    return LinearMap(x.detach(), weight, bias, partial(convolve, **settings), convolves=True)
