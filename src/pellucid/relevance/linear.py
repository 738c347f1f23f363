"""Linear layers, convolutions and products with a weight in one form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from pellucid.relevance.operations import Operation, wide


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
    """The map that a linear operation carries out, on detached tensors of one type."""
    name, forward = operation.name, F.linear
    bias: Tensor | None = None
    if name == "addmm":
        bias, x, weight = operation.args
        weight = weight.T
    elif name == "linear" or name.startswith("conv"):
        given = operation.named(
            "input", "weight", "bias", "stride", "padding", "dilation", "groups"
        )
        x, weight, bias = (given.pop(key) for key in ("input", "weight", "bias"))
        if name != "linear":
            settings = {key: value for key, value in given.items() if value is not None}
            bias = None if bias is None else bias.view(-1, *[1] * (weight.dim() - 2))  # c h w
            forward = partial(operation.function, **settings)
    else:
        x, weight = operation.args
        weight = weight.T
    bias = None if bias is None else wide(bias)
    return LinearMap(wide(x.detach()), wide(weight), bias, forward, name.startswith("conv"))
