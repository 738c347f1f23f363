"""Rules that change derivatives. Achtibat et al., ICML 2024; Ali et al., ICML 2022.

What comes back to a state t is a gradient g, and its relevance is R(t) = t * g. So the epsilon rule
of a linear layer, a sum and a constant factor is ordinary differentiation (bias, positions and
whatever else is constant keep their share), and the other rules are these changes:

    element-wise f(x)    f(x) / x in the place of f'(x): all relevance passes
    product of states    half of the gradient, so that each of the two gets half of the relevance
    norm                 the standard deviation is a constant
    softmax              AttnLRP: its own derivative ("taylor"); CP-LRP: a "constant"

They follow Achtibat et al., section 3.3; the constants are those of Ali et al., section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from pellucid.relevance.activations import Elementwise, slope_at_zero
from pellucid.relevance.gamma import Gamma
from pellucid.relevance.linear import linear_map
from pellucid.relevance.operations import Operation, wide
from pellucid.relevance.rules import Rule, Rules, at_least


@dataclass(frozen=True)
class GradientRules(Rules):
    """AttnLRP, or with constant attention CP-LRP; `gamma` favours what agrees with the output."""

    attention: Literal["taylor", "constant"] = "taylor"
    elementwise: Literal["identity", "gradient"] = "identity"
    gamma: float = 0.0  # of linear layers
    conv_gamma: float = 0.0  # of convolutions

    def __post_init__(self) -> None:
        at_least("gamma", self.gamma, 0.0)
        at_least("conv_gamma", self.conv_gamma, 0.0)

    def sum(self, operation: Operation) -> Any:
        return operation.result()

    def scale(self, operation: Operation) -> Any:
        return operation.result()

    def product(self, operation: Operation) -> Any:
        found = operation.result()
        found.register_hook(_half)
        return found

    def linear(self, operation: Operation) -> Any:
        gamma = self.conv_gamma if operation.name.startswith("conv") else self.gamma
        if gamma == 0:
            return operation.result()
        (x,) = operation.dependent
        return Gamma.on(x, operation.values(), linear_map(operation), gamma)

    def norm(self, operation: Operation) -> Any:
        given = operation.named("input", "normalized_shape", "weight", "bias", "eps")
        centred = operation.name == "layer_norm"
        if not centred:  # rms_norm has no bias before its eps
            given = operation.named("input", "normalized_shape", "weight", "eps")
        (x,) = operation.dependent
        eps = given["eps"]
        if eps is None:
            eps = 1e-5 if centred else torch.finfo(x.dtype).eps
        dims = tuple(range(-len(given["normalized_shape"]), 0))
        return Normalised.on(x, operation.values(), given["weight"], eps, dims, centred)

    def softmax(self, operation: Operation) -> Any:
        return operation.values() if self.attention == "constant" else operation.result()

    def activation(self, x: Tensor, y: Tensor, function: Elementwise) -> Tensor:
        found: Tensor = (
            Identity.on(x, y, slope_at_zero(function))
            if self.elementwise == "identity"
            else Differentiated.on(x, y, function)
        )
        return found


def _half(gradient: Tensor) -> Tensor:
    return gradient / 2


class Identity(Rule):
    """y = f(x), whose derivative is taken to be f(x) / x, and at zero its limit there."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, made: tuple[Tensor], slope: float) -> Tensor:
        ctx.save_for_backward(x, *made)
        ctx.slope = slope
        return made[0]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        x, y = ctx.saved_tensors
        ratio = torch.where(x == 0, ctx.slope, y / x)
        return gradient * ratio, None, None


class Differentiated(Rule):
    """y = f(x) with its own derivative."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, made: tuple[Tensor], function: Elementwise) -> Tensor:
        ctx.save_for_backward(x)
        ctx.function = function
        return made[0]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            leaf = x.detach().requires_grad_()
            (found,) = torch.autograd.grad(ctx.function(leaf), leaf, gradient)
        return found, None, None


class Normalised(Rule):
    """y = (x - mean) / std * weight + bias, or without the mean; std is taken to be a constant."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        made: tuple[Tensor],
        weight: Tensor | None,
        eps: float,
        dims: tuple[int, ...],
        centred: bool,
    ) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.settings = eps, dims, centred
        return made[0]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        x, weight = ctx.saved_tensors
        eps, dims, centred = ctx.settings
        x, scaled = wide(x), wide(gradient)
        square = x.var(dims, correction=0, keepdim=True) if centred else x.pow(2).mean(dims, True)
        scaled = (scaled if weight is None else scaled * weight) * (square + eps).rsqrt()
        if centred:
            scaled = scaled - scaled.mean(dims, keepdim=True)
        return scaled, None, None, None, None, None
