"""Least squares without negative numbers, by Lawson and Hanson's active set (1974, chapter 23)."""

from __future__ import annotations

import torch
from torch import Tensor

_ROUNDING = 1e-12


def nnls(matrix: Tensor, right: Tensor) -> Tensor:
    """The x >= 0 (u) with the least |matrix x - right|^2."""
    many = matrix.shape[1]
    found = matrix.new_zeros(many)
    passive = torch.zeros(many, dtype=torch.bool)
    least = _ROUNDING * float(matrix.abs().max()) * max(float(right.abs().max()), 1e-300) * many
    for _ in range(3 * many):
        slope = matrix.T @ (right - matrix @ found)
        slope[passive] = -torch.inf
        if passive.all() or slope.max() <= least:
            break
        passive[slope.argmax()] = True
        found, passive = _settled(matrix, right, found, passive)
    return found


def _settled(
    matrix: Tensor, right: Tensor, found: Tensor, passive: Tensor
) -> tuple[Tensor, Tensor]:
    """The least squares on the passive set, of which those leave that would turn negative."""
    passive = passive.clone()
    while True:
        trial = torch.zeros_like(found)
        solved = torch.linalg.lstsq(matrix[:, passive], right[:, None], driver="gelsd").solution
        trial[passive] = solved[:, 0]
        wrong = passive & (trial <= 0)
        if not wrong.any():
            return trial, passive
        part = (found[wrong] / (found[wrong] - trial[wrong]).clamp(min=1e-300)).min()
        found = found + part * (trial - found)
        passive &= ~(wrong & (found <= _ROUNDING * found.max()))
        found = torch.where(passive, found, 0.0)
