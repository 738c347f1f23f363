"""Attention rollout. Abnar and Zuidema, ACL 2020, section 3; discarding after vit-explain.

Attention is followed from the output down to the input as if every block mixed the tokens by its
attention alone and passed half of each token on unchanged.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from pellucid._case import Case
from pellucid._errors import ArgumentError, explain_error
from pellucid._needs import Needs
from pellucid._spec import method


@method(
    needs=Needs.ATTENTION | Needs.READOUT,
    cite="abnar2020quantifying",
    signed=False,
    class_specific=False,
)
def rollout(
    case: Case,
    *,
    fuse: Literal["mean", "min", "max"] = "mean",
    discard: float = 0.0,
    start: int = 0,
) -> Tensor:
    """The product over layers of the attention, heads fused, mixed with the identity.

    `fuse` joins the heads; `discard` is the fraction of the smallest fused attention that is set to
    zero (0.9 in TIS's comparison); `start` is the first block that takes part.
    """
    attention = case.record(Needs.ATTENTION).attention  # l b h t s
    _check(attention, discard, start)
    fused = _FUSE[fuse](attention[start:])  # l b t s
    if discard:
        fused = _without_smallest(fused, discard, case.mask)
    mixed = fused + torch.eye(fused.shape[-1]).to(fused)
    mixed = mixed / mixed.sum(dim=-1, keepdim=True)
    flow = mixed[0]
    for layer in mixed[1:]:
        flow = layer @ flow  # later layers multiply on the left
    return case.read(flow)


_FUSE = {
    "mean": lambda heads: heads.mean(dim=2),
    "min": lambda heads: heads.amin(dim=2),
    "max": lambda heads: heads.amax(dim=2),
}


def _without_smallest(fused: Tensor, discard: float, mask: Tensor) -> Tensor:
    """Zero the smallest entries among each input's own tokens, but for the first to itself."""
    mask = mask.to(fused.device)
    pairs = mask[:, :, None] & mask[:, None, :]  # b t s
    first = mask.float().argmax(dim=1)
    kept = fused.clone()
    for layer in kept:
        for matrix, real, head in zip(layer, pairs, first.tolist(), strict=True):
            corner = matrix[head, head].clone()
            own = matrix[real]
            smallest = own.argsort(stable=True)[: int(own.numel() * discard)]
            own[smallest] = 0.0
            matrix[real] = own
            matrix[head, head] = corner
    return kept


def _check(attention: Tensor, discard: float, start: int) -> None:
    if not 0 <= discard < 1:
        raise ArgumentError(
            explain_error(
                "this fraction of attention cannot be discarded",
                got=f"discard={discard}",
                expected="a number from 0 up to, but not including, 1",
                instead="discard=0.9",
            )
        )
    if not 0 <= start < len(attention):
        raise ArgumentError(
            explain_error(
                "the model has no such block",
                got=f"start={start}",
                expected=f"a number from 0 to {len(attention) - 1}",
                instead="start=0",
            )
        )
