"""Weighted ridge regression with an intercept, and the choice of a few features for it.

Axes: m samples, n features.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

_FEW = 6  # features up to which LIME's code chooses one after the other


class Fit(NamedTuple):
    """A linear function, and how much of the samples' weighted variance it explains."""

    coefficients: Tensor  # n; zero for features that were not chosen
    intercept: Tensor
    r2: Tensor


def fit(x: Tensor, y: Tensor, weights: Tensor, ridge: float, features: int = 0) -> Fit:
    """min over w, b of sum_m weight (y - x w - b)^2 + ridge |w|^2, on so many features (0: all)."""
    share = weights / weights.sum()
    middle, mean = share @ x, share @ y
    centred, target = x - middle, y - mean  # which takes the intercept out of the problem
    gram, moment = centred.T @ (weights[:, None] * centred), centred.T @ (weights * target)
    used = _chosen(gram, moment, features)
    w = torch.zeros_like(moment)
    w[used] = _solve(gram[used][:, used], moment[used], ridge)
    error = weights @ (target - centred @ w) ** 2
    total = weights @ target**2
    r2 = 1 - error / total if total > 0 else torch.ones_like(total)  # nothing to explain
    return Fit(w, mean - middle @ w, r2)


def _chosen(gram: Tensor, moment: Tensor, features: int) -> Tensor:
    """The numbers of the features that are used: all, or those that LIME's code would choose."""
    count = len(moment)
    if not 0 < features < count:
        return torch.arange(count)
    if features <= _FEW:
        return _one_after_the_other(gram, moment, features)
    return _solve(gram, moment, 0.01).abs().argsort(descending=True, stable=True)[:features]


def _one_after_the_other(gram: Tensor, moment: Tensor, features: int) -> Tensor:
    """Each time the feature that, beside those chosen before, leaves the smallest error."""
    used: list[int] = []
    for _ in range(features):
        rest = [i for i in range(len(moment)) if i not in used]
        tried = torch.tensor([[*used, i] for i in rest])  # candidates, each with the chosen
        grams = gram[tried[:, :, None], tried[:, None, :]]
        moments = moment[tried]
        w = torch.linalg.pinv(grams, hermitian=True) @ moments[..., None]
        explained = (w[..., 0] * moments).sum(dim=1)  # of the weighted sum of squares
        used.append(rest[int(explained.argmax())])
    return torch.tensor(used)


def _solve(gram: Tensor, moment: Tensor, ridge: float) -> Tensor:
    """(G + ridge I) w = c; without a ridge, the shortest of several solutions."""
    penalised = gram + ridge * torch.eye(len(gram)).to(gram)
    found: Tensor = torch.linalg.lstsq(penalised, moment[:, None], driver="gelsd").solution
    return found[:, 0]
