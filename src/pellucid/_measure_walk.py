"""`measure_walk`: what a walk did, by one metric."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pellucid._decoded import Decoded, Prompt
from pellucid._errors import ArgumentError, NumericalError, explain_error, unknown_name
from pellucid._spec import Better, WalkMetric, bound_parameters
from pellucid._trajectory import Trajectory
from pellucid.metrics.walks import WALK_METRICS
from pellucid.metrics.walks._evidence import Evidence, Skip, WalkMeasured


@dataclass(frozen=True)
class WalkMeasurement:
    """One number about one walk, with what is needed to read it."""

    metric: str
    value: float | None  # None: skipped, and `skipped` says why
    better: Better | None  # for a walk with this goal; None where neither direction is better
    params: Mapping[str, Any]
    goal: str
    curve: tuple[float, ...] = ()  # one number for each of `iterations`; NaN where there is none
    iterations: tuple[int, ...] = ()
    more: Mapping[str, float] = field(default_factory=dict)  # numbers beside it
    skipped: str = ""


def measure_walk(
    walks: Trajectory | Sequence[Trajectory],
    *,
    metric: str | WalkMetric,
    decoded: Decoded | Sequence[Decoded] | None = None,
    prompts: Sequence[Prompt] | Sequence[Sequence[Prompt]] | None = None,
    other: Trajectory | Sequence[Trajectory] | None = None,
    **params: Any,
) -> Any:
    """Measure one walk, or each of a list of them; no model runs.

    Main arguments: `walks` are what `explore` returned (or were loaded from files); `metric` is the
    name of one that `list_metrics()` gives for walks. Further keywords are the metric's own.

    Other arguments: `decoded` is what `walk.decode(...)` returned, `prompts` what
    `walk.alternatives(...)` returned, and `other` the walk to compare with, for metrics that need
    them; for a list of walks, one for each.
    """
    spec = _as_walk_metric(metric)
    params = bound_parameters(spec, params)
    if isinstance(walks, Trajectory):
        return _measured(spec, Evidence(walks, decoded, prompts, other), params)  # type: ignore[arg-type]  # one walk, one of each
    _check_list(walks)
    beside = {"decoded": decoded, "prompts": prompts, "other": other}
    each = zip(*(_one_each(name, given, len(walks)) for name, given in beside.items()), strict=True)
    return [
        _measured(spec, Evidence(walk, *given), params)
        for walk, given in zip(walks, each, strict=True)
    ]


def _measured(spec: WalkMetric, evidence: Evidence, params: Mapping[str, Any]) -> WalkMeasurement:
    goal = evidence.walk.goal
    better = spec.stay if goal == "stay" else spec.leave
    try:
        found: WalkMeasured = spec(evidence, **params)
    except Skip as reason:
        return WalkMeasurement(spec.name, None, better, dict(params), goal, skipped=str(reason))
    if not math.isfinite(found.value):
        raise NumericalError(
            explain_error(
                f"metric {spec.name!r} gave a number that is not finite",
                got=found.value,
                expected="a finite number",
                instead="a walk of a model in float64: pellucid.load(..., dtype='float64')",
            )
        )
    return WalkMeasurement(
        metric=spec.name,
        value=float(found.value),
        better=better,
        params=dict(params),
        goal=goal,
        curve=() if found.curve is None else tuple(found.curve.tolist()),
        iterations=() if found.iterations is None else tuple(found.iterations.tolist()),
        more=found.more,
    )


def _as_walk_metric(metric: str | WalkMetric) -> WalkMetric:
    if isinstance(metric, WalkMetric):
        return metric
    if not isinstance(metric, str) or metric not in WALK_METRICS:
        what = "metric of walks"
        raise ArgumentError(unknown_name(what, metric, WALK_METRICS, write="metric={!r}"))
    return WALK_METRICS[metric]


def _check_list(walks: Any) -> None:
    if not isinstance(walks, Sequence) or isinstance(walks, str):
        raise ArgumentError(
            explain_error(
                "only walks can be measured here",
                got=type(walks).__name__,
                expected="what pellucid.explore returned, or a list of such",
                instead="pellucid.measure_walk(pellucid.explore(model, ...), metric=...)",
            )
        )


def _one_each(name: str, given: Any, count: int) -> Sequence[Any]:
    """What was given beside a list of walks, one for each."""
    if given is None:
        return [None] * count
    if not isinstance(given, Sequence) or len(given) != count:
        many = f"{len(given)}" if isinstance(given, Sequence) else "one"
        raise ArgumentError(
            explain_error(
                f"{name}= is not one for each walk",
                got=f"{many} for {count} walks",
                expected=f"a list of {count}, in the order of the walks",
                instead=f"{name}=[... for walk in walks]",
            )
        )
    return given
