"""Rules that send back relevance itself: the alpha-beta family.

Montavon et al. 2017 (deep Taylor decomposition) and Binder et al. 2016, as Chefer et al., CVPR
2021, carry them over to Transformers. Each backward below takes the relevance of the outputs and
returns that of the inputs, so what autograd adds up at a fork is relevance.

    linear layer            alpha-beta: in proportion to what pulls up; bias gets nothing
    convolution of pixels   the box rule z^B
    sum                     in proportion to the summands
    product of states       half to each, in proportion to its terms
    all else                passes on unchanged

`joint` is Chefer et al.'s own variant (section 3.2): a linear layer has one denominator for both
signs, and what a sum of two streams gives to each is rescaled so that they keep what arrived.

Denominators are stabilised by 1e-9 with their own sign. `epsilon` is a stronger guard for sums and
products of either sign, which may cancel: their size counts as at least that fraction of what it
could be. It looks at lengths of queries and keys, so it does not depend on how they are rotated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from pellucid.relevance.activations import Elementwise
from pellucid.relevance.linear import LinearMap, linear_map
from pellucid.relevance.operations import MATRIX_PRODUCTS, SUBTRACTIONS, Operation, wide
from pellucid.relevance.rules import Rule, Rules, at_least

_STABILISER = 1e-9


@dataclass(frozen=True)
class DeepTaylor(Rules):
    """The alpha-beta rules with beta = alpha - 1."""

    alpha: float = 1.0
    joint: bool = False
    epsilon: float = 0.0  # the least size of a sum or product, as a fraction of what it could be

    def __post_init__(self) -> None:
        at_least("alpha", self.alpha, 1.0)
        at_least("epsilon", self.epsilon, 0.0)

    def sum(self, operation: Operation) -> Any:
        dims = [operand.dim() for operand in operation.dependent]
        keep = self.joint and dims == [3, 3]
        epsilon = self.epsilon if max(dims) <= 3 else 0.0  # queries (b h t d) are only rotated
        return Shared.of(operation, 1.0, epsilon, keep)

    def scale(self, operation: Operation) -> Any:
        return Passed.on(operation.dependent[0], operation.values())

    def product(self, operation: Operation) -> Any:
        return Shared.of(operation, 0.5, self.epsilon, False)

    def linear(self, operation: Operation) -> Any:
        (x,) = operation.dependent
        layer = linear_map(operation)
        if layer.convolves and x.is_leaf:
            return Box.on(x, operation.values(), layer)
        return AlphaBeta.on(x, operation.values(), layer, self.alpha, self.joint)

    def norm(self, operation: Operation) -> Any:
        return Passed.on(operation.dependent[0], operation.values())

    def softmax(self, operation: Operation) -> Any:
        return Passed.on(operation.dependent[0], operation.values())

    def activation(self, x: Tensor, y: Tensor, function: Elementwise) -> Tensor:
        found: Tensor = Passed.on(x, y)
        return found


def over(relevance: Tensor, output: Tensor, least: Tensor | None = None) -> Tensor:
    """Relevance divided by an output of at least some size; nothing where the output is zero."""
    size = output.abs() + _STABILISER if least is None else output.abs().maximum(least)
    return torch.where(output == 0, 0.0, relevance / torch.where(output < 0, -size, size))


class Passed(Rule):
    """All relevance passes, number by number."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, made: tuple[Tensor]) -> Tensor:
        ctx.like = x.shape, x.dtype
        return made[0]

    @staticmethod
    def backward(ctx: Any, relevance: Tensor) -> Any:
        shape, dtype = ctx.like
        return relevance.sum_to_size(shape).to(dtype), None


