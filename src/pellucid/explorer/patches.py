"""The patch embedding of a vision model as a matrix: what pixels do to a token, and back."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from pellucid._errors import ArgumentError, InputError, explain_error
from pellucid._types import Batch
from pellucid.adapters.image_model import ImageModel
from pellucid.explorer.regions import Box
from pellucid.explorer.rows import pick
from pellucid.explorer.space import Pixels

_NEAR = 1e-3  # of the largest number of a state: how exactly an embedding is known


@dataclass(frozen=True, eq=False)
class PatchEmbedding:
    """x = E p + offset for every patch, with E (d c*ph*pw) the kernel of the convolution."""

    matrix: Tensor  # float64
    offset: Tensor  # b t d: bias and positions, patches only
    pixels: Tensor  # b t p: of the unchanged images
    prefix: int

    @classmethod
    def of(cls, adapter: ImageModel, batch: Batch) -> PatchEmbedding:
        """The embedding of these images, or an error where it is not affine in the pixels."""
        conv = adapter.anatomy.patchify
        if not isinstance(conv, nn.Conv2d):
            raise _not_affine(adapter, "its patches are not cut by a convolution")
        space, prefix = Pixels("pixels", adapter), adapter.anatomy.prefix
        pixels = space.start(batch)
        states = adapter.value_at(batch, "embedding")[:, prefix:].double()
        matrix = conv.weight.detach().flatten(1).double()
        black = adapter.with_pixels(batch, torch.zeros_like(adapter.value_at(batch, "input")))
        offset = adapter.value_at(black, "embedding")[:, prefix:].double()
        own = pixels[:, prefix:].double()
        gap = (own @ matrix.T + offset - states).abs().max()
        if gap > _NEAR * states.abs().max():
            raise _not_affine(adapter, "something normalises or mixes the patches behind it")
        return cls(matrix, offset, own, prefix)

    def bounds(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        """What the states can be for pixels between these (p each): the exact interval (b t d)."""
        ends = torch.stack([self.matrix * low, self.matrix * high])  # 2 d p
        return (
            self.offset + ends.amin(dim=0).sum(dim=1),
            self.offset + ends.amax(dim=0).sum(dim=1),
        )

    def invert(self, moves: Tensor) -> Tensor:
        """The pixels whose change makes this change of the states, by least squares (... d -> p).

        Exact where E has full column rank; with fewer numbers a token than pixels the smallest
        change. A change of zero gives back the picture in every case.
        """
        inverse: Tensor = torch.linalg.pinv(self.matrix)
        return moves.double() @ inverse.T.to(moves.device)


@dataclass(frozen=True, eq=False)
class PatchRange:
    """Exactly the states that images have: x = E p + offset, with every pixel p in its range.

    The coordinates are those of the pixels' box, so there may be more or fewer of them than numbers
    a state has. What stands in front of the patches is held.
    """

    box: Box  # of the pixels, patch by patch
    embedding: PatchEmbedding
    front: Tensor  # b f d: the tokens that have no pixels
    name: str = "pixels"

    def start(self, x: Tensor, moving: Tensor) -> Tensor:
        pixels = self._pixels(x, torch.arange(len(x)))
        gap = (self._states(pixels, torch.arange(len(x))) - x).abs()
        if (torch.where(moving[..., None], gap, 0.0) > _NEAR * x.abs().max()).any():
            raise ArgumentError(
                explain_error(
                    "the start of the walk is not the embedding of an image",
                    got=f"states off by {float(gap.max()):.3g}",
                    expected="patches as the embedding makes them, and tokens= of patches only",
                    instead="within=None",
                )
            )
        return self.box.start(pixels, moving)

    def chart(self, w: Tensor, rows: Tensor) -> Tensor:
        return self._states(self.box.chart(w, rows), rows)

    def project(self, x: Tensor, rows: Tensor) -> Tensor:
        """Inverted, its pixels clamped, and embedded again; the nearest image in pixels."""
        return self._states(self.box.project(self._pixels(x, rows), rows), rows)

    def _pixels(self, x: Tensor, rows: Tensor) -> Tensor:
        """The pixels of these states (b t p), by least squares; zeros in front."""
        own = self.embedding
        matrix, before = own.matrix.to(x), pick(own.pixels, rows).to(x)
        start = before @ matrix.T + pick(own.offset, rows).to(x)
        pixels = before + own.invert(x[:, own.prefix :] - start)
        return nn.functional.pad(pixels, (0, 0, own.prefix, 0))

    def _states(self, pixels: Tensor, rows: Tensor) -> Tensor:
        own = self.embedding
        states = pixels[:, own.prefix :] @ own.matrix.to(pixels).T + pick(own.offset, rows)
        return torch.cat([pick(self.front, rows).to(states), states], dim=1)


def _not_affine(adapter: ImageModel, why: str) -> InputError:
    return InputError(
        explain_error(
            "states of this model cannot be turned into pixels exactly",
            got=f"{adapter.name}: {why}",
            expected="an embedding that is affine in the pixels",
            instead="space='pixels', where every point is an image",
        )
    )
