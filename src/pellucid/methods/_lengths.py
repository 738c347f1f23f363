"""How long what a head makes of a token is, and how much of it lies along the token's own state.

The vector that a head adds to the stream wherever a token is attended to is its value, projected.
It is never made: its length follows from the small Gram matrix of the projection.
"""

from __future__ import annotations

import torch
from torch import Tensor


def of_heads(values: Tensor, projection: Tensor, original: Tensor) -> tuple[Tensor, Tensor]:
    """The length of every head's vector and its product with the original's (b h t each).

    `values` (b h t c), `projection` (h c d) and `original` (b t d) are those of one block.
    """
    gram = torch.einsum("hcd,hed->hce", projection, projection)
    squares = ((values @ gram) * values).sum(dim=-1)
    along = torch.einsum("btd,hcd->bhtc", original, projection)
    return squares.clamp(min=0).sqrt(), (along * values).sum(dim=-1)


def of_vectors(vectors: Tensor, original: Tensor) -> tuple[Tensor, Tensor]:
    """The length of every vector and its product with the original (b t each)."""
    return vectors.norm(dim=-1), (vectors * original).sum(dim=-1)


def joined(values: Tensor, projection: Tensor) -> Tensor:
    """What all heads together make of a token (b t d)."""
    return torch.einsum("bhtc,hcd->btd", values, projection)