class Shared(Function):
    """Relevance in proportion to the terms: R_i = x_i * (transpose of the operation)(R / y)."""

    @classmethod
    def of(cls, operation: Operation, factor: float, epsilon: float, keep: bool) -> Any:
        """What the operation returns, with this rule as the way back to its operands."""
        apply: Callable[..., Any] = cls.apply
        return apply(operation, factor, epsilon, keep, *operation.dependent)

    @staticmethod
    def forward(
        ctx: Any, operation: Operation, factor: float, epsilon: float, keep: bool, *operands: Tensor
    ) -> Tensor:
        found: Tensor = operation.values()
        ctx.save_for_backward(*operands)
        ctx.settings = operation, factor, epsilon, keep
        return found

    @staticmethod
    def backward(ctx: Any, relevance: Tensor) -> Any:
        operation, factor, epsilon, keep = ctx.settings
        operands = [wide(x.detach()) for x in ctx.saved_tensors]
        least = epsilon * _size(operation, operands) if epsilon else None
        relevance = wide(relevance)
        with torch.enable_grad():
            leaves = [x.detach().requires_grad_() for x in operands]
            y = operation.of(leaves)
            share = over(relevance, y.detach(), least)
            gradients = torch.autograd.grad(y, leaves, share)
        shares = [factor * x * g for x, g in zip(operands, gradients, strict=True)]
        if keep:
            shares = _rescaled(shares, relevance)
        return None, None, None, None, *shares


def _size(operation: Operation, operands: Sequence[Tensor]) -> Tensor:
    """How large a sum or product could be: all its terms of one sign.

    A score of a query and a key could be the product of their lengths, however they are rotated.
    """
    first, *others = operands
    if operation.name in MATRIX_PRODUCTS - {"einsum"} and others and (first < 0).any():
        lengths: Tensor = first.norm(dim=-1, keepdim=True) * others[0].norm(dim=-2, keepdim=True)
        return lengths
    sizes = [x.abs() for x in operands]
    if operation.name in SUBTRACTIONS and len(sizes) == 2:
        sizes[1] = -sizes[1]
    found: Tensor = operation.of(sizes)
    return found.abs()


def _rescaled(shares: Sequence[Tensor], relevance: Tensor) -> list[Tensor]:
    """Shares that sum to what arrived at each sample, each by the size of its own sum."""
    sums = [_of_sample(share) for share in shares]
    size = torch.stack(sums).abs().sum(dim=0)
    arrived = _of_sample(relevance)
    return [
        share * over(over(total.abs(), size) * arrived, total).view(-1, *[1] * (share.dim() - 1))
        for share, total in zip(shares, sums, strict=True)
    ]


def _of_sample(relevance: Tensor) -> Tensor:
    return relevance.flatten(1).sum(dim=1)  # b


class AlphaBeta(Rule):
    """R = alpha * (share of what pulls up) - (alpha - 1) * (share of what pulls down)."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, made: tuple[Tensor], layer: LinearMap, alpha: float, joint: bool
    ) -> Tensor:
        ctx.settings = layer, alpha, joint
        return made[0]

    @staticmethod
    def backward(ctx: Any, relevance: Tensor) -> Any:
        layer, alpha, joint = ctx.settings
        relevance = wide(relevance)
        up, down = layer.weight.clamp(min=0), layer.weight.clamp(max=0)
        found = alpha * _share(layer, relevance, up, down, joint)
        if alpha != 1:
            found = found - (alpha - 1) * _share(layer, relevance, down, up, joint)
        return found, None, None, None, None


def _share(layer: LinearMap, relevance: Tensor, up: Tensor, down: Tensor, joint: bool) -> Tensor:
    """x⁺ * up(R / z₁) + x⁻ * down(R / z₂); a joint denominator is z₁ + z₂ for both."""
    positive, negative = layer.x.clamp(min=0), layer.x.clamp(max=0)
    first, second = layer.forward(positive, up), layer.forward(negative, down)
    if joint:
        first = second = first + second
    return positive * layer.back(over(relevance, first), up) + negative * layer.back(
        over(relevance, second), down
    )


class Box(Rule):
    """z^B: relevance of inputs that lie between bounds; here each sample's smallest and largest."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, made: tuple[Tensor], layer: LinearMap) -> Tensor:
        ctx.layer = layer
        return made[0]

    @staticmethod
    def backward(ctx: Any, relevance: Tensor) -> Any:
        layer = ctx.layer
        x, weight = layer.x, layer.weight
        up, down = weight.clamp(min=0), weight.clamp(max=0)
        dims = tuple(range(1, x.dim()))
        low = x.amin(dim=dims, keepdim=True).expand_as(x)
        high = x.amax(dim=dims, keepdim=True).expand_as(x)
        z = layer.forward(x, weight) - layer.forward(low, up) - layer.forward(high, down)
        share = over(wide(relevance), z)
        found = x * layer.back(share, weight)
        found = found - low * layer.back(share, up) - high * layer.back(share, down)
        return found, None, None
