"""ViT-CX. Xie et al., IJCAI 2023, section 3.

The channels of the last block's normalised input are maps of what the model tells apart. Alike maps
are merged to a few masks, and a mask counts by how much of the probability survives behind it, less
what the noise in its hidden part destroys by itself.
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
    covered = (max(box[2] for box in boxes), max(box[3] for box in boxes))
    height, width = case.pixels.shape[-2:]
    features = case.input(f"normed:{case.layers - 1}")  # b t d
    content = case.content.to(features.device)
    grids = []
    for state, own in zip(features, content, strict=True):
        maps = state[own].double().T.reshape(-1, *first.grid)  # d rows columns
        grids.append(_clustered(_between_0_and_1(maps, covered), covered, distance))

    def enlarged(some: Tensor) -> Tensor:
        found = _enlarged(some.to(case.dtype), covered).clamp(0, 1)
        return F.pad(found, (0, width - covered[1], 0, height - covered[0]))

    return grids, enlarged


def _clustered(maps: Tensor, size: tuple[int, int], distance: float) -> Tensor:
    """The sum of the maps in every cluster, between 0 and 1 again."""
    clusters = complete_linkage(1 - _cosines(maps, size), distance)
    sums = [maps[members.to(maps.device)].sum(dim=0) for members in clusters]
    return _between_0_and_1(torch.stack(sums), size) if sums else maps


def _enlarged(maps: Tensor, size: tuple[int, int]) -> Tensor:
    return F.interpolate(maps[None], size, mode="bilinear", align_corners=False)[0]


def _between_0_and_1(maps: Tensor, size: tuple[int, int]) -> Tensor:
    """The maps that are not constant, shifted and scaled so that they span 0 to 1 when enlarged."""
    ends = [_enlarged(some, size).flatten(1).aminmax(dim=1) for some in maps.split(_AT_ONCE)]
    low = torch.cat([end.min for end in ends])[:, None, None]
    high = torch.cat([end.max for end in ends])[:, None, None]
    varied = (high > low).flatten()
    return ((maps - low) / (high - low))[varied]


def _cosines(maps: Tensor, size: tuple[int, int]) -> Tensor:
    """The cosine between every two maps when they are enlarged, which is linear and separable."""
    down, across = (_overlaps(m, n).to(maps) for m, n in zip(maps.shape[1:], size, strict=True))
    products = torch.einsum("arc,rs,cd,bsd->ab", maps, down, across, maps)
    lengths = products.diagonal().sqrt()
    return products / lengths[:, None] / lengths


def _overlaps(cells: int, side: int) -> Tensor:
    """The products of what each cell is enlarged to, along one axis."""
    basis = F.interpolate(torch.eye(cells, dtype=torch.float64)[None], side, mode="linear")[0]
    return basis @ basis.T
