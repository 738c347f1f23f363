"""Algorithm 3 of the SiMEC paper: a token's importance is the largest eigenvalue of its block."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from pellucid.geometry.pullback import token_blocks

Measure = Literal["largest", "root", "trace"]


def block_importance(rows: Tensor, measure: Measure = "largest") -> Tensor:
    """From the rows B (b q t d) of all tokens: one number a token (b t).

    "largest" is l_max(B_t' B_t), by way of the q x q Gram matrix B_t B_t'; "root" its square root,
    the most that the output moves for a unit step of that token; "trace" the sum of eigenvalues.
    """
    blocks = token_blocks(rows)  # b t q d
    gram = blocks @ blocks.transpose(-2, -1)
    if measure == "trace":
        return gram.diagonal(dim1=-2, dim2=-1).sum(dim=-1)
    largest: Tensor = torch.linalg.eigvalsh(gram)[..., -1].clamp(min=0)
    return largest.sqrt() if measure == "root" else largest
