"""SLALOM by turns: values, then importances. Leemann et al., TMLR 2024, algorithm 2.

For fixed importances the values are a least-squares problem (equation 74). For fixed values,
sum_j n_j e^(s_j) (v_j - f) = 0 is linear in e^s (equations 75 and 76), solved without negative
numbers and with a sum that is given (equations 77 to 79).
"""

from __future__ import annotations

import torch
from torch import Tensor

from pellucid.surrogates.counts import shares
from pellucid.surrogates.gauss_newton import least_squares
from pellucid.surrogates.nnls import nnls

_FLOOR = 1e-4  # of e^s, before its logarithm
_HALVINGS = 6
_RIDGE = 1e-10
_EVEN = 1e-12


def alternating(
    counts: Tensor, target: Tensor, weights: Tensor, *, rounds: int, reweight: bool = False
) -> tuple[Tensor, Tensor, int]:
    """Values (u c), importances (u) and the number of rounds; the error never grows.

    The importance step as published minimises another error, each row's times the sum of its
    weights, so that it is taken only as far as the true error falls. `reweight` divides that out.
    """
    importance = counts.new_zeros(counts.shape[1])
    value = (weights @ target).expand(counts.shape[1], -1)
    value = _values(counts, target, weights, importance, value)
    now, done = _error(counts, target, weights, value, importance), 0
    while done < rounds:
        done += 1
        towards = importance_step(counts, target, weights, value, importance, reweight=reweight)
        for halving in range(_HALVINGS):
            moved = importance + 0.5**halving * (towards - importance)
            trial = _values(counts, target, weights, moved, value)
            there = _error(counts, target, weights, trial, moved)
            if there < now:
                break
        else:
            break  # no part of the step lowers the error
        gained = now - there
        value, importance, now = trial, moved, there
        if gained <= _EVEN * (now + gained):
            break
    return value, importance, done


def importance_step(
    counts: Tensor,
    target: Tensor,
    weights: Tensor,
    value: Tensor,
    importance: Tensor,
    *,
    reweight: bool = False,
) -> Tensor:
    """The importances (u) of equation 77, with weights e^s that sum to the number of units.

    The residual scales with e^s, so a penalty of any strength on the sum gives the same direction;
    the sum is then set exactly.
    """
    scale = weights.sqrt()
    if reweight:
        scale = scale / (counts @ (importance - importance.max()).exp()).clamp(min=1e-300)
    system = (scale[:, None] * counts)[..., None] * (value - target[:, None])  # b u c: E
    system = system.transpose(1, 2).flatten(0, 1)
    penalty = max(float(torch.linalg.matrix_norm(system)), 1e-300)
    many = counts.shape[1]
    last = system.new_full((1, many), penalty)
    right = system.new_zeros(len(system) + 1)
    right[-1] = penalty * many
    found = nnls(torch.cat([system, last]), right)
    found = (found * many / found.sum()).clamp(min=_FLOOR).log()
    return found - found.mean()


def _values(
    counts: Tensor, target: Tensor, weights: Tensor, importance: Tensor, before: Tensor
) -> Tensor:
    """Equation 74, drawn ever so slightly to the values before."""
    share = shares(counts, importance)
    return before + least_squares(
        share, target - share @ before, weights, target.new_zeros(target.shape[1]), _RIDGE
    )


def _error(
    counts: Tensor, target: Tensor, weights: Tensor, value: Tensor, importance: Tensor
) -> float:
    return float((weights @ (shares(counts, importance) @ value - target).square()).sum())
