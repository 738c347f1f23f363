"""The leading spectrum of a pullback that has too many outputs for a row each.

A randomised range finder (Halko, Martinsson and Tropp, SIAM Review 2011): reverse products with
random cotangents span the leading directions, forward products with those give the spectrum. It
takes twice `rank` passes for each round, and no row of the Jacobian is ever kept.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pellucid.geometry.jacobian import Jacobian

_SPARE = 8  # more directions than asked for, which makes the asked ones accurate
_ROUNDS = 3


def leading_rows(
    jacobian: Jacobian, rank: int, generator: torch.Generator, rounds: int = _ROUNDS
) -> Tensor:
    """Rows S V' (b rank n) with the leading singular values and right vectors of J (b q n)."""
    outputs, size = jacobian.y.shape[1], jacobian.x[0].numel()
    count = min(rank + _SPARE, outputs, size)
    shape = (len(jacobian.y), count, outputs)
    cotangents = torch.randn(shape, generator=generator, dtype=torch.float64).to(jacobian.y)
    for _ in range(rounds):
        back = jacobian.rows(cotangents=cotangents).flatten(2).double()  # b k n
        basis = torch.linalg.qr(back.transpose(1, 2))[0].transpose(1, 2)  # b k n
        forth = [jacobian.jvp(v.view_as(jacobian.x).to(jacobian.x)) for v in basis.transpose(0, 1)]
        image = torch.stack(forth, dim=1).double()  # b k q: J V
        cotangents = torch.linalg.qr(image.transpose(1, 2))[0].transpose(1, 2).to(jacobian.y)
    _, sizes, right = torch.linalg.svd(image.transpose(1, 2), full_matrices=False)
    found: Tensor = sizes[:, :rank, None] * (right[:, :rank] @ basis)
    return found
