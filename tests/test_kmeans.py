"""K-means and complete linkage against literal versions, one point at a time."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch

from pellucid._kmeans import kmeans, lloyd_step, nearest_centroids
from pellucid._linkage import complete_linkage


def blobs(count=60, centres=5, width=7, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    middles = 5 * torch.randn(centres, width, generator=generator, dtype=dtype)
    noise = torch.randn(count, width, generator=generator, dtype=dtype)
    return middles[torch.arange(count) % centres] + noise


def drawn(points, clusters, seed):
    """The points that the iterations begin at."""
    order = torch.randperm(len(points), generator=torch.Generator().manual_seed(seed))
    return points[order[:clusters]].clone()


def slow_step(points, centroids):
    """One of Lloyd's iterations with loops; clusters without points take the farthest in turn."""
    owner, gaps = [], []
    for point in points:
        squares = [float((point - centroid).square().sum()) for centroid in centroids]
        owner.append(squares.index(min(squares)))
        gaps.append(min(squares))
    farthest = sorted(range(len(points)), key=lambda i: -gaps[i])
    found = centroids.clone()
    for k in range(len(centroids)):
        members = [points[i] for i, one in enumerate(owner) if one == k]
        if members:
            found[k] = sum(members) / len(members)
        else:
            found[k] = points[farthest.pop(0)]
    return found


@pytest.mark.parametrize("clusters", [1, 5, 20, 60])
def test_kmeans_is_lloyds_iteration(clusters):
    points = blobs()
    expected = drawn(points, clusters, seed=3)
    for _ in range(100):
        before, expected = expected, slow_step(points, expected)
        if (expected - before).square().sum() <= 1e-4:
            break
    found = kmeans(points, clusters, torch.Generator().manual_seed(3))
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


def test_empty_clusters_begin_anew_at_the_farthest_points():
    points = blobs()
    far = torch.full((3, 7), 100.0, dtype=torch.float64) * torch.arange(1, 4)[:, None]
    centroids = torch.cat([points[:4], far])  # the last three are nearest to nothing
    found = lloyd_step(points, centroids)
    torch.testing.assert_close(found, slow_step(points, centroids), rtol=1e-12, atol=1e-12)
    assert all((points == one).all(dim=1).any() for one in found[4:])
    assert len(found.unique(dim=0)) == 7


def test_no_cluster_is_empty_where_there_are_enough_points():
    points = blobs(count=80)
    for seed in range(10):
        found = kmeans(points, 40, torch.Generator().manual_seed(seed), tolerance=0.0)
        assert len(nearest_centroids(points, found)[1].unique()) == 40


def test_the_distance_to_the_centroids_never_grows():
    points, centroids = blobs(count=200), drawn(blobs(count=200), 30, seed=1)
    centroids[7:12] += 1000.0  # some of them empty at first
    inertia = []
    for _ in range(15):
        inertia.append(float(nearest_centroids(points, centroids)[0].sum()))
        centroids = lloyd_step(points, centroids)
    assert all(later <= sooner + 1e-9 for sooner, later in pairwise(inertia))
    assert inertia[-1] < inertia[0]


def test_kmeans_follows_its_seed_alone():
    points = blobs(count=300)
    state = torch.get_rng_state()
    first, again, other = (
        kmeans(points, 20, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(torch.get_rng_state(), state)


def test_points_in_chunks_are_points_at_once(monkeypatch):
    points, centroids = blobs(count=100), drawn(blobs(count=100), 10, seed=0)
    whole = lloyd_step(points, centroids)
    monkeypatch.setattr("pellucid._kmeans._CELLS", 70)
    torch.testing.assert_close(lloyd_step(points, centroids), whole, rtol=1e-13, atol=1e-13)


def test_more_clusters_than_points_and_equal_points():
    points = blobs(count=6)
    found = kmeans(points, 50, torch.Generator().manual_seed(0))
    assert sorted(found.tolist()) == sorted(points.tolist())
    same = torch.ones(8, 3)
    assert torch.equal(kmeans(same, 4, torch.Generator().manual_seed(0)), torch.ones(4, 3))


# ---- complete linkage ----------------------------------------------------------------------------


def slow_linkage(distances, threshold):
    """Merge the two clusters whose farthest members are nearest, all pairs tried each time."""
    clusters = [[i] for i in range(len(distances))]
    while len(clusters) > 1:
        found = min(
            (max(float(distances[i, j]) for i in a for j in b), x, y)
            for x, a in enumerate(clusters)
            for y, b in enumerate(clusters)
            if x < y
        )
        if found[0] >= threshold:
            break
        clusters[found[1]] += clusters.pop(found[2])
    return sorted(sorted(cluster) for cluster in clusters)


def cosine_distances(count, seed):
    maps = torch.rand(count, 9, generator=torch.Generator().manual_seed(seed)).double() ** 3
    maps = maps / maps.norm(dim=1, keepdim=True)
    return 1 - maps @ maps.T


@pytest.mark.parametrize("threshold", [0.0, 0.1, 0.3, 0.6, 2.0])
def test_complete_linkage_is_the_slow_version(threshold):
    for seed in range(4):
        distances = cosine_distances(25, seed)
        found = complete_linkage(distances, threshold)
        assert [one.tolist() for one in found] == slow_linkage(distances, threshold)


def test_the_farthest_members_of_a_cluster_are_nearer_than_the_threshold():
    distances = cosine_distances(80, seed=9)
    for members in complete_linkage(distances, 0.2):
        inside = distances[members][:, members].fill_diagonal_(0.0)
        assert inside.max() < 0.2


def test_complete_linkage_agrees_with_scipy():
    hierarchy = pytest.importorskip("scipy.cluster.hierarchy", reason="scipy is an optional peer")
    for seed in range(5):
        distances = cosine_distances(120, seed)
        condensed = distances[tuple(torch.triu_indices(120, 120, 1))].numpy()
        labels = hierarchy.fcluster(hierarchy.linkage(condensed, "complete"), 0.3, "distance")
        expected = {tuple((labels == k).nonzero()[0].tolist()) for k in set(labels)}
        assert {tuple(one.tolist()) for one in complete_linkage(distances, 0.3)} == expected


def test_nothing_to_merge():
    assert complete_linkage(torch.zeros(0, 0), 0.5) == []
    assert [one.tolist() for one in complete_linkage(torch.zeros(1, 1), 0.5)] == [[0]]
