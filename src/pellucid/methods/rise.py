"""RISE. Petsiuk, Das and Saenko, BMVC 2018, section 3.

The probability of the class on images seen through random masks; a pixel matters as much as the
probability is on average where the mask lets it through.

It misleads where objects are small beside a cell of its masks, and where few masks leave noise in
the map; what is hidden is replaced by one colour, which is a picture of its own.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from pellucid._arguments import integer
from pellucid._case import Case
from pellucid._errors import ArgumentError, explain_error
from pellucid._needs import Needs
from pellucid._perturb import score_pixels, sum_by_row, until_late
from pellucid._spec import method
from pellucid._types import Attribution
from pellucid.methods._late import late_notes
from pellucid.methods._rejected import rejected_notes


@method(
    needs=Needs.NOTHING,
    cite="petsiuk2018rise",
    signed=False,
    kinds=("image",),
    explains="probability",
    presets={"paper": {"cells": 7, "keep": 0.5}, "tis": {}},
    quick={"masks": 6, "cells": 3, "keep": 0.5},
)
def rise(case: Case, *, masks: int = 4000, cells: int = 8, keep: float = 0.1) -> Attribution:
    """The mean of random masks, each weighted by the target on the image seen through it.

    A mask is a grid of `cells` x `cells`, each open with probability `keep`, enlarged smoothly and
    shifted by less than a cell. What it hides is zero after normalisation. The default is what the
    authors' code and TIS's comparison use; the preset "paper" is the paper's own.
    """
    _check(keep)
    x = case.pixels  # b c h w
    mask = _draw(case, integer("masks", masks, 1, 4000), integer("cells", cells, 1, 8), keep)
    total = torch.zeros_like(x[:, 0], dtype=case.dtype)

    def seen(rows: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        m = mask(rows, k)
        return x[rows] * m[:, None], m

    count = torch.zeros(len(x), dtype=torch.long)
    for rows, _, m, p in until_late(case, score_pixels(case, [masks] * len(x), seen)):
        total += sum_by_row(rows, p.to(total)[:, None, None] * m, len(x))
        count += torch.bincount(rows, minlength=len(x))
    scores = total / (keep * count.clamp(min=1).to(total)[:, None, None])  # Eq. 6
    signed = case.target.quantity != "probability"
    late = late_notes(count.tolist(), masks, "masks")
    notes = [(*told, *more) for told, more in zip(rejected_notes(case), late, strict=True)]
    return Attribution(scores, notes=notes, signed=signed)


def _draw(case: Case, masks: int, cells: int, keep: float) -> Callable[[Tensor, Tensor], Tensor]:
    """The masks (j h w) of these inputs and numbers: what is kept of each is its grid and shift."""
    x = case.pixels
    height, width = x.shape[-2:]
    high, wide = (_enlarge(side, cells).to(x.device, case.dtype) for side in (height, width))
    grids, tops, lefts = [], [], []
    for generator in case.generators:
        grids.append(torch.rand(masks, cells, cells, generator=generator) < keep)
        tops.append(torch.randint(-(-height // cells), (masks,), generator=generator))
        lefts.append(torch.randint(-(-width // cells), (masks,), generator=generator))
    grid, top, left = (torch.stack(one).to(x.device) for one in (grids, tops, lefts))  # b k ...
    rows_seen = torch.arange(height, device=x.device)
    columns_seen = torch.arange(width, device=x.device)

    def mask(rows: Tensor, k: Tensor) -> Tensor:
        down = high[top[rows, k][:, None] + rows_seen]  # j h s
        across = wide[left[rows, k][:, None] + columns_seen]  # j w s
        return down @ grid[rows, k].to(down) @ across.transpose(1, 2)  # j h w

    return mask


def _enlarge(side: int, cells: int) -> Tensor:
    """The linear map from the cells to one cell more than the side of the image (y s)."""
    size = (cells + 1) * -(-side // cells)
    return F.interpolate(torch.eye(cells, dtype=torch.float64)[None], size, mode="linear")[0].T


def _check(keep: float) -> None:
    if not 0 < keep <= 1:
        raise ArgumentError(
            explain_error(
                "cells of a mask are open with a probability",
                got=f"keep={keep}",
                expected="a number above 0 and at most 1",
                instead="keep=0.5",
            )
        )
