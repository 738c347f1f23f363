"""The Jacobian of a model as an operator: products in both directions, rows only on demand."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import torch
from torch import Tensor


class Jacobian:
    """J = df/dx at a batch of points, each input on its own: f maps (b ...) to (b q)."""

    def __init__(self, function: Callable[[Tensor], Tensor], x: Tensor) -> None:
        self._function = function
        self.x = x.detach()

    @property
    def y(self) -> Tensor:
        """The value at the points (b q)."""
        return self._graph[1].detach()

    @cached_property
    def _graph(self) -> tuple[Tensor, Tensor]:
        with torch.enable_grad():
            leaf = self.x.clone().requires_grad_()
            return leaf, self._function(leaf)

    def jvp(self, v: Tensor) -> Tensor:
        """J v: how the output moves when the points move along `v` (b ... -> b q)."""
        found: tuple[Tensor, Tensor] = torch.func.jvp(self._function, (self.x,), (v,))  # type: ignore[assignment]  # torch also types the variant with auxiliary output
        return found[1]

    def vjp(self, u: Tensor) -> Tensor:
        """J^T u: the gradient of the output weighted by `u` (b q -> b ...)."""
        leaf, y = self._graph
        (found,) = torch.autograd.grad(y, leaf, u, retain_graph=True)
        return found

    def rows(self) -> Tensor:
        """All of J (b q ...), by one batched reverse pass over the q outputs."""
        leaf, y = self._graph
        basis = torch.eye(y.shape[1], dtype=y.dtype, device=y.device)
        directions = basis[:, None, :].expand(-1, len(y), -1)  # q b q
        (found,) = torch.autograd.grad(
            y, leaf, directions, retain_graph=True, is_grads_batched=True
        )
        return found.transpose(0, 1)
