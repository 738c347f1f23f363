"""Occlusion. Zeiler and Fergus, ECCV 2014, section 4.2; Li et al. 2016 for the tokens of a text.

What the target loses when a window of the image is hidden, or one token of the text is taken away.

It misleads where tokens stand in for each other: taking away one of two that each suffice changes
nothing, and both get zero. A hidden window is a picture that the model has not seen.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pellucid._arguments import integer
from pellucid._baselines import Reference, reference_pixels
from pellucid._case import Case
from pellucid._kept import score_kept
from pellucid._needs import Needs
from pellucid._perturb import score_pixels, sum_by_row
from pellucid._spec import method
from pellucid._types import Picture, Removal


@method(
    needs=Needs.NOTHING,  # any image can be painted over, and any text shortened
    cite=("zeiler2014visualizing", "li2016understanding"),
    signed=True,
    explains="probability",
    quick={"window": 16},
)
def occlusion(
    case: Case,
    *,
    window: int = 0,
    stride: int = 0,
    baseline: Reference = "zero",
    by: Removal = "delete",
) -> Tensor:
    """What the target loses without each window of the image, or without each token of the text.

    For images, `window` and `stride` are in pixels (0: a patch of the model, or an eighth of the
    side where it has none; as far as the window is wide), and a pixel's score is the mean over the
    windows that hide it; `baseline` is what they are hidden by. For texts, a token is deleted, or
    replaced `by` the "mask", "unk" or "pad" token.
    """
    if case.kind == "text":
        each = ~torch.eye(case.mask.shape[1], dtype=torch.bool, device=case.mask.device)
        keep = each.expand(len(case.batch), -1, -1)  # b m t, one token gone in each
        lost = case.value[:, None] - score_kept(case, keep, by).to(case.value)
        return lost.masked_fill(~case.content.to(lost.device), 0.0).to(case.dtype)
    x, empty = case.pixels, reference_pixels(case, baseline)  # b c h w
    high, wide = _windows(case, window, stride)  # windows along each axis
    count = len(high) * len(wide)

    def changed(rows: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        hidden = high[k // len(wide)][:, :, None] & wide[k % len(wide)][:, None, :]  # j h w
        return torch.where(hidden[:, None], empty[rows], x[rows]), hidden

    total = torch.zeros_like(x[:, 0], dtype=case.dtype)
    for rows, _, hidden, value in score_pixels(case, [count] * len(x), changed):
        lost = (case.value[rows] - value).to(total)
        total += sum_by_row(rows, lost[:, None, None] * hidden, len(x))
    covered = high.sum(dim=0)[:, None] * wide.sum(dim=0)  # h w
    return total / covered.clamp(min=1)


def _windows(case: Case, window: int, stride: int) -> tuple[Tensor, Tensor]:
    """Which rows, and which columns, each window covers (n h, m w); the last may be cut short."""
    first = case.batch.items[0]
    assert isinstance(first, Picture)
    box = next((s.box for s in first.segments if s.box is not None), None)
    covers = []
    for axis, side in enumerate(case.pixels.shape[-2:]):
        patch = box[axis + 2] - box[axis] if box else max(1, side // 8)
        width = min(integer("window", window, 0, 16) or patch, side)
        step = integer("stride", stride, 0, 8) or width
        starts = torch.arange(-(-(side - width) // step) + 1)[:, None] * step
        place = torch.arange(side)
        covers.append(((place >= starts) & (place < starts + width)).to(case.pixels.device))
    return covers[0], covers[1]
