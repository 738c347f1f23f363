"""Numbers that follow from the saved points of a walk, computed when they are asked for.

Ranking changes and explored volumes: the published version of SiMEC, its sections 3.1 and 4. The
effective rank: Roy and Vetterli, "The Effective Rank", EUSIPCO 2007.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from pellucid._arguments import real
from pellucid._errors import ArgumentError, explain_error

_STILL = 1e-12  # of the widest range: no range at all


def token_displacement(points: Tensor) -> Tensor:
    """How far every token is from its first point (s m d -> s m)."""
    moved = points.double()
    found: Tensor = (moved - moved[0]).norm(dim=2)
    return found


def prediction_changes(predicted: Sequence[str]) -> Tensor:
    """Whether a point is of another class than the one before (s-1, bool)."""
    changed = [one != other for one, other in itertools.pairwise(predicted)]
    return torch.tensor(changed, dtype=torch.bool)


def ranking_changes(probabilities: Tensor) -> Tensor:
    """Pairs of classes in the other order than at the point before (s c -> s-1)."""
    order = (probabilities[:, :, None] - probabilities[:, None, :]).sign()  # s c c
    inverted = (order[1:] * order[:-1] < 0).sum(dim=(1, 2))
    return inverted // 2  # both (a, b) and (b, a) were counted


def condition(series: Mapping[str, Tensor], steps: int) -> Tensor:
    """The largest eigenvalue over the smallest nonzero one, where both are known (k+1)."""
    if "largest" not in series:
        return torch.full((steps + 1,), torch.nan, dtype=torch.float64)
    known = series["rank"] > 0
    return torch.where(known, series["largest"] / series["smallest"], torch.nan)


def effective_rank(points: Tensor) -> float:
    """exp of the entropy of the singular values' shares, of the moves from the start (s m d)."""
    moves = points.double().flatten(1)
    sizes = torch.linalg.svdvals(moves - moves[0])
    if not sizes.sum() > 0:
        return 0.0
    shares = sizes / sizes.sum()
    return float(torch.special.entr(shares).sum().exp())


def log_volume(points: Tensor, share: float, others: Tensor | None = None) -> Tensor:
    """log of the product of the ranges along the principal axes (s m d -> m).

    Beside others (s' m d) the axes are those of both, without those that either did not move along.
    """
    if others is not None:
        return _log_volumes(points, others, share)[0]
    share = _checked(share)
    found = []
    for token in points.double().unbind(dim=1):
        ranges = _range(token @ _axes(token, share))
        found.append(_log_product(ranges, ranges > _STILL * ranges.max()))
    return torch.stack(found)


def log_volume_ratio(points: Tensor, others: Tensor, share: float) -> Tensor:
    """log of the ratio of the two volumes, along common axes (s m d, s' m d -> m).

    Axes along which either walk did not move at all are left out of both.
    """
    own, other = _log_volumes(points, others, share)
    ratio: Tensor = own - other
    return ratio


def _log_volumes(points: Tensor, others: Tensor, share: float) -> Tensor:
    """The logarithms of both volumes along common axes (2 m)."""
    share = _checked(share)
    if points.shape[1:] != others.shape[1:]:
        raise ArgumentError(
            explain_error(
                "only walks of the same tokens have a ratio of volumes",
                got=f"points of shape {tuple(points.shape)} and {tuple(others.shape)}",
                expected="walks from one input, in one space, with the same tokens=",
                instead="pellucid.explore(model, x, goal='leave', tokens=...)",
            )
        )
    found = []
    for one, other in zip(points.double().unbind(1), others.double().unbind(1), strict=True):
        axes = _axes(torch.cat([one, other]), share)
        ranges = torch.stack([_range(one @ axes), _range(other @ axes)])  # 2 n
        moved = (ranges > _STILL * ranges.max()).all(dim=0)
        found.append(torch.stack([_log_product(along, moved) for along in ranges]))
    return torch.stack(found, dim=1)


def _axes(points: Tensor, share: float) -> Tensor:
    """The fewest principal axes with this share of the points' variance (s d -> d n)."""
    _, sizes, vectors = torch.linalg.svd(points - points.mean(dim=0), full_matrices=False)
    explained = (sizes**2).cumsum(dim=0)
    count = int((explained < share * explained[-1]).sum()) + 1
    leading: Tensor = vectors[:count]
    return leading.T


def _range(along: Tensor) -> Tensor:
    """How far the points are apart along each axis (s n -> n)."""
    return along.amax(dim=0) - along.amin(dim=0)


def _log_product(ranges: Tensor, moved: Tensor) -> Tensor:
    """The sum of the logarithms where there was any movement; NaN where there was none."""
    if not moved.any():
        return ranges.new_tensor(torch.nan)
    return ranges[moved].log().sum()


def _checked(share: float) -> float:
    found = real("share", share, 0.9)
    if not 0 < found <= 1:
        raise ArgumentError(
            explain_error(
                "this is no share of a variance",
                got=f"share={share!r}",
                expected="a number above 0, at most 1",
                instead="share=0.9",
            )
        )
    return found
