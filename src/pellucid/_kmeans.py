"""K-means by Lloyd's iterations, seeded, without empty clusters, in little memory."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

_CELLS = 2**21  # distances that are held at once


def kmeans(
    points: Tensor,
    clusters: int,
    generator: torch.Generator,
    *,
    iterations: int = 100,
    tolerance: float = 1e-4,
) -> Tensor:
    """The centroids (k n) of points (p n); as many as there are points, at most.

    Starts at points drawn without replacement, and stops when the squared moves of all centroids
    sum to no more than `tolerance`. A cluster without points begins anew at the point that is
    farthest from its own centroid; several take the farthest points in turn.
    """
    clusters = min(clusters, len(points))
    start = torch.randperm(len(points), generator=generator)[:clusters]
    centroids = points[start.to(points.device)]
    for _ in range(iterations):
        moved = lloyd_step(points, centroids)
        shift = (moved - centroids).square().sum()
        centroids = moved
        if shift <= tolerance:
            break
    return centroids


def lloyd_step(points: Tensor, centroids: Tensor) -> Tensor:
    """The mean of the points that are nearest to each centroid; the farthest points for none."""
    sums, counts = torch.zeros_like(centroids), points.new_zeros(len(centroids))
    distances = []
    for some in points.split(max(1, _CELLS // len(centroids))):
        distance, nearest = nearest_centroids(some, centroids)
        member = F.one_hot(nearest, len(centroids)).to(points)  # p k
        sums += member.T @ some
        counts += member.sum(dim=0)
        distances.append(distance)
    means = sums / counts.clamp(min=1)[:, None]
    empty = (counts == 0).nonzero()[:, 0]
    farthest = torch.cat(distances).argsort(descending=True, stable=True)[: len(empty)]
    means[empty] = points[farthest]
    return means


def nearest_centroids(points: Tensor, centroids: Tensor) -> tuple[Tensor, Tensor]:
    """The squared distance of every point to the nearest centroid, and which one it is."""
    lengths = centroids.square().sum(dim=1)
    gaps = torch.addmm(lengths, points, centroids.T, alpha=-2)  # p k: |x - c|^2 - |x|^2
    least, nearest = gaps.min(dim=1)
    return (least + points.square().sum(dim=1)).clamp(min=0), nearest
