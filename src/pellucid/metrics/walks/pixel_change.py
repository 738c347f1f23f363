"""How much the pictures of a walk change. SiMEC as published, section 4.

It misleads where change is taken for exploration: going to and fro changes pixels as well.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pellucid._spec import walk_metric
from pellucid._trajectory import Trajectory
from pellucid.metrics.walks._evidence import Against, Evidence, Skip, WalkMeasured


@walk_metric(cite="benfenati2024unveiling", stay="higher", leave="higher", kinds=("image",))
def pixel_change(
    evidence: Evidence, *, stride: int = 10, against: Against = "previous"
) -> WalkMeasured:
    """Mean change of a pixel of the walked patches from one stride to the next, of 0 to 1.

    d(k) = mean |z'(k) - z'(k - stride)| over the pixels that could move.
    """
    if evidence.walk.kind != "image":
        raise Skip("only pictures have pixels")
    frames = evidence.decoded.frames
    assert frames is not None
    rows, moving = evidence.rows(stride), _walked(evidence.walk)  # h w
    pixels = torch.tensor(frames)[rows].double()[:, moving] / 255  # s n c
    before = pixels[:1] if against == "start" else pixels[:-1]
    curve = (pixels[1:] - before).abs().mean(dim=(1, 2))
    return WalkMeasured(float(curve.mean()), curve, evidence.walk.iterations[rows[1:]])


def _walked(walk: Trajectory) -> Tensor:
    """The pixels of the patches that moved (h w, bool); all of a picture without patches."""
    height, width = walk.item.view.shape[:2]  # type: ignore[union-attr]  # it is a picture
    if not walk.segments:
        return torch.ones(height, width, dtype=torch.bool)
    found = torch.zeros(height, width, dtype=torch.bool)
    for box in (walk.segments[token].box for token in walk.tokens):
        if box is not None:  # the model's own tokens have no pixels
            top, left, bottom, right = box
            found[top:bottom, left:right] = True
    return found
