"""Attention rollout. Abnar and Zuidema, ACL 2020, section 3; discarding after vit-explain.

Attention is followed from the output down to the input as if every block mixed the tokens by its
attention alone and passed half of each token on unchanged.

It misleads where values and feed-forward layers matter, as attention is all that it follows, and it
cannot tell classes apart: the map is the same for each.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pellucid._arguments import position
from pellucid._case import Case
from pellucid._errors import ArgumentError, explain_error
from pellucid._needs import Needs
from pellucid._spec import method
from pellucid.methods._heads import Fuse, fused


@method(
    needs=Needs.ATTENTION | Needs.READOUT,
    cite="abnar2020quantifying",
    signed=False,
    class_specific=False,
    presets={
        "chefer": {"start": 1},
        "tis": {"discard": 0.9},
        "vit_explain": {"discard": 0.9, "legacy_norm": True},
    },
)
def rollout(
    case: Case,
    *,
    fuse: Fuse = "mean",
    discard: float = 0.0,
    start: int = 0,
    legacy_norm: bool = False,
) -> Tensor:
    """The product over layers of the attention, heads fused, mixed with the identity.

    `fuse` joins the heads; `discard` is the fraction of the smallest fused attention that is set to
    zero (0.9 in TIS's comparison); `start` is the first block that takes part. `legacy_norm`
    divides by the sum of the row that has the number of the column, as released code does.
    """
    _check(discard)
    attention = case.record(Needs.ATTENTION).each("attention")  # b h t s each
    first = position("start", start, len(attention))
    row = case.readout.to(attention[0])  # b t; the product is taken from the left, row by row
    for maps in reversed(attention[first:]):
        layer = fused(maps, fuse)
        if discard:
            layer = _without_smallest(layer, discard, case.mask)
        mixed = layer + torch.eye(layer.shape[-1]).to(layer)  # b t s
        sums = mixed.sum(dim=-1)
        sums = sums[:, None, :] if legacy_norm else sums[:, :, None]
        row = torch.einsum("bt,bts->bs", row, mixed / sums)
    return row


def _without_smallest(layer: Tensor, discard: float, mask: Tensor) -> Tensor:
    """Zero the smallest entries among each input's own tokens, but for the first to itself."""
    mask = mask.to(layer.device)
    pairs = mask[:, :, None] & mask[:, None, :]  # b t s
    first = mask.float().argmax(dim=1)
    kept = layer.clone()
    for matrix, real, head in zip(kept, pairs, first.tolist(), strict=True):
        corner = matrix[head, head].clone()
        own = matrix[real]
        smallest = own.argsort(stable=True)[: int(own.numel() * discard)]
        own[smallest] = 0.0
        matrix[real] = own
        matrix[head, head] = corner
    return kept


def _check(discard: float) -> None:
    if not 0 <= discard < 1:
        raise ArgumentError(
            explain_error(
                "this fraction of attention cannot be discarded",
                got=f"discard={discard}",
                expected="a number from 0 up to, but not including, 1",
                instead="discard=0.9",
            )
        )
