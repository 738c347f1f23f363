"""Transformer-MM. Chefer, Gur and Wolf, ICCV 2021, for self-attention.

It misleads where evidence against a class matters, as negative parts are cut off in every block,
and where a map's gradient, which is of first order, is not what the map does.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pellucid._arguments import position
from pellucid._case import Case
from pellucid._needs import Needs
from pellucid._spec import method


@method(
    needs=Needs.ATTENTION | Needs.READOUT,
    cite="chefer2021generic",
    signed=False,
    presets={"clip": {"start": -1}},
)
def transformer_mm(case: Case, *, start: int = 0) -> Tensor:
    """Attention weighted by its positive gradient, accumulated over the blocks.

    `start` is the first block that takes part; a negative number counts from the end.
    """
    trace = case.record(Needs.ATTENTION, gradients=True)
    attention = trace.each("attention")
    first = position("start", start, len(attention))
    gradients = trace.gradients("attention", first)
    row = case.readout.to(attention[0])  # of R, the product of all I + A, from the left
    for maps, gradient in zip(reversed(attention[first:]), reversed(gradients), strict=True):
        layer = (gradient * maps).clamp(min=0).mean(dim=1)  # equation 5
        row = row + torch.einsum("bt,bts->bs", row, layer)  # equation 6
    return row
