"""Bidirectional attribution by tokens (BT-T). Chen et al., TMLR 2022.

It misleads where the last map has little to do with the target, since all else is multiplied by its
gradient; negative contributions are left out, so nothing can speak against a class.
"""

from __future__ import annotations

from torch import Tensor

from pellucid._case import Case
from pellucid._needs import Needs
from pellucid._spec import method
from pellucid.methods import _lengths
from pellucid.methods._bidirectional import bidirectional, first_block

_SEEN = Needs.ATTENTION | Needs.VALUES | Needs.STREAM | Needs.PROJECTION


@method(
    needs=_SEEN | Needs.READOUT,
    cite="chen2022beyond",
    signed=False,
    presets={"tis": {"start": 0, "steps": 20}},
    quick={"steps": 3},
)
def bt_t(case: Case, *, start: int | None = None, steps: int = 20) -> Tensor:
    """Attention times the growth of its tokens, over blocks, times the gradient of the last map.

    `start` is the first block that takes part (None: the middle one, or the last four for texts);
    the gradient is averaged over `steps` inputs from nothing to the whole.
    """
    trace = case.record(_SEEN, gradients=True)
    attention, values = trace.each("attention"), trace.each("values")
    stream, projection = trace.each("stream"), trace.each("projection")
    blocks = len(attention)
    usual = round(blocks / 2) if case.kind == "image" else max(blocks - 4, 0)
    perceived = []
    for i in range(first_block(start, blocks, usual), blocks):
        transformed = _lengths.joined(values[i], projection[i]).norm(dim=-1)  # b t
        growth = transformed / stream[i].norm(dim=-1).clamp(min=1e-8)
        perceived.append(attention[i].mean(dim=1) * growth[:, None, :])
    return bidirectional(case, perceived, steps)
