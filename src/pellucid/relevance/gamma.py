"""The gamma rule of a linear layer, for inputs, weights and outputs of either sign.

Montavon et al. 2019 (Layer-Wise Relevance Propagation: An Overview), section 10.2.3, has it for
inputs that are not negative. What speaks for the sign of an output counts 1 + gamma times: with
P = x⁺ W⁺ + x⁻ W⁻ + b⁺ (all that pulls upwards) and N = z - P, a positive output z is shared out in
proportion to the terms of z + gamma P, and a negative one to those of z + gamma N. So gamma = 0 is
the epsilon rule, and a large gamma the z⁺ rule. Neither denominator comes nearer to zero than z.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pellucid.relevance.linear import LinearMap
from pellucid.relevance.operations import wide
from pellucid.relevance.rules import Rule


class Gamma(Rule):
    """y is the layer's output; what comes back is the gradient whose product with x is R."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, made: tuple[Tensor], layer: LinearMap, gamma: float) -> Tensor:
        ctx.save_for_backward(*made)
        ctx.layer, ctx.gamma = layer, gamma
        return made[0]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        (z,) = ctx.saved_tensors
        layer, gamma = ctx.layer, ctx.gamma
        x, up, down = layer.x, layer.weight.clamp(min=0), layer.weight.clamp(max=0)
        upwards = layer.forward(x.clamp(min=0), up) + layer.forward(x.clamp(max=0), down)
        if layer.bias is not None:
            upwards = upwards + layer.bias.clamp(min=0)
        z = wide(z)
        relevance = wide(gradient) * z
        positive = _share(relevance, z + gamma * upwards, z > 0)
        negative = _share(relevance, z + gamma * (z - upwards), z < 0)
        more_up = (1 + gamma) * positive + negative  # over the terms that pull upwards
        more_down = positive + (1 + gamma) * negative
        above = layer.back(more_up, up) + layer.back(more_down, down)  # where x >= 0
        below = layer.back(more_up, down) + layer.back(more_down, up)
        return torch.where(x >= 0, above, below), None, None, None


def _share(relevance: Tensor, denominator: Tensor, where: Tensor) -> Tensor:
    return torch.where(where, relevance / torch.where(where, denominator, 1.0), 0.0)
