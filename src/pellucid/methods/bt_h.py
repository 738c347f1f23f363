"""Bidirectional attribution by heads (BT-H). Chen et al., TMLR 2022.

It misleads where the last map has little to do with the target, since all else is multiplied by its
gradient; negative contributions are left out, so nothing can speak against a class.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pellucid._case import Case
from pellucid._needs import Needs
from pellucid._spec import method
from pellucid.methods._bidirectional import bidirectional, first_block


@method(
    needs=Needs.ATTENTION | Needs.STREAM | Needs.READOUT,
    cite="chen2022beyond",
    signed=False,
    presets={"tis": {"start": 0, "steps": 20}},
    quick={"steps": 3},
)
def bt_h(case: Case, *, start: int | None = None, steps: int = 20) -> Tensor:
    """Attention of the heads that the target depends on, over blocks, times the last gradient.

    `start` is the first block that takes part (None: after a quarter, or the last for texts); the
    gradient of the last map is averaged over `steps` inputs from nothing to the whole.
    """
    trace = case.record(Needs.ATTENTION, gradients=True)
    attention = trace.each("attention")
    blocks = len(attention)
    first = first_block(start, blocks, round(blocks / 4) if case.kind == "image" else blocks - 1)
    gradients = trace.gradients("attention", first)
    perceived = [
        torch.einsum("bh,bhts->bts", _importance(maps, gradient), maps)
        for maps, gradient in zip(attention[first:], gradients, strict=True)
    ]
    return bidirectional(case, perceived, steps)


def _importance(maps: Tensor, gradient: Tensor) -> Tensor:
    """What share of the block's effect each head has (b h): all have the same if there is none."""
    possible = gradient * (maps > 0)  # nothing can be read of padding, or of what is to come
    effect = (maps.transpose(-2, -1) @ possible).abs().sum(dim=(-2, -1))
    total = effect.sum(dim=1, keepdim=True)
    return torch.where(total > 0, effect / total, torch.full_like(effect, 1 / effect.shape[1]))
