"""The points of a walk as pictures: the change of the states as a change of the pixels."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pellucid._decoded import Frames
from pellucid._types import Picture
from pellucid.adapters.image_model import ImageModel
from pellucid.explorer.patches import PatchEmbedding
from pellucid.explorer.space import Pixels, from_patches, to_patches
from pellucid.explorer.walked import Walked

_POINTS = 64  # pictures at once


@dataclass(frozen=True, eq=False)
class Developed:
    """The picture of every point, and how well it went."""

    frames: Frames  # s h w c
    changed: Tensor  # s m, bool
    quality: dict[str, Tensor]


def develop(walked: Walked) -> Developed:
    """x = x0 + E^+ (y - y0) for every patch that moved, in 8 bits (Algorithm 5).

    The change is added to the view itself, so a point that did not move is the view bit for bit.
    """
    adapter, item = walked.adapter, walked.item
    assert isinstance(adapter, ImageModel)
    assert isinstance(item, Picture)
    view = torch.tensor(item.view).permute(2, 0, 1)[None]  # 1 c h w
    places = torch.tensor(walked.places)
    tokens = walked.start.shape[1]
    patch = Pixels("pixels", adapter).patch(walked.batch)
    scale = torch.tensor(adapter.reader.preprocessing.std, dtype=torch.float64).view(1, -1, 1, 1)
    affine = walked.space.name == "embedding"
    embedding = PatchEmbedding.of(adapter, walked.batch) if affine else None
    shown, clipped, rest = [], [], []
    for part in walked.trajectory.points[:, walked.own].split(_POINTS):
        moves = part.double() - walked.start[0, places.to(walked.start.device)].double().cpu()
        pixels, residual = _as_pixels(embedding, moves)  # s m p
        every = pixels.new_zeros(len(part), tokens, pixels.shape[2])
        every[:, places] = pixels
        blank = torch.zeros(len(part), *view.shape[1:], dtype=torch.float64)
        every = every[:, tokens - _patches(blank, patch) :]  # without what stands in front
        exact = (view + 255 * scale * from_patches(every, patch, blank)).round()
        outside = ((exact < 0) | (exact > 255)).flatten(1).sum(dim=1)
        clipped.append(outside.double() / (len(places) * pixels.shape[2]))
        shown.append(exact.clamp(0, 255).to(torch.uint8))  # s c h w
        rest.append(residual)
    frames = torch.cat(shown)
    quality = {"clipped": torch.cat(clipped)}
    if affine:
        quality["off_manifold"] = torch.cat(rest)
    differs = to_patches((frames != view).double(), patch).any(dim=2)  # s t
    front = tokens - differs.shape[1]
    changed = torch.zeros(len(frames), len(walked.trajectory.tokens), dtype=torch.bool)
    changed[:, walked.own] = differs[:, places - front]
    return Developed(frames.permute(0, 2, 3, 1).contiguous().numpy(), changed, quality)


def _as_pixels(embedding: PatchEmbedding | None, moves: Tensor) -> tuple[Tensor, Tensor]:
    """The change of the pixels (s m p), and the length of what is left of the change (s)."""
    if embedding is None:
        return moves, torch.zeros(len(moves), dtype=torch.float64)
    pixels = embedding.invert(moves.to(embedding.matrix.device))
    left = moves.to(pixels.device) - pixels @ embedding.matrix.T  # (I - E E^+)(y - y0)
    return pixels.cpu(), left.flatten(1).norm(dim=1).cpu()


def _patches(image: Tensor, patch: tuple[int, int]) -> int:
    return (image.shape[-2] // patch[0]) * (image.shape[-1] // patch[1])
