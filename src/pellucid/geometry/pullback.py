"""The pullback g = J'MJ of an output metric as a thin factor: never an n x n matrix.

With B = M^(1/2) J (q n), g = B'B has the squared singular values of B as its nonzero spectrum and
its right singular vectors as eigenvectors; everything orthogonal to them is the kernel. That costs
O(n q^2) where diagonalising g costs O(n^3). The leading dimensions are anything: inputs for the
joint metric, inputs and tokens for the blocks of single tokens.

SiMEC: "Unveiling Transformer Perception by Exploring Input Manifolds", eq. 5 and Algorithms 1 to 3.
"""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

RELATIVE = {torch.float64: 1e-9, torch.float32: 1e-5}  # of the largest singular value: zero below


class Pullback:
    """g = B'B at some points, from the rows B (..., q, n) in float64.

    A singular value is zero when it is below `zero` times the largest; at most `rank` are not (what
    the output metric allows, q - 1 for probabilities); `absolute` is a bound on eigenvalues.
    """

    def __init__(
        self,
        rows: Tensor,
        *,
        rank: int | None = None,
        zero: float = RELATIVE[torch.float64],
        absolute: float = 0.0,
    ) -> None:
        self.rows = rows
        thin, triangle = torch.linalg.qr(rows.transpose(-2, -1))  # n m, m q
        left, sizes, right = torch.linalg.svd(triangle.transpose(-2, -1), full_matrices=False)
        self.singular: Tensor = sizes  # ... m, falling
        self.left: Tensor = left  # ... q m: output directions
        self.vectors: Tensor = right @ thin.transpose(-2, -1)  # ... m n: input directions
        nonzero: Tensor = sizes > (zero * sizes[..., :1]).clamp(min=absolute**0.5)
        if rank is not None:
            nonzero[..., rank:] = False
        self.nonzero: Tensor = nonzero & (sizes > 0)  # ... m

    @property
    def values(self) -> Tensor:
        """The eigenvalues of g that can be other than zero, the largest first (..., m)."""
        return self.singular**2

    @property
    def largest(self) -> Tensor:
        """The largest eigenvalue (...)."""
        return self.values[..., 0]

    @cached_property
    def smallest(self) -> Tensor:
        """The smallest eigenvalue that counts as nonzero (...); zero where none does."""
        kept = torch.where(self.nonzero, self.values, torch.inf).amin(dim=-1)
        return torch.where(kept.isinf(), 0.0, kept)

    @cached_property
    def rank(self) -> Tensor:
        """How many eigenvalues count as nonzero (...)."""
        return self.nonzero.sum(dim=-1)

    def matvec(self, v: Tensor) -> Tensor:
        """g v (..., n)."""
        return _back(self.rows, _forth(self.rows, v))

    def norm(self, v: Tensor) -> Tensor:
        """The pseudo-norm sqrt(v'gv) = |B v| (...); eq. 3."""
        found: Tensor = _forth(self.rows, v).norm(dim=-1)
        return found

    def null_project(self, v: Tensor) -> Tensor:
        """The part of v in the kernel of g; projected twice, so that nothing else is left."""
        basis = self.vectors * self.nonzero[..., None]
        for _ in range(2):
            v = v - _back(basis, _forth(basis, v))
        return v

    def lift(self, u: Tensor) -> Tensor:
        """The shortest v with B v = u, for u in the range (..., q -> ..., n)."""
        inverse = torch.where(self.nonzero, 1 / self.singular, 0.0)
        along = (self.left * u[..., None]).sum(dim=-2) * inverse
        return _back(self.vectors, along)

    def as_matrix(self) -> Tensor:
        """All of g (..., n, n): for tests and very small inputs."""
        return self.rows.transpose(-2, -1) @ self.rows


def token_blocks(rows: Tensor) -> Tensor:
    """B (b q t d) as one factor a token (b t q d): the diagonal blocks of g."""
    return rows.transpose(1, 2)


def interactions(rows: Tensor) -> Tensor:
    """How strongly two tokens act together: |B_s' B_t| (b t t), from the q x q Gram matrices."""
    gram = torch.einsum("bqtd,bptd->btqp", rows, rows)
    return torch.einsum("bsqp,btqp->bst", gram, gram).clamp(min=0).sqrt()


def _forth(matrix: Tensor, v: Tensor) -> Tensor:
    return (matrix @ v[..., None])[..., 0]


def _back(matrix: Tensor, u: Tensor) -> Tensor:
    return (matrix.transpose(-2, -1) @ u[..., None])[..., 0]
