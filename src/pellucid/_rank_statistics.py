"""Numbers that depend on an order alone: Kendall's tau, overlaps of tops, AU-ROC."""

from __future__ import annotations

import torch
from torch import Tensor

from pellucid._statistics import average_ranks

_AT_ONCE = 1024  # rows of a table of pairs


def kendall(one: Tensor, other: Tensor) -> float | None:
    """Tau-b: pairs in the same order less pairs in the opposite one; None where one is constant.

    Kendall 1945: divided by the root of the pairs that are not tied in one times in the other.
    """
    a, b = average_ranks(one), average_ranks(other)
    agreeing = untied_a = untied_b = 0.0
    for x, y in zip(a.split(_AT_ONCE), b.split(_AT_ONCE), strict=True):
        sign_a, sign_b = (x[:, None] - a).sign(), (y[:, None] - b).sign()
        agreeing += float((sign_a * sign_b).sum())
        untied_a += float(sign_a.abs().sum())
        untied_b += float(sign_b.abs().sum())
    pairs = (untied_a * untied_b) ** 0.5
    return agreeing / pairs if pairs > 0 else None


def top_overlap(one: Tensor, other: Tensor, count: int) -> float:
    """The part of the `count` largest that both have in common; of equal numbers the first."""
    tops = [(-values.flatten()).argsort(stable=True)[:count].tolist() for values in (one, other)]
    return len(set(tops[0]) & set(tops[1])) / len(tops[0])


def rank_biased_overlap(one: Tensor, other: Tensor, persistence: float) -> float:
    """RBO of two orders of the same things. Webber, Moffat and Zobel, TOIS 2010, equation 32.

    The overlap A_d of the first d, averaged over d with weights that fall as persistence^d.
    """
    places = [(-values.flatten()).argsort(stable=True).argsort() for values in (one, other)]
    deepest = torch.maximum(*places)  # the depth from which on both have a thing
    n = len(deepest)
    depth = torch.arange(1, n + 1, dtype=torch.float64)
    overlap = torch.bincount(deepest, minlength=n).cumsum(dim=0) / depth  # A_d
    weighted = float((overlap * persistence**depth).sum())
    return (1 - persistence) / persistence * weighted + float(overlap[-1]) * persistence**n


def auroc(scores: Tensor, positive: Tensor) -> float | None:
    """P(a positive scores higher than a negative) + P(both the same) / 2; None without both."""
    many = int(positive.sum())
    others = len(positive) - many
    if not many or not others:
        return None
    above = float(average_ranks(scores)[positive].sum()) - many * (many + 1) / 2
    return above / (many * others)
