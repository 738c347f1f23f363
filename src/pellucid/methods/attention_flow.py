"""Attention flow. Abnar and Zuidema, ACL 2020, section 3.

The attention of all blocks is a network of pipes from the output down to the input, as wide as the
weights; a token's score is how much could flow to it at most, if it were the only drain.

It misleads where values matter: attention is followed as if every token carried the same, and no
class is asked for, so the map of one prediction is that of all.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pellucid._case import Case
from pellucid._needs import Needs
from pellucid._spec import method
from pellucid.methods._heads import fused
from pellucid.methods._max_flow import max_flows


@method(
    needs=Needs.ATTENTION | Needs.READOUT,
    cite="abnar2020quantifying",
    signed=False,
    class_specific=False,
)
def attention_flow(case: Case) -> Tensor:
    """The maximum flow from the output to each token, through attention mixed with the identity.

    Heads are averaged. The flow is computed exactly, on the CPU, for every token by itself, so the
    cost grows at least with the cube of their number: seconds for 65 tokens, and many for 257.
    """
    attention = case.record(Needs.ATTENTION).each("attention")  # b h t s each
    layers = torch.stack([fused(maps, "mean").double().cpu() for maps in reversed(attention)], 1)
    mixed = layers + torch.eye(layers.shape[-1]).to(layers)  # b m t s, from the last block down
    capacities = mixed / mixed.sum(dim=-1, keepdim=True)
    source = case.readout.to(layers)  # b t
    scores = torch.zeros_like(source)
    for row, real in enumerate(case.mask.cpu()):
        own = real.nonzero().flatten()
        scores[row, own] = max_flows(capacities[row][:, own][:, :, own], source[row, own])
    return scores.to(attention[0])
