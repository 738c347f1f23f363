"""Attentive class activation tokens. Qiang et al., NeurIPS 2022.

It misleads where the gradient is taken for granted beyond a small change: it is a first-order view
of every block, and attention that a token gets is not yet effect that it has.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pellucid._case import Case
from pellucid._needs import Needs
from pellucid._spec import method


@method(needs=Needs.ATTENTION | Needs.STREAM, cite="qiang2022attcat", signed=True)
def attcat(case: Case) -> Tensor:
    """Gradient times state of every block's input, weighted by the attention that a token gets."""
    trace = case.record(Needs.ATTENTION | Needs.STREAM, gradients=True)
    states, gradients = trace.each("stream"), trace.gradients("stream")
    asking = case.mask.to(states[0])  # padding asks for nothing
    asking = asking / asking.sum(dim=1, keepdim=True)
    scores = torch.zeros_like(asking)
    for layer, maps in enumerate(trace.each("attention")):
        activation = (gradients[layer] * states[layer]).sum(dim=-1)  # b t: the CAT of a token
        received = torch.einsum("bt,bhts->bs", asking, maps) / maps.shape[1]
        scores = scores + received * activation
    return scores
