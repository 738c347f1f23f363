"""Vector transformation measurement (VTranM, published as TokenTM). Wu et al., CVPR 2024.

Attention says how much of a vector is taken; this also measures what the vector has become: how
much longer it is than the one that it was made of, and how well it still points the same way.

It misleads where length is not effect: a vector can grow in directions that no later layer reads.
Evidence against a class is not shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from pellucid._arguments import position
from pellucid._case import Case
from pellucid._needs import Needs
from pellucid._spec import method
from pellucid.methods import _lengths
from pellucid.record.trace import Trace

Rung = Literal["full", "af_l", "af", "baseline"]
Reference = Literal["normed", "residual"]
Init = Literal["lengths", "identity"]
Part = Literal["contribution", "transformation", "attention"]

_SEEN = Needs.ATTENTION | Needs.VALUES | Needs.BRANCHES | Needs.PROJECTION | Needs.STREAM


@method(
    needs=_SEEN | Needs.READOUT,
    cite="wu2024token",
    signed=False,
    explains="probability",
    presets={"paper": {"rung": "full", "init": "lengths", "per_head": True}},
)
def vtranm(
    case: Case,
    *,
    rung: Rung = "full",
    reference: Reference = "normed",
    init: Init = "lengths",
    per_head: bool = True,
    part: Part = "contribution",
    layer: int = 0,
) -> Tensor:
    """Attention times gradient times the change of every vector in length and direction.

    `rung` is a step of the paper's ablation: "baseline" (one block), "af" (all blocks), "af_l"
    (with lengths), "full" (with directions). Vectors are measured against what a branch was given
    ("normed") or against the stream that it is added to ("residual"), for every head or for all
    `per_head=False` together. `part` "transformation" or "attention" shows the weights of block
    `layer` alone, which is also the block of the baseline.
    """
    trace = case.record(_SEEN, gradients=True)
    attention = trace.each("attention")  # b h t s each
    chosen = position("layer", layer, len(attention))
    if part == "attention":
        return case.read(attention[chosen].mean(dim=1))
    weights = _Weights(trace, case.mask, rung, reference, per_head)
    if part == "transformation":
        return weights.of_attention(chosen).mean(dim=1)
    gradients = trace.gradients("attention")
    row = case.readout.to(attention[0])  # of C, equation 20 from the left
    if rung == "baseline":
        return row + _read(row, gradients[chosen], attention[chosen])  # equation 8
    for block in reversed(range(len(attention))):
        row = row * (1 + weights.of_feed_forward(block))  # equations 16 and 17
        weight = weights.of_attention(block)[:, :, None]  # b h 1 s
        row = row + _read(row, gradients[block], attention[block] * weight)  # 14 and 15
    if init == "lengths" and rung != "af":
        row = row * trace.at("stream", 0).norm(dim=-1)  # equation 18
    return row


def _read(row: Tensor, gradient: Tensor, heads: Tensor) -> Tensor:
    """The row, passed on by the map of all heads."""
    return torch.einsum("bt,bts->bs", row, (gradient.clamp(min=0) * heads).mean(dim=1))


@dataclass(frozen=True)
class _Weights:
    """The transformation weights W of every layer, as far as a rung has them (equation 13)."""

    trace: Trace
    mask: Tensor  # b t
    rung: Rung
    reference: Reference
    per_head: bool

    def of_attention(self, block: int) -> Tensor:
        """One for each head and token (b h t; one head stands for all where they are joined)."""
        trace = self.trace
        values, projection = trace.at("values", block), trace.at("projection", block)
        normed = self.reference == "normed"
        original = trace.at("attention_read" if normed else "attention_base", block)  # b t d
        if self.per_head:
            return self._weights(
                original[:, None], *_lengths.of_heads(values, projection, original)
            )
        vectors, original = _lengths.joined(values, projection)[:, None], original[:, None]
        return self._weights(original, *_lengths.of_vectors(vectors, original))

    def of_feed_forward(self, block: int) -> Tensor:
        """One for each token (b t)."""
        normed = self.reference == "normed"
        original = self.trace.at("mlp_read" if normed else "mlp_base", block)
        vectors = self.trace.at("mlp_branch", block)
        return self._weights(original, *_lengths.of_vectors(vectors, original))

    def _weights(self, original: Tensor, length: Tensor, inner: Tensor) -> Tensor:
        if self.rung == "af":
            return torch.ones_like(length)
        own = original.norm(dim=-1)
        ratio: Tensor = length / own.clamp(min=1e-8)
        if self.rung == "af_l":
            return ratio
        cosine = inner / (own * length).clamp(min=1e-8)
        real = self.mask.to(cosine.device).view(len(cosine), *[1] * (cosine.dim() - 2), -1)
        necc: Tensor = cosine.masked_fill(~real, -torch.inf).softmax(dim=-1)  # equation 12
        return ratio * necc  # equation 13
