"""How sure a number is: intervals from samples drawn again, of a number and of a difference.

The percentile bootstrap over samples. Two methods are compared on the same draws, so that what
makes a sample hard for both cancels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pellucid.bench.units import Array

LEVEL = 0.95
DRAWS = 2000
_AT_ONCE = 2_000_000  # numbers of a block of draws

Pool = Callable[[Mapping[str, int]], float | None]
Interval = tuple[float, float]


@dataclass
class Column:
    """What one method has by one measure: a value a sample, or the counts of a pooled measure."""

    values: dict[str, float] = field(default_factory=dict)  # by sample
    counts: dict[str, Mapping[str, int]] = field(default_factory=dict)
    pool: Pool | None = None

    @property
    def samples(self) -> list[str]:
        """The samples that count."""
        return list(self.counts if self.pool else self.values)

    def number(self) -> float | None:
        """The mean, or the pooled number."""
        samples = self.samples
        if not samples:
            return None
        found = self.drawn(samples, np.ones((1, len(samples))))[0]
        return None if np.isnan(found) else float(found)

    def drawn(self, samples: Sequence[str], times: Array) -> Array:
        """The number of each draw (d), given how often it has each sample (d n)."""
        if self.pool is None:
            values = np.array([self.values[sample] for sample in samples])
            mean: Array = times @ values / times.sum(axis=1)
            return mean
        names = list(dict.fromkeys(name for s in samples for name in self.counts[s]))
        table = np.array([[self.counts[s].get(name, 0) for name in names] for s in samples])
        sums = (times @ table).round().astype(int).tolist()
        pooled = [self.pool(dict(zip(names, row, strict=True))) for row in sums]
        return np.array([np.nan if one is None else one for one in pooled], dtype=float)


def interval(column: Column, seed: int = 0) -> Interval | None:
    """The interval of a number; none for a single sample."""
    samples = column.samples
    if len(samples) < 2:
        return None
    return _middle([column.drawn(samples, times) for times in _draws(len(samples), seed)])


@dataclass(frozen=True)
class Difference:
    """The first number less the second, on the samples that both have."""

    value: float
    low: float
    high: float
    samples: int

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves zero out."""
        return self.low > 0 or self.high < 0


def difference(first: Column, second: Column, seed: int = 0) -> Difference | None:
    """How far apart two methods are; None with fewer than two samples in common."""
    common = [sample for sample in first.samples if sample in set(second.samples)]
    if len(common) < 2:
        return None

    def gap(times: Array) -> Array:
        found: Array = first.drawn(common, times) - second.drawn(common, times)
        return found

    value = float(gap(np.ones((1, len(common))))[0])
    middle = _middle([gap(times) for times in _draws(len(common), seed)])
    return None if middle is None else Difference(value, *middle, len(common))


def _draws(n: int, seed: int) -> Iterator[Array]:
    """How often each of n samples is drawn, for all draws, some at a time (d n)."""
    generator = np.random.default_rng(seed)
    left = DRAWS
    while left:
        some = min(left, max(1, _AT_ONCE // n))
        yield generator.multinomial(n, np.full(n, 1 / n), size=some).astype(float)
        left -= some


def _middle(found: Sequence[Array]) -> Interval | None:
    """Where the middle of the draws lies; a draw without a number does not count."""
    numbers = np.concatenate(found)
    numbers = numbers[~np.isnan(numbers)]
    if not numbers.size:
        return None
    low, high = np.quantile(numbers, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
