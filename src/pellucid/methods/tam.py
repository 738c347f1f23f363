"""Transition attention maps. Yuan et al., NeurIPS Workshops 2021.

The attention of the blocks is read as the transitions of a Markov chain, followed from the output
down; what is left of a token is weighted by the integrated gradient of the last attention map.

It misleads where the last map has little to do with the target, as its gradient scales the whole;
the chain itself knows attention alone, and nothing can speak against a class.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pellucid._arguments import position
from pellucid._case import Case
from pellucid._needs import Needs
from pellucid._spec import method
from pellucid.methods._path import mean_gradient


@method(
    needs=Needs.ATTENTION | Needs.STREAM | Needs.READOUT,
    cite="yuan2021explaining",
    signed=False,
    presets={"tis": {"start": 0, "steps": 20}},
    quick={"steps": 3},
)
def tam(
    case: Case, *, start: int = 4, steps: int = 20, integral: bool = True, first_state: bool = False
) -> Tensor:
    """A Markov chain over the attention of the blocks, times the gradient of the last one.

    `start` is the first block of the chain (the last but one at most); `steps` are those of the
    path from nothing to the input, over which the gradient is averaged; without `integral` it is
    that at the input, and with `first_state` the chain is not followed below the last block.
    """
    trace = case.record(Needs.ATTENTION, gradients=not integral)
    attention = trace.each("attention")
    first = position("start", min(start, max(len(attention) - 2, 0)), len(attention))
    state = case.read(attention[-1].mean(dim=1))  # b t
    for maps in reversed([] if first_state else attention[first:-1]):
        state = state + torch.einsum("bt,bts->bs", state, maps.mean(dim=1))
    gradient = mean_gradient(case, steps) if integral else trace.gradients("attention", -1)[0]
    return state * case.read(gradient.clamp(min=0).mean(dim=1))
