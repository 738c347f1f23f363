"""Agglomerative clustering with complete linkage, up to a distance."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def complete_linkage(distances: Tensor, threshold: float) -> list[Tensor]:
    """The members of every cluster, each cluster by its first member (n n -> lists of indices).

    Two clusters are as far apart as their farthest members; the nearest two are joined, the first
    of several equally near, until none are nearer than the threshold.
    """
    apart = distances.double().cpu().numpy().copy()
    np.fill_diagonal(apart, np.inf)
    members = [[i] for i in range(len(apart))]
    nearest = apart.argmin(axis=1) if members else np.zeros(0, int)  # of each cluster
    least = np.take_along_axis(apart, nearest[:, None], axis=1)[:, 0]
    while members and least.min() < threshold:
        a = int(least.argmin())
        a, b = sorted((a, int(nearest[a])))
        members[a] += members[b]
        members[b] = []
        apart[a] = apart[:, a] = np.maximum(apart[a], apart[b])
        apart[b] = apart[:, b] = np.inf
        apart[a, a] = np.inf
        moved = (nearest == a) | (nearest == b)  # the others are as near as before
        moved[[a, b]] = True
        nearest[moved] = apart[moved].argmin(axis=1)
        least[moved] = apart[moved].min(axis=1)
    return [torch.tensor(sorted(found)) for found in members if found]
