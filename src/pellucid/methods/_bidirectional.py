"""What the two methods of Chen et al. (TMLR 2022) share: perception times reasoning feedback."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pellucid._arguments import position
from pellucid._case import Case
from pellucid.methods._path import mean_gradient


def bidirectional(case: Case, perceived: Sequence[Tensor], steps: int) -> Tensor:
    """The perception of the tokens that are read, times the feedback that each of them gives.

    `perceived` (b t s each) are the maps of the blocks that take part; those of all rows that are
    read follow I + A from the left, one by one where the prediction is read from one token.
    """
    feedback = mean_gradient(case, steps).clamp(min=0).mean(dim=1)  # b t s
    readout = case.readout.to(feedback)
    weights, tokens = readout.topk(int((readout > 0).sum(dim=1).max()))  # b k
    perception = torch.nn.functional.one_hot(tokens, readout.shape[1]).to(feedback)  # b k t
    for layer in reversed(perceived):
        perception = perception + perception @ layer
    answered = feedback.gather(1, tokens[..., None].expand_as(perception))  # b k s
    return torch.einsum("bk,bks->bs", weights, perception * answered)


def first_block(start: int | None, blocks: int, usual: int) -> int:
    """The first block that takes part, where none is named the usual one."""
    return min(usual, blocks - 1) if start is None else position("start", start, blocks)
