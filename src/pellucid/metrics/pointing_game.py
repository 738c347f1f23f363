"""The pointing game. Zhang et al., IJCV 2018; objects of half the image as in TIS.

Does the highest score lie on the object? The mean over a data set is hits / (hits + misses).

It misleads where one pixel is made to speak for a map, and where the model rightly looks beside the
object; on large objects chance alone hits often.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from pellucid._arguments import integer
from pellucid._case import Case
from pellucid._results import Explanation
from pellucid._spec import metric
from pellucid._types import IGNORED, INSIDE, Measured
from pellucid.metrics._ranking import tie_fraction


@metric(
    cite=("zhang2018top", "englebert2023tis"),
    better="higher",
    family="localisation",
    kinds=("image",),
    truth="mask",
)
def pointing_game(
    case: Case,
    explanations: Sequence[Explanation],
    truths: Sequence[Tensor],
    *,
    tolerance: int = 0,
    max_coverage: float = 0.5,
    ties: Literal["first", "any"] = "first",
) -> Measured:
    """1 where the highest score lies on the object, 0 where it does not.

    A point at most `tolerance` pixels from the object is a hit (the paper: 15). An object that
    covers `max_coverage` of the image or more is skipped. A pixel that is not labelled is never
    the highest. Of several highest scores the "first" in reading order is taken, or "any" may hit.
    """
    integer("tolerance", tolerance, 0, 15)
    maps = [explanation.map() for explanation in explanations]
    objects = [truth == INSIDE for truth in truths]
    labelled = [
        scores.masked_fill(truth == IGNORED, -torch.inf)
        for scores, truth in zip(maps, truths, strict=True)
    ]
    skipped = [_reason(inside, max_coverage) for inside in objects]
    hits = [
        None if reason else float(_hit(scores, inside, tolerance, ties))
        for scores, inside, reason in zip(labelled, objects, skipped, strict=True)
    ]
    return Measured(values=hits, skipped=skipped, ties=[tie_fraction(one) for one in maps])


def _reason(inside: Tensor, max_coverage: float) -> str:
    """Why there is nothing to point at, or too much."""
    if not inside.any():
        return "no object in the mask"
    covered = float(inside.double().mean()) >= max_coverage
    return f"the object covers {max_coverage:.0%} of the image or more" if covered else ""


def _hit(scores: Tensor, inside: Tensor, tolerance: int, ties: Literal["first", "any"]) -> bool:
    """Whether a highest score is near enough to a pixel of the object."""
    highest = scores == scores.max()
    if ties == "any" and bool((highest & inside).any()):
        return True
    points = highest.nonzero()  # p 2, in reading order
    points = points[:1] if ties == "first" else points
    pixels = inside.nonzero()  # q 2
    nearest = (int(((pixels - point) ** 2).sum(dim=1).min()) for point in points)
    return any(distance <= tolerance**2 for distance in nearest)
