"""The patch embedding of a vision model as a matrix: what pixels do to a token, and back."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from pellucid._errors import InputError, explain_error
from pellucid._types import Batch
from pellucid.adapters.image_model import ImageModel
from pellucid.explorer.space import Pixels


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
        if gap > 1e-3 * states.abs().max():
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


def _not_affine(adapter: ImageModel, why: str) -> InputError:
    return InputError(
        explain_error(
            "states of this model cannot be turned into pixels exactly",
            got=f"{adapter.name}: {why}",
            expected="an embedding that is affine in the pixels",
            instead="space='pixels', where every point is an image",
        )
    )
