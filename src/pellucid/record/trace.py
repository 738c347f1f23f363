"""What was seen during one forward pass, as plain data, with gradients on request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor

Recorded = Literal["attention", "values", "stream", "attention_branch", "mlp_branch"]


@dataclass(frozen=True, eq=False)
class Recording:
    """What one forward pass showed: its output, tensors layer by layer, and what carries them.

    The gradient of a branch is that of the sum it was added to, so `carriers` has the sums there,
    and what was recorded itself elsewhere.
    """

    output: Any
    layers: dict[Recorded, list[Tensor]]
    carriers: dict[Recorded, list[Tensor]]


@dataclass(eq=False)
class Trace:
    """One recorded forward pass. Tensors are parts of its graph when gradients were asked for.

    The names with one entry a layer: `attention` (b h t s), `values` (b h s d),
    `stream` (b t d; entry l enters block l, the last one leaves the last block),
    `attention_branch` and `mlp_branch` (b t d: what the branch computed, before it was added).
    """

    score: Tensor  # b
    recording: Recording
    count_backward: Callable[[], None] = field(repr=False)
    _gradients: dict[tuple[Recorded | int, ...], Tensor] = field(default_factory=dict, repr=False)

    @cached_property
    def attention(self) -> Tensor:
        """Attention probabilities (l b h t s)."""
        return self._stack("attention")

    @cached_property
    def values(self) -> Tensor:
        """Value vectors of every head (l b h s d)."""
        return self._stack("values")

    @cached_property
    def stream(self) -> Tensor:
        """The residual stream before each block and after the last (l+1 b t d)."""
        return self._stack("stream")

    @cached_property
    def branches(self) -> tuple[Tensor, Tensor]:
        """What attention and the feed-forward part of every block added (l b t d each)."""
        return self._stack("attention_branch"), self._stack("mlp_branch")

    def gradient(self, of: Recorded, layers: slice = slice(None)) -> Tensor:
        """The gradient of each input's score with respect to what was recorded, stacked.

        Going back ends at the first of the `layers` that are asked for.
        """
        tensors = self.recording.carriers[of]
        key = (of, *range(len(tensors))[layers])
        if key not in self._gradients:
            self.count_backward()
            found = torch.autograd.grad(self.score.sum(), tensors[layers], retain_graph=True)
            self._gradients[key] = _stacked(list(found))
        return self._gradients[key]

    def _stack(self, of: Recorded) -> Tensor:
        return _stacked(self.recording.layers[of]).detach()


def _stacked(tensors: list[Tensor]) -> Tensor:
    """One tensor on one device, in float32 at least: sums over tokens are taken of it."""
    device = tensors[0].device
    stacked = torch.stack([tensor.to(device) for tensor in tensors])
    return stacked.float() if stacked.dtype in (torch.float16, torch.bfloat16) else stacked
