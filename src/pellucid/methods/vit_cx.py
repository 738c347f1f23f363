"""ViT-CX. Xie et al., IJCAI 2023, section 3.

The channels of the last block's normalised input are maps of what the model tells apart. Alike maps
are merged to a few masks, and a mask counts by how much of the probability survives behind it, less
what the noise in its hidden part destroys by itself.

It misleads where the features of the last block are alike: few masks remain, and the map is as
coarse as they are. Scores of pixels outside of all masks say nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from pellucid._case import Case
from pellucid._linkage import complete_linkage
from pellucid._needs import Needs
from pellucid._perturb import noise, score_pixels, sum_by_row
from pellucid._spec import method
from pellucid._types import Attribution, Picture
from pellucid.methods._rejected import rejected_notes

Enlarge = Callable[[Tensor], Tensor]

_AT_ONCE = 64  # maps that are enlarged at once
_NOWHERE = 1e-6  # a pixel that all masks together show less of has no score


@method(
    needs=Needs.STREAM | Needs.BRANCHES,
    cite="xie2022vitcx",
    signed=True,
    kinds=("image",),
    explains="probability",
    presets={"paper": {"distance": 0.1, "spread": 0.1}},
    quick={"distance": 0.15},
)
def vit_cx(case: Case, *, distance: float = 0.1, spread: float = 0.1) -> Attribution:
    """The mean of masks made of the model's own features, weighted by their causal effect.

    Feature maps nearer than `distance` (one minus the cosine, complete linkage) make one mask.
    `spread` is the standard deviation of the noise, in the numbers that the model reads.
    """
    x, p = case.pixels, case.value  # b c h w, b
    grids, enlarged = _feature_masks(case, distance)
    counts = [len(one) for one in grids]
    total = torch.zeros_like(x[:, 0], dtype=case.dtype)
    covered = torch.zeros_like(total)

    def mask(rows: Tensor, k: Tensor) -> Tensor:
        pairs = zip(rows.tolist(), k.tolist(), strict=True)
        return enlarged(torch.stack([grids[row][number] for row, number in pairs]))  # M: j h w

    def noisy(rows: Tensor, k: Tensor, m: Tensor) -> Tensor:
        return spread * noise(case, rows, k, x) * (1 - m[:, None])  # n: j c h w

    def around(rows: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        m = mask(rows, k)
        return x[rows] + noisy(rows, k, m), m

    def behind(rows: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        m = mask(rows, k)
        return x[rows] * m[:, None] + noisy(rows, k, m), m

    hurt = torch.zeros(len(x), max(counts), dtype=torch.float64, device=x.device)
    for rows, k, _, value in score_pixels(case, counts, around):
        hurt[rows, k] = value.to(hurt)
    for rows, k, m, value in score_pixels(case, counts, behind):
        s = (value.to(hurt) - hurt[rows, k] + p[rows].to(hurt)).to(total)  # the causal effect
        total += sum_by_row(rows, s[:, None, None] * m, len(x))
        covered += sum_by_row(rows, m, len(x))
    each = torch.tensor(counts).to(total)[:, None, None]
    scores = total / covered.clamp(min=_NOWHERE) / each.clamp(min=1)
    return Attribution(scores, notes=rejected_notes(case))


def _feature_masks(case: Case, distance: float) -> tuple[list[Tensor], Enlarge]:
    """The masks of every image as small grids (k rows columns), and how grids become masks."""
    first = case.batch.items[0]
    assert isinstance(first, Picture)
    assert first.grid is not None
    boxes = [segment.box for segment in first.segments if segment.box is not None]
    height, width = case.pixels.shape[-2:]
    features = case.input(f"normed:{case.layers - 1}").double()  # b t d
    content = case.content.to(features.device)
    down = _interpolation(first.grid[0], max(box[2] for box in boxes)).to(features)  # y rows
    across = _interpolation(first.grid[1], max(box[3] for box in boxes)).to(features)  # x columns
    grids = []
    for state, own in zip(features, content, strict=True):
        maps = state[own].T.reshape(-1, *first.grid)  # d rows columns
        grids.append(_clustered(_between_0_and_1(maps, down, across), down, across, distance))

    def enlarged(some: Tensor) -> Tensor:
        found = (down @ some @ across.T).clamp(0, 1).to(case.dtype)
        return F.pad(found, (0, width - len(across), 0, height - len(down)))

    return grids, enlarged


def _clustered(maps: Tensor, down: Tensor, across: Tensor, distance: float) -> Tensor:
    """The sum of the maps in every cluster, between 0 and 1 again."""
    clusters = complete_linkage(1 - _cosines(maps, down, across), distance)
    sums = [maps[members.to(maps.device)].sum(dim=0) for members in clusters]
    return _between_0_and_1(torch.stack(sums), down, across) if sums else maps


def _between_0_and_1(maps: Tensor, down: Tensor, across: Tensor) -> Tensor:
    """The maps that are not constant, shifted and scaled so that they span 0 to 1 when enlarged."""
    parts = maps.split(_AT_ONCE)
    ends = [(down @ some @ across.T).flatten(1).aminmax(dim=1) for some in parts]
    low = torch.cat([end.min for end in ends])[:, None, None]
    high = torch.cat([end.max for end in ends])[:, None, None]
    varied = (high - low).flatten() > 1e-12 * maps.abs().amax()
    return ((maps - low) / (high - low))[varied]


def _cosines(maps: Tensor, down: Tensor, across: Tensor) -> Tensor:
    """The cosine between every two maps when they are enlarged, which is linear and separable."""
    products = torch.einsum("arc,rs,cd,bsd->ab", maps, down.T @ down, across.T @ across, maps)
    lengths = products.diagonal().sqrt()
    return products / lengths[:, None] / lengths


def _interpolation(cells: int, side: int) -> Tensor:
    """The linear map from cells to pixels along one axis (pixels cells)."""
    return F.interpolate(torch.eye(cells, dtype=torch.float64)[None], side, mode="linear")[0].T
