"""The tests and intervals that tables of walks are read with.

Student's t comes from the regularised incomplete beta function (DLMF 8.17), so that no library of
statistics is needed for one function of two numbers. A spread is that of the numbers at hand
(ddof 0) where it is shown, and unbiased (ddof 1) inside a test.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

_TINY = 1e-300
_EPSILON = 1e-16
_TERMS = 10_000
_AT_ONCE = 2**22  # numbers drawn together by the bootstrap


@dataclass(frozen=True)
class Summary:
    """The mean of some numbers, their spread (ddof 0), the error of the mean (std / sqrt n)."""

    mean: float
    std: float
    se: float
    n: int


@dataclass(frozen=True)
class Tested:
    """A two-sided test. Where it cannot be made, `p` is None and `skipped` says why."""

    statistic: float | None
    degrees: float | None
    p: float | None
    skipped: str = ""


def summary(values: Sequence[float]) -> Summary | None:
    """None of no numbers."""
    n = len(values)
    if n == 0:
        return None
    mean = math.fsum(values) / n
    std = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / n)
    return Summary(mean, std, std / math.sqrt(n), n)


def incomplete_beta(x: float, a: float, b: float) -> float:
    """I_x(a, b): the continued fraction of DLMF 8.17.22, by Lentz's method.

    It converges fast below the mean of the distribution; above it I_x(a, b) = 1 - I_{1-x}(b, a)
    (DLMF 8.17.4).
    """
    return _beta(x, 1 - x, a, b)


def _beta(x: float, rest: float, a: float, b: float) -> float:
    """I_x(a, b), where the rest 1 - x is known to all its digits."""
    if x <= 0 or rest <= 0:
        return float(rest <= 0)
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta(rest, x, b, a)
    logarithm = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(logarithm + a * math.log(x) + b * math.log(rest)) / a
    fraction, upper, lower = 1.0, 1.0, 0.0
    for n in range(1, _TERMS):
        m = n // 2
        if n % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        lower = 1 / _not_zero(1 + term * lower)
        upper = _not_zero(1 + term / upper)
        fraction *= upper * lower
        if abs(upper * lower - 1) < _EPSILON:
            break
    return front / fraction


def student_p(t: float, degrees: float) -> float:
    """P(|T| > |t|) of Student's distribution (DLMF 8.17, with x = v / (v + t^2))."""
    whole = degrees + t * t
    return _beta(degrees / whole, t * t / whole, degrees / 2, 0.5)


def t_test(values: Sequence[float], mean: float = 0.0) -> Tested:
    """Student's test of one sample: is the mean of the numbers this one?"""
    n = len(values)
    if n < 2:
        return Tested(None, None, None, "fewer than two numbers")
    centre, variance = _moments(values)
    if variance == 0:
        return Tested(None, n - 1.0, None, "all numbers are equal")
    t = (centre - mean) / math.sqrt(variance / n)
    return Tested(t, n - 1.0, student_p(t, n - 1.0))


def welch(values: Sequence[float], others: Sequence[float]) -> Tested:
    """Welch's test of two samples with variances of their own: have they one mean?"""
    if min(len(values), len(others)) < 2:
        return Tested(None, None, None, "fewer than two numbers")
    (mean, variance), (other, spread) = _moments(values), _moments(others)
    one, two = variance / len(values), spread / len(others)
    if one + two == 0:
        return Tested(None, None, None, "all numbers are equal")
    t = (mean - other) / math.sqrt(one + two)
    ratio = one / (one + two)  # of the squared errors, which may be too small to be squared
    parts = ratio**2 / (len(values) - 1) + (1 - ratio) ** 2 / (len(others) - 1)
    return Tested(t, 1 / parts, student_p(t, 1 / parts))


def pearson(x: Tensor, y: Tensor) -> Tested:
    """The correlation of two series, and Student's test of it against none."""
    n = len(x)
    if n < 2:
        return Tested(None, None, None, "fewer than two numbers")
    if bool((x == x[0]).all()) or bool((y == y[0]).all()):
        return Tested(None, None, None, "a constant series")
    u, v = _unit(x), _unit(y)
    r = max(-1.0, min(1.0, float(u @ v)))
    if n == 2:
        return Tested(r, 0.0, None, "two points always lie on a line")
    rest = 1 - r * r
    p = 0.0 if rest == 0 else student_p(r * math.sqrt((n - 2) / rest), n - 2.0)
    return Tested(r, n - 2.0, p)


def average_ranks(values: Tensor) -> Tensor:
    """Ranks from 1, the mean rank where values are equal."""
    _, group, size = values.flatten().unique(return_inverse=True, return_counts=True)
    middle: Tensor = size.cumsum(dim=0).double() - (size.double() - 1) / 2
    return middle[group]


def spearman(x: Tensor, y: Tensor) -> float | None:
    """The correlation of the ranks; None where all ranks of either are equal."""
    return pearson(average_ranks(x), average_ranks(y)).statistic


def bootstrap_interval(
    sums: Tensor,
    counts: Tensor,
    *,
    resamples: int = 1000,
    level: float = 0.95,
    generator: torch.Generator,
) -> tuple[float, float]:
    """The percentile interval of a mean, for groups of which each is drawn as a whole.

    Single numbers are groups of one; a draw of groups without any member does not count.
    """
    n = len(sums)
    means = []
    for part in torch.arange(resamples).split(max(1, _AT_ONCE // n)):
        drawn = torch.randint(n, (len(part), n), generator=generator)
        total, members = sums[drawn].sum(dim=1), counts[drawn].sum(dim=1)
        means.append((total / members)[members > 0])
    tail = (1 - level) / 2
    ends = torch.quantile(torch.cat(means).double(), torch.tensor([tail, 1 - tail]).double())
    return float(ends[0]), float(ends[1])


def _moments(values: Sequence[float]) -> tuple[float, float]:
    """The mean and the unbiased variance."""
    if all(value == values[0] for value in values):
        return float(values[0]), 0.0
    mean = math.fsum(values) / len(values)
    return mean, math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1)


def _unit(values: Tensor) -> Tensor:
    """The deviations from the mean, divided by their length."""
    moved = values.double() - values.double().mean()
    moved = moved / moved.abs().max()  # squares of very small numbers are zero
    unit: Tensor = moved / moved.norm()
    return unit


def _not_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
