"""How sure a number of a data set is: standard errors, and intervals of differences."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

Pool = Callable[[Mapping[str, int]], float | None]
Counts = Sequence[Mapping[str, int]]
Statistic = Callable[[Tensor], float | None]  # of samples, from how often each is drawn (n)


def standard_error(values: Sequence[float]) -> float | None:
    """Of the mean: the unbiased standard deviation over the root of n; none of a single value."""
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None


def summed(counts: Counts) -> dict[str, int]:
    """The counts of several samples together."""
    names = dict.fromkeys(name for one in counts for name in one)
    return {name: sum(one.get(name, 0) for one in counts) for name in names}


def jackknife_error(pool: Pool, counts: Counts) -> float | None:
    """Of a pooled number: ((n-1)/n sum_i (t_i - mean t)^2)^(1/2), t_i without sample i."""
    total = summed(counts)
    left_out = [
        pool({name: number - one.get(name, 0) for name, number in total.items()}) for one in counts
    ]
    known = [number for number in left_out if number is not None]
    if len(known) < 2 or len(known) < len(left_out):
        return None
    n, mean = len(known), statistics.fmean(known)
    return math.sqrt((n - 1) / n * math.fsum((t - mean) ** 2 for t in known))


def bootstrap_interval(
    statistic: Statistic, n: int, level: float, resamples: int, seed: int
) -> tuple[float, float]:
    """The percentile interval of a statistic of n samples, drawn anew with replacement.

    For the data as they are, each sample is drawn once.
    """
    generator = torch.Generator().manual_seed(seed)
    found = []
    for _ in range(resamples):
        drawn = torch.randint(n, (n,), generator=generator).bincount(minlength=n)
        value = statistic(drawn)
        if value is not None:  # where the draw has nothing that a pooled number is made of
            found.append(value)
    outside = (1 - level) / 2
    low, high = torch.tensor(found, dtype=torch.float64).quantile(
        torch.tensor([outside, 1 - outside], dtype=torch.float64)
    )
    return float(low), float(high)


def mean_of_drawn(values: Sequence[float]) -> Statistic:
    """The mean of the values as often as each is drawn."""
    column = torch.tensor(values, dtype=torch.float64)
    return lambda drawn: float(drawn.double() @ column / drawn.sum())


def pooled_of_drawn(pool: Pool, counts: Counts) -> Statistic:
    """The pooled number of the samples as often as each is drawn."""
    names = list(dict.fromkeys(name for one in counts for name in one))
    table = torch.tensor([[one.get(name, 0) for name in names] for one in counts])  # n k
    return lambda drawn: pool(dict(zip(names, (drawn @ table).tolist(), strict=True)))
