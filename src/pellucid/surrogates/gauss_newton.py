"""SLALOM by Levenberg and Marquardt's method, with the Jacobian in closed form.

With A the shares (b u), dF/dv = A and dF/ds = A (v - F). The best values for given importances are
a least-squares problem, so only importances take steps: values are projected out of the normal
matrix, with one factorisation for all classes, and solved anew after each step.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from pellucid.surrogates.counts import shares

_FARTHEST = 3.0  # an importance moves by no more than this in one step
_EVEN = 1e-13  # steps that gain less than this part of the loss are the last
_HARDEST = 1e10  # damping beyond which no step is left that lowers the loss


class _Problem(NamedTuple):
    """The weighted mean squared error, summed over classes, with two priors."""

    counts: Tensor  # b u
    target: Tensor  # b c
    weights: Tensor  # b
    value_prior: float
    importance_prior: float

    def values(self, importance: Tensor) -> Tensor:
        """The best values (u c) for given importances."""
        mean = self.weights @ self.target
        share = shares(self.counts, importance)
        return least_squares(share, self.target, self.weights, mean, self.value_prior)

    def loss(self, value: Tensor, importance: Tensor) -> float:
        error = shares(self.counts, importance) @ value - self.target
        away = (value - self.weights @ self.target).square().sum()
        return float(
            (self.weights @ error.square()).sum()
            + self.value_prior * away
            + self.importance_prior * importance.square().sum()
        )

    def system(self, value: Tensor, importance: Tensor) -> tuple[Tensor, Tensor]:
        """The normal matrix (u u) of the importances without the values, and the gradient (u)."""
        share = shares(self.counts, importance)
        output = share @ value  # b c
        scale = self.weights.sqrt()[:, None]
        root, _ = torch.linalg.cholesky_ex(
            _lifted((scale * share).T @ (scale * share), self.value_prior)
        )
        normal = self.importance_prior * torch.eye(len(importance), dtype=share.dtype)
        gradient = self.importance_prior * importance
        for at, wanted, v in zip(output.T, self.target.T, value.T, strict=True):  # each class
            slope = scale * share * (v - at[:, None])  # b u: dF/ds
            crossed = torch.linalg.solve_triangular(
                root, (scale * share).T @ slope, upper=False
            )  # u u
            normal = normal + slope.T @ slope - crossed.T @ crossed
            gradient = gradient + slope.T @ (scale[:, 0] * (at - wanted))
        return normal, gradient


def gauss_newton(
    counts: Tensor,
    target: Tensor,
    weights: Tensor,
    *,
    value_prior: float,
    importance_prior: float,
    steps: int,
    start: Tensor | None = None,
) -> tuple[Tensor, Tensor, int]:
    """Values (u c), importances (u) and the number of steps, for targets (b c) with weights (b).

    Added to the error are value_prior |v - mean target|^2 and, times the variance of the targets,
    importance_prior |s|^2, which also fixes the gauge: scores on another scale have the same
    importances. `start` are importances (u), zeros if None.
    """
    variance = float((weights @ (target - weights @ target).square()).sum())
    problem = _Problem(counts, target, weights, value_prior, importance_prior * variance)
    importance = counts.new_zeros(counts.shape[1]) if start is None else start
    value = problem.values(importance)
    now, damping, step = problem.loss(value, importance), 1e-3, 0
    normal, gradient = problem.system(value, importance)
    while step < steps and damping < _HARDEST:
        step += 1
        root, failed = torch.linalg.cholesky_ex(normal + damping * normal.diagonal().abs().diag())
        if failed:
            damping *= 10
            continue
        move = torch.cholesky_solve(gradient[:, None], root)[:, 0].clamp(-_FARTHEST, _FARTHEST)
        trial = problem.values(importance - move)
        there = problem.loss(trial, importance - move)
        if not there < now:
            damping *= 10
            continue
        value, importance = trial, importance - move
        gained, now, damping = (now - there) / now, there, max(damping / 10, 1e-12)
        if gained < _EVEN:
            break
        normal, gradient = problem.system(value, importance)
    return value, importance, step


def resolution(
    counts: Tensor,
    target: Tensor,
    weights: Tensor,
    value: Tensor,
    importance: Tensor,
    *,
    value_prior: float,
    importance_prior: float,
) -> Tensor:
    """What part of each importance the scores give, and not its prior (u): 1 all, 0 nothing.

    One less the ratio of an importance's variance with the scores to that without them.
    """
    variance = float((weights @ (target - weights @ target).square()).sum())
    prior = importance_prior * variance
    if prior == 0:
        return torch.ones_like(importance)
    normal, _ = _Problem(counts, target, weights, value_prior, prior).system(value, importance)
    found: Tensor = 1 - prior * torch.linalg.inv(normal).diagonal()
    return found


def least_squares(
    share: Tensor, target: Tensor, weights: Tensor, prior: Tensor, ridge: float
) -> Tensor:
    """The values (u c) with the least squared error for given shares, drawn to a prior."""
    weighed = share.T * weights  # u b
    right = weighed @ (target - share @ prior.expand(share.shape[1], -1))
    found: Tensor = torch.linalg.solve(_lifted(weighed @ share, ridge), right)
    return prior + found


def _lifted(normal: Tensor, ridge: float) -> Tensor:
    """A normal matrix with a ridge, by as much at least as its rounding asks for."""
    least = max(ridge, 1e-15 * len(normal) * float(normal.diagonal().max()))
    return normal + least * torch.eye(len(normal), dtype=normal.dtype)
