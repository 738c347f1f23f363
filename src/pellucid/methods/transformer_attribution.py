"""Transformer Attribution. Chefer, Gur and Wolf, CVPR 2021, sections 3.2 and 3.3.

Each attention map is weighted by the product of its relevance and its gradient, and the weighted
maps are multiplied over the blocks.

It misleads where evidence against a class matters, as negative parts are cut off in every block,
and where few blocks carry the decision, as all of them are multiplied.

LRP is patented by its inventors. Whoever builds it into a product should check for themselves.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pellucid._case import Case
from pellucid._errors import ArgumentError, explain_error
from pellucid._needs import Needs
from pellucid._spec import method
from pellucid.relevance.deep_taylor import DeepTaylor


@method(
    needs=Needs.ATTENTION | Needs.READOUT | Needs.RULES,
    cite="chefer2021transformer",
    signed=False,
    presets={
        "vit": {"start": 1},  # as in the authors' experiments with images
        "bert": {"start": -1, "normalise": True},  # and with texts
    },
)
def transformer_attribution(case: Case, *, start: int = 0, normalise: bool = False) -> Tensor:
    """The product over blocks of I + the mean over heads of (gradient * relevance)⁺.

    `start` is the first block that takes part, counted from the last where it is negative;
    `normalise` makes every row of a block's map sum to one, as the authors' code does for texts.
    """
    trace = case.record(Needs.ATTENTION, gradients=True)
    gradient = trace.gradient("attention")  # l b h t s
    _check(start, len(gradient))
    rules = DeepTaylor(joint=True)
    relevance = case.record(Needs.ATTENTION, gradients=True, rules=rules).gradient("attention")
    weighted = (gradient * relevance).clamp(min=0).mean(dim=2)  # l b t s
    blocks = weighted + torch.eye(weighted.shape[-1]).to(weighted)
    if normalise:
        blocks = blocks / blocks.sum(dim=-1, keepdim=True)
    flow = blocks[start]
    for block in blocks[start:][1:]:
        flow = block @ flow  # later blocks multiply on the left
    return case.read(flow)


def _check(start: int, blocks: int) -> None:
    if not -blocks <= start < blocks:
        raise ArgumentError(
            explain_error(
                "the model has no such block",
                got=f"start={start}",
                expected=f"a number from {-blocks} to {blocks - 1}",
                instead="start=0",
            )
        )
