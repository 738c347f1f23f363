"""What `evaluate` returns: the scores of methods by metrics, with what is needed to trust them."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from pellucid._arguments import integer
from pellucid._configured import Configured
from pellucid._errors import ArgumentError, explain_error, unknown_name
from pellucid._spec import Better, Method, Metric
from pellucid._uncertainty import (
    Statistic,
    bootstrap_interval,
    jackknife_error,
    mean_of_drawn,
    pooled_of_drawn,
    standard_error,
    summed,
)

if TYPE_CHECKING:
    from pellucid._measure import Measurement
    from pellucid._results import Explanation


@dataclass(frozen=True)
class Cost:
    """What one explanation has cost by itself."""

    forwards: int = 0
    backwards: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Scored:
    """One sample, explained by one method: its measurements, in the order of the metrics."""

    sample: str
    measurements: tuple[Measurement, ...]
    cost: Cost
    explanation: Explanation | None = None  # None where there is none, or where it is not kept

    def numbers_only(self) -> Scored:
        """The same without what would fill the memory with a data set."""
        short = tuple(replace(one, curve=()) for one in self.measurements)
        return replace(self, measurements=short, explanation=None)


@dataclass(frozen=True)
class Row:
    """One method by one metric, over all samples that have a number."""

    method: str
    metric: str
    better: Better
    mean: float | None  # of a pooled metric: the number that the summed counts make
    se: float | None  # of the mean, or of the pooled number by the jackknife; None for one sample
    std: float | None  # over samples, divided by n, as papers print it
    median: float | None
    n: int
    skipped: Mapping[str, int]  # samples, by the reason why they have no number
    ties: float  # the mean fraction of scores that equal another one
    pooled: bool
    counts: Mapping[str, int]  # summed over samples
    evaluations: int  # of the model, for these numbers; versions known from other rows are not
    seconds: float  # of measuring
    params: Mapping[str, Any] = field(default_factory=dict)  # of the metric


@dataclass(frozen=True)
class Comparison:
    """How two methods differ on the samples for which both have a number."""

    method: str
    against: str
    metric: str
    better: Better
    difference: float  # of the first less the second
    low: float  # the percentile interval of a bootstrap over samples
    high: float
    level: float
    n: int  # samples, in pairs
    resamples: int

    def __str__(self) -> str:
        return (
            f"{self.metric} ({self.better} is better): {self.method} less {self.against} is "
            f"{self.difference:+.4g}, {self.level:.0%} interval [{self.low:+.4g}, {self.high:+.4g}]"
            f" ({self.n} samples in pairs, {self.resamples} resamples)"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """The scores of several methods by several metrics on the same samples.

    `scored` has, by the label of a method, what every sample got, in the order of the data.
    """

    model: str
    weights: str  # SHA-256 of all weights
    target: str
    seed: int
    versions: Mapping[str, str]
    methods: tuple[Configured[Method], ...]
    metrics: tuple[Configured[Metric], ...]
    scored: Mapping[str, Sequence[Scored]]

    def __repr__(self) -> str:
        return (
            f"<{len(self.methods)} methods by {len(self.metrics)} metrics on "
            f"{len(self.samples)} samples of {self.model}>"
        )

    @property
    def samples(self) -> tuple[str, ...]:
        """The names of the samples, in the order of the data."""
        return tuple(one.sample for one in next(iter(self.scored.values())))

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """One row a method and metric."""
        return tuple(self._row(one, by) for one in self.methods for by in self.metrics)

    @property
    def evaluations(self) -> int:
        """Passes forward through the model in all: of the methods, and of the metrics."""
        return sum(row.evaluations for row in self.rows) + sum(
            one.cost.forwards for found in self.scored.values() for one in found
        )

    def row(self, method: str, metric: str) -> Row:
        """The row of a method and a metric, by their labels."""
        self._place_of(method, metric)
        return next(row for row in self.rows if (row.method, row.metric) == (method, metric))

    def measurements(self, method: str, metric: str) -> list[Measurement]:
        """What every sample got, in the order of the data."""
        place = self._place_of(method, metric)
        return [one.measurements[place] for one in self.scored[method]]

    def compare(
        self,
        method: str,
        against: str,
        *,
        metric: str,
        level: float = 0.95,
        resamples: int = 10_000,
        seed: int = 0,
    ) -> Comparison:
        """The difference of two methods, with its interval by a paired bootstrap over samples.

        Only samples for which both have a number count, so both are drawn together.
        """
        integer("resamples", resamples, 100, 10_000)
        place = self._place_of(method, metric)
        pairs = [
            (one, other)
            for one, other in zip(
                self.measurements(method, metric), self.measurements(against, metric), strict=True
            )
            if one.value is not None and other.value is not None
        ]
        if len(pairs) < 2 or not 0 < level < 1:
            raise ArgumentError(
                explain_error(
                    "these cannot be compared",
                    got=f"{len(pairs)} samples with a number by both, level={level}",
                    expected="at least 2 samples, and a level between 0 and 1",
                    instead="more samples, or level=0.95",
                )
            )
        spec = self.metrics[place].spec
        ours, theirs = zip(*pairs, strict=True)
        first, second = _statistic(spec, ours), _statistic(spec, theirs)

        def difference(drawn: Tensor) -> float | None:
            one, other = first(drawn), second(drawn)
            return None if one is None or other is None else one - other

        n = len(pairs)
        as_it_is = difference(torch.ones(n, dtype=torch.long))
        assert as_it_is is not None, "a pooled metric has a number where its samples have"
        low, high = bootstrap_interval(difference, n, level, resamples, seed)
        return Comparison(
            method, against, metric, spec.better, as_it_is, low, high, level, n, resamples
        )

    # ---- showing -----------------------------------------------------------------------------

    def show(self) -> None:
        """Print it on a terminal, or display it in a notebook, with what the scores mean."""
        from pellucid.viz.scores import show_table

        show_table(self)

    def to_markdown(self) -> str:
        """The table in Markdown, with what the scores mean under it."""
        from pellucid.viz.scores import markdown

        return markdown(self)

    def to_html(self, path: str | Path | None = None, *, overwrite: bool = False) -> str:
        """One self-contained page that opens without a network; written if a path is given."""
        from pellucid.viz import write_page
        from pellucid.viz.scores import page

        html = page(self)
        if path is not None:
            write_page(html, path, overwrite=overwrite)
        return html

    def _repr_html_(self) -> str:
        from pellucid.viz.scores import fragment

        return fragment(self)

    def to_pandas(self) -> Any:
        """The rows as a data frame, one a method and metric."""
        try:
            from pandas import DataFrame  # type: ignore[import-not-found,import-untyped,unused-ignore]
        except ImportError:
            raise ArgumentError(
                explain_error(
                    "to_pandas() needs pandas",
                    got="no installed pandas",
                    expected="the extra that makes data frames",
                    instead="pip install 'pellucid[pandas]', or table.rows without it",
                )
            ) from None
        return DataFrame([asdict(row) for row in self.rows])

    # ---- inside ------------------------------------------------------------------------------

    def _place_of(self, method: str, metric: str) -> int:
        """The place of a metric among the measurements, the names being known."""
        names = [one.label for one in self.metrics]
        if method not in self.scored:
            raise ArgumentError(unknown_name("method of this table", method, self.scored))
        if metric not in names:
            what = "metric of this table"
            raise ArgumentError(unknown_name(what, metric, names, write="metric={!r}"))
        return names.index(metric)

    def _row(self, method: Configured[Method], metric: Configured[Metric]) -> Row:
        found = self.measurements(method.label, metric.label)
        numbered = [one for one in found if one.value is not None]
        values = [cast(float, one.value) for one in numbered]
        counts = [one.counts for one in numbered]
        pool = metric.spec.pool
        return Row(
            method=method.label,
            metric=metric.label,
            better=metric.spec.better,
            mean=_number(metric.spec, numbered),
            se=standard_error(values) if pool is None else jackknife_error(pool, counts),
            std=statistics.pstdev(values) if values else None,
            median=statistics.median(values) if values else None,
            n=len(values),
            skipped=Counter(one.skipped for one in found if one.value is None),
            ties=statistics.fmean([one.ties for one in numbered]) if numbered else 0.0,
            pooled=pool is not None,
            counts=summed(counts),
            evaluations=sum(one.evaluations for one in found),
            seconds=sum(one.seconds for one in found),
            params=metric.params,
        )


def _number(spec: Metric, measured: Sequence[Measurement]) -> float | None:
    """The number of several samples: their mean, or what their counts make together."""
    if not measured:
        return None
    return _statistic(spec, measured)(torch.ones(len(measured), dtype=torch.long))


def _statistic(spec: Metric, measured: Sequence[Measurement]) -> Statistic:
    """The same for samples as often as each is drawn."""
    if spec.pool is not None:
        return pooled_of_drawn(spec.pool, [one.counts for one in measured])
    return mean_of_drawn([cast(float, one.value) for one in measured])
