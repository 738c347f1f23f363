"""Grad-CAM on the last attention map. Selvaraju et al., ICCV 2017, with heads as channels.

This is the form in which Chefer, Gur and Wolf (CVPR 2021) carried it over to Transformers, where
later papers compare with it; theirs for texts weights a head by the gradient of its whole map.

It misleads where the evidence was read in earlier blocks, as one map of the last is all that it
sees; a score of zero then says nothing about the input.
"""

from __future__ import annotations

import torch

from pellucid._case import Case
from pellucid._needs import Needs
from pellucid._spec import method
from pellucid._types import Attribution

_NOTHING = "the weighted attention is positive nowhere in the input, so its scores are zero"


@method(needs=Needs.ATTENTION | Needs.READOUT, cite="selvaraju2017gradcam", signed=False)
def grad_cam(case: Case) -> Attribution:
    """The last attention, its heads weighted by their mean gradient, where that is positive.

    The prediction is read from a row of the map; for images a head weighs as much as the gradient
    of that row is on average over the patches, for texts that of the whole map.
    """
    trace = case.record(Needs.ATTENTION, gradients=True)
    maps = trace.each("attention")[-1]  # b h t s
    (gradient,) = trace.gradients("attention", first=-1)
    readout = case.readout.to(maps)
    if case.kind == "image":
        patches = case.content.to(maps)
        read = torch.einsum("bt,bhts,bs->bh", readout, gradient, patches)
        weights = read / patches.sum(dim=1, keepdim=True)  # equation 1, over patches
    else:
        pairs = (maps > 0) & case.mask[:, None, :, None].to(maps.device)  # that could attend
        weights = (gradient * pairs).sum(dim=(-2, -1)) / pairs.sum(dim=(-2, -1))
    found = torch.einsum("bh,bt,bhts->bs", weights, readout, maps) / maps.shape[1]
    scores = found.clamp(min=0)  # equation 2
    positive = (scores > 0) & case.content.to(scores.device)
    notes = [() if some else (_NOTHING,) for some in positive.any(dim=1).tolist()]
    return Attribution(scores, notes=notes)
