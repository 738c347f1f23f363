"""The Jacobian of a model as an operator: products in both directions, rows only on demand."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import torch
from torch import Tensor


class Jacobian:
    """J = df/dx at a batch of points, each input on its own: f maps (b ...) to (b q)."""

    def __init__(
        self,
        function: Callable[[Tensor], Tensor],
        x: Tensor,
        count: Callable[[int, int], None] = lambda forwards, backwards: None,
    ) -> None:
        self._function = function
        self._count = count  # told of every forward and backward pass
        self.x = x.detach()

    @property
    def y(self) -> Tensor:
        """The value at the points (b q)."""
        return self._graph[1].detach()

    @cached_property
    def _graph(self) -> tuple[Tensor, Tensor]:
        self._count(1, 0)
        with torch.enable_grad():
            leaf = self.x.clone().requires_grad_()
            return leaf, self._function(leaf)

    def jvp(self, v: Tensor) -> Tensor:
        """J v: how the output moves when the points move along `v` (b ... -> b q)."""
        self._count(1, 0)
        found: tuple[Tensor, Tensor] = torch.func.jvp(self._function, (self.x,), (v,))  # type: ignore[assignment]  # torch also types the variant with auxiliary output
        return found[1].detach()

    def vjp(self, u: Tensor) -> Tensor:
        """J^T u: the gradient of the output weighted by `u` (b q -> b ...)."""
        leaf, y = self._graph
        self._count(0, 1)
        (found,) = torch.autograd.grad(y, leaf, u, retain_graph=True)
        return found

    def rows(self, chunk: int = 64, cotangents: Tensor | None = None) -> Tensor:
        """All of J (b q ...), or L J for cotangents L (b r q), `chunk` reverse passes at a time."""
        leaf, y = self._graph
        self._count(0, y.shape[1] if cotangents is None else cotangents.shape[1])
        return reverse_rows(y, leaf, chunk, cotangents=cotangents, keep_graph=True)


def reverse_rows(
    y: Tensor,
    x: Tensor,
    chunk: int = 64,
    *,
    cotangents: Tensor | None = None,
    keep_graph: bool = False,
) -> Tensor:
    """dy/dx (b q ...) for y (b q) computed from the leaf x (b ...), each input on its own.

    With cotangents L (b r q) it is L dy/dx (b r ...).
    """
    if cotangents is None:
        basis = torch.eye(y.shape[1], dtype=y.dtype, device=y.device)
        cotangents = basis.expand(len(y), -1, -1)
    parts: list[Tensor] = []
    pieces = cotangents.transpose(0, 1).split(chunk)  # chunk b q each
    for number, some in enumerate(pieces, 1):
        kept = keep_graph or number < len(pieces)
        parts += torch.autograd.grad(y, x, some, retain_graph=kept, is_grads_batched=True)
    return torch.cat(parts).transpose(0, 1)
