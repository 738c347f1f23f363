"""What was seen during one forward pass, as plain data, with gradients on request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor

Recorded = Literal[
    "attention",
    "values",
    "projection",
    "stream",
    "attention_base",
    "attention_read",
    "attention_branch",
    "mlp_base",
    "mlp_read",
    "mlp_branch",
]


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

    The names with one entry a layer: `attention` (b h t s), `values` (b h s c), `projection`
    (h c d: how what a head has read enters the stream, in recordings with gradients), `stream`
    (b t d; entry l enters block l, the last one leaves the last block), and for each branch,
    `attention_` and `mlp_` (b t d): `base`, the stream that it is added to, `read`, what it is
    given (the base, normalised where the block does that first), `branch`, what it computed.
    """

    score: Tensor  # b
    recording: Recording
    count_backward: Callable[[], None] = field(repr=False)
    _gradients: dict[Recorded, Tensor] = field(default_factory=dict, repr=False)

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

    def each(self, of: Recorded) -> list[Tensor]:
        """What was recorded, layer by layer and without a copy."""
        return [self.at(of, layer) for layer in range(len(self.recording.layers[of]))]

    def at(self, of: Recorded, layer: int) -> Tensor:
        """What was recorded in one layer."""
        return self._like_the_first(self.recording.layers[of][layer].detach(), of)

    def gradient(self, of: Recorded) -> Tensor:
        """The gradient of each input's score with respect to what was recorded, stacked."""
        if of not in self._gradients:
            self._gradients[of] = torch.stack(self.gradients(of))
        return self._gradients[of]

    def gradients(self, of: Recorded, first: int = 0) -> list[Tensor]:
        """The same layer by layer, from layer `first` on, and kept nowhere."""
        tensors = self.recording.carriers[of][first:]
        self.count_backward()
        found = torch.autograd.grad(self.score.sum(), tensors, retain_graph=True)
        return [self._like_the_first(gradient, of) for gradient in found]

    def _stack(self, of: Recorded) -> Tensor:
        return torch.stack(self.each(of))

    def _like_the_first(self, tensor: Tensor, of: Recorded) -> Tensor:
        """On the device of the first layer, in float32 at least: sums over tokens are taken."""
        wide = torch.promote_types(tensor.dtype, torch.float32)
        return tensor.to(self.recording.layers[of][0].device, wide)
