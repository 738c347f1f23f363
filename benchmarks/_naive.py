"""Algorithm 1 as a textbook has it: all of the Jacobian by `jacrev`, a dense `eigh` for each token.

One input at a time, as printed; a null eigenvector of every token's block is drawn at random.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from pellucid._case import Case
from pellucid.explorer.space import Space
from pellucid.record.attention import AttentionWatch


def prediction(case: Case, space: Space) -> Callable[[Tensor], Tensor]:
    """The logits of one input as a function of its states (t d -> q)."""

    def logits(state: Tensor) -> Tensor:
        with AttentionWatch():  # fused kernels have no batching rule
            output = space.output(case.batch, state[None])
        return case.adapter.rows(output, case.batch)[0, 0]

    return logits


def spectra(function: Callable[[Tensor], Tensor], x: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues and eigenvectors of every token's block (t d, t d d)."""
    jacobian = torch.func.jacrev(function)(x)  # q t d
    metric = torch.einsum("qtd,qte->tde", jacobian, jacobian)
    return torch.linalg.eigh(metric)


def step(
    function: Callable[[Tensor], Tensor],
    x: Tensor,
    moving: Tensor,
    scale: float,
    generator: torch.Generator,
    haar: bool = False,
) -> Tensor:
    """One iteration: each token moves by scale / sqrt(l_max) along a null direction of its own."""
    values, vectors = spectra(function, x)
    largest = values[:, -1]
    null = values <= 1e-6 * largest[:, None]
    moved = x.clone()
    for token in moving.nonzero()[:, 0].tolist():
        basis = vectors[token][:, null[token]]  # d m
        if haar:  # uniform over the kernel, where an eigenvector's basis is arbitrary
            drawn = torch.randn(basis.shape[1], generator=generator, dtype=x.dtype)
            direction = basis @ (drawn / drawn.norm())
        else:
            direction = basis[:, torch.randint(basis.shape[1], (), generator=generator)]
        moved[token] += scale / largest[token].sqrt() * direction
    return moved
