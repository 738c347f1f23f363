"""Algorithm 1 as a textbook has it: all of the Jacobian by `jacrev`, a dense `eigh` for each token.

The inputs of a batch walk at once; a null direction of every token's block is drawn at random.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from pellucid._case import Case
from pellucid.explorer.space import Space
from pellucid.record.attention import AttentionWatch


def prediction(case: Case, space: Space) -> Callable[[Tensor], Tensor]:
    """The logits of a batch as a function of its states (b t d -> b q)."""

    def logits(state: Tensor) -> Tensor:
        with AttentionWatch():  # fused kernels have no batching rule
            output = space.output(case.batch, state)
        return case.adapter.rows(output, case.batch)[:, 0]

    return logits


def spectra(function: Callable[[Tensor], Tensor], x: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues and eigenvectors of every token's block (b t d, b t d d)."""
    jacobian = torch.func.jacrev(lambda state: function(state).sum(dim=0))(x)  # q b t d
    metric = torch.einsum("qbtd,qbte->btde", jacobian, jacobian)
    return torch.linalg.eigh(metric)


def step(
    function: Callable[[Tensor], Tensor],
    x: Tensor,
    moving: Tensor,
    scale: float,
    generator: torch.Generator,
    haar: bool = False,
) -> Tensor:
    """One iteration: each token (where `moving`, b t) goes scale / sqrt(l_max) along its kernel."""
    values, vectors = spectra(function, x)
    largest = values[..., -1]
    null = values <= 1e-6 * largest[..., None]
    moved = x.clone()
    for row, token in moving.nonzero().tolist():
        basis = vectors[row, token][:, null[row, token]]  # d m
        if haar:  # uniform over the kernel, where an eigenvector's basis is arbitrary
            drawn = torch.randn(basis.shape[1], generator=generator, dtype=x.dtype)
            direction = basis @ (drawn / drawn.norm())
        else:
            direction = basis[:, torch.randint(basis.shape[1], (), generator=generator)]
        moved[row, token] += scale / largest[row, token].sqrt() * direction
    return moved
