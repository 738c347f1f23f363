"""ViT-CX. Xie et al., IJCAI 2023, section 3.

The channels of the last block's normalised input are maps of what the model tells apart. Alike maps
are merged to a few masks, and a mask counts by how much of the probability survives behind it, less
what the noise in its hidden part destroys by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from pellucid._arguments import real
from pellucid._case import Case
from pellucid._linkage import complete_linkage
from pellucid._needs import Needs
from pellucid._perturb import noise, score_pixels, sum_by_row
from pellucid._spec import method
from pellucid._types import Attribution, Picture
from pellucid.methods._rejected import rejected_notes

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
    real("distance", distance), real("spread", spread)
    x, p = case.pixels, case.value  # b c h w, b
    drawn = [_Masks.of(case, row, distance) for row in range(len(x))]
    counts = [len(one.grids) for one in drawn]
    total = torch.zeros_like(x[:, 0], dtype=case.dtype)
    covered = torch.zeros_like(total)

    def mask(rows: Tensor, k: Tensor) -> Tensor:
        pairs = zip(rows.tolist(), k.tolist(), strict=True)
        return torch.stack([drawn[row].mask(number) for row, number in pairs]).to(total)  # j h w

    def noisy(rows: Tensor, k: Tensor) -> Tensor:
        return spread * noise(case, rows, k, x) * (1 - mask(rows, k)[:, None])  # n: j c h w

    hurt = torch.zeros(len(x), max(counts), dtype=torch.float64, device=x.device)
    for rows, k, value in score_pixels(case, counts, lambda r, k: x[r] + noisy(r, k)):
        hurt[rows, k] = value.to(hurt)
    masked = score_pixels(case, counts, lambda r, k: x[r] * mask(r, k)[:, None] + noisy(r, k))
    for rows, k, value in masked:
        s = (value.to(hurt) - hurt[rows, k] + p[rows].to(hurt)).to(total)  # the causal effect
        total += sum_by_row(rows, s[:, None, None] * mask(rows, k), len(x))
        covered += sum_by_row(rows, mask(rows, k), len(x))
    each = torch.tensor(counts).to(total)[:, None, None]
    scores = total / covered.clamp(min=_NOWHERE) / each.clamp(min=1)
    return Attribution(scores, notes=rejected_notes(case))


@dataclass(frozen=True, eq=False)
class _Masks:
    """The masks of one image, as small grids that are enlarged when their turn comes."""

    grids: Tensor  # k rows columns
    covered: tuple[int, int]  # pixels that belong to a patch
    size: tuple[int, int]  # of the image

    @classmethod
    def of(cls, case: Case, row: int, distance: float) -> _Masks:
        """Cluster the feature maps of one image."""
        item = case.batch.items[row]
        assert isinstance(item, Picture)
        assert item.grid is not None
        boxes = [segment.box for segment in item.segments if segment.box is not None]
        covered = (max(box[2] for box in boxes), max(box[3] for box in boxes))
        features = case.input(f"normed:{case.layers - 1}")[row]
        own = features[case.content[row].to(features.device)].double()  # n d
        maps = _between_0_and_1(own.T.reshape(-1, *item.grid), covered)
        clusters = complete_linkage(1 - _cosines(maps, covered), distance)
        sums = [maps[members.to(maps.device)].sum(dim=0) for members in clusters]
        grids = _between_0_and_1(torch.stack(sums), covered) if sums else maps
        return cls(grids, covered, (item.view.shape[0], item.view.shape[1]))

    def mask(self, number: int) -> Tensor:
        """One mask (h w), zero on a border that belongs to no patch."""
        found = _enlarged(self.grids[number : number + 1], self.covered)[0].clamp(0, 1)
        return F.pad(found, (0, self.size[1] - found.shape[1], 0, self.size[0] - found.shape[0]))


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
