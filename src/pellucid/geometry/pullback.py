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
        self._most = rank
        self._zero = zero
        self._absolute = absolute

    @cached_property
    def _factors(self) -> tuple[Tensor, Tensor, Tensor]:
        """B = U S V' by way of a QR of B', which does not square the condition as B B' does."""
        thin, triangle = torch.linalg.qr(self.rows.transpose(-2, -1))  # n m, m q
        left, sizes, right = torch.linalg.svd(triangle.transpose(-2, -1), full_matrices=False)
        return left, sizes, right @ thin.transpose(-2, -1)

    @property
    def left(self) -> Tensor:
        """Output directions, one for each singular value (..., q, m)."""
        return self._factors[0]

    @property
    def singular(self) -> Tensor:
        """Singular values of B, falling (..., m)."""
        return self._factors[1]

    @property
    def vectors(self) -> Tensor:
        """Eigenvectors of g: input directions (..., m, n)."""
        return self._factors[2]

    @cached_property
    def nonzero(self) -> Tensor:
        """Which singular values count as other than zero (..., m)."""
        sizes = self.singular
        found: Tensor = sizes > (self._zero * sizes[..., :1]).clamp(min=self._absolute**0.5)
        if self._most is not None:
            found[..., self._most :] = False
        return found & (sizes > 0)

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
