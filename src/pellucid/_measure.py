"""`measure`: how good an explanation is, by one metric."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from pellucid._batches import run_in_batches
from pellucid._case import Case, Meter
from pellucid._errors import ArgumentError, NumericalError, explain_error, unknown_name
from pellucid._needs import require
from pellucid._results import Explanation
from pellucid._spec import Better, Metric, bound_parameters
from pellucid._target import Target
from pellucid._types import Measured
from pellucid.adapters import as_adapter
from pellucid.adapters.base import Adapter
from pellucid.metrics import METRICS


@dataclass(frozen=True)
class Measurement:
    """One number about one explanation, with what is needed to read it."""

    metric: str
    value: float | None  # None: skipped, and `skipped` says why
    better: Better
    params: Mapping[str, Any]
    label: str  # the class whose probability was read
    evaluations: int  # of the model, for this input
    curve: tuple[float, ...] = ()
    ties: float = 0.0  # the fraction of scores that equal another one
    skipped: str = ""


@torch.inference_mode(False)
def measure(
    model: Any,
    explanations: Explanation | Sequence[Explanation],
    *,
    metric: str | Metric,
    target: int | str | None = None,
    seed: int = 0,
    batch_size: int = 32,
    **params: Any,
) -> Any:
    """Measure one explanation, or each of a list of them.

    Main arguments: `explanations` are what `explain` returned (or were loaded from files);
    `metric` is a name from `list_metrics()`. Further keywords are the metric's own.

    Other arguments: `target` is the class whose probability is read (None: the class that was
    explained); `seed` decides all randomness; `batch_size` changed inputs go through at once.
    """
    adapter = as_adapter(model)
    spec = _as_metric(metric)
    params = bound_parameters(spec, params)
    require(adapter, spec)
    adapter.check_state()
    several = not isinstance(explanations, Explanation)
    found = list(explanations) if isinstance(explanations, Sequence) else [explanations]
    for explanation in found:
        check_measurable(explanation, adapter)
    groups: dict[int, list[int]] = defaultdict(list)
    for position, explanation in enumerate(found):
        groups[_measured_class(explanation, target, adapter)].append(position)
    results: dict[int, Measurement] = {}
    for index, positions in groups.items():
        group = [found[position] for position in positions]
        measured = _measure_class(adapter, group, spec, params, index, seed, batch_size)
        results |= dict(zip(positions, measured, strict=True))
    ordered = [results[position] for position in range(len(found))]
    return ordered if several else ordered[0]


def _measure_class(
    adapter: Adapter,
    explanations: list[Explanation],
    spec: Metric,
    params: Mapping[str, Any],
    index: int,
    seed: int,
    batch_size: int,
) -> list[Measurement]:
    """Measure explanations by the probability of one class."""
    target = Target.probability(index)

    def work(chosen: list[int]) -> list[Measurement]:
        some = [explanations[i] for i in chosen]
        batch = adapter.encode_items([one.item for one in some], target)
        meter = Meter(len(batch))
        case = Case(
            adapter, batch, target, seed=seed, batch_size=batch_size, spec=spec, meter=meter
        )
        measured: Measured = spec(case, some, **params)
        return [_one(case, spec, params, measured, row, index) for row in range(len(some))]

    items = [explanation.item for explanation in explanations]
    return run_in_batches(items, work, batch_size, False, adapter.largest_batch)


def _one(
    case: Case, spec: Metric, params: Mapping[str, Any], measured: Measured, row: int, index: int
) -> Measurement:
    value = measured.values[row]
    if value is not None and not math.isfinite(value):
        raise NumericalError(explain_error(f"metric {spec.name!r} gave {value}", got=value))
    return Measurement(
        metric=spec.name,
        value=value,
        better=spec.better,
        params=dict(params),
        label=case.adapter.label_name(index),
        evaluations=int(case.meter.forwards[row]),
        curve=tuple(measured.curves[row].tolist()) if measured.curves else (),
        ties=measured.ties[row] if measured.ties else 0.0,
        skipped=measured.skipped[row] if measured.skipped else "",
    )


def _as_metric(metric: str | Metric) -> Metric:
    if isinstance(metric, Metric):
        return metric
    if metric not in METRICS:
        raise ArgumentError(unknown_name("metric", metric, METRICS, write="metric={!r}"))
    return METRICS[metric]


def _measured_class(explanation: Explanation, target: int | str | None, adapter: Adapter) -> int:
    """The class whose probability is read."""
    if target is not None:
        return adapter.class_index(target)
    if explanation.index is None:
        raise ArgumentError(
            explain_error(
                "this explanation is not about a class, so no class's probability can be read",
                got=f"an explanation of the {explanation.target}",
                expected="an explanation of a class, or target=",
                instead=f"target={adapter.labels[0] if adapter.labels else 0!r}",
            )
        )
    return explanation.index


def check_measurable(explanation: Any, adapter: Adapter) -> None:
    """An explanation of this kind of input, of this very model, with finite scores."""
    if not isinstance(explanation, Explanation):
        raise ArgumentError(
            explain_error(
                "only explanations can be measured",
                got=type(explanation).__name__,
                expected="what pellucid.explain returned, or a list of such",
            )
        )
    if explanation.kind != adapter.kind:
        raise ArgumentError(
            explain_error(
                "the explanation and the model do not fit",
                got=f"an explanation of {explanation.kind}",
                expected=f"{adapter.kind}, which is what {adapter.name} reads",
            )
        )
    if not torch.isfinite(explanation.scores).all():
        raise NumericalError(
            explain_error(
                "the scores are not finite",
                got=f"{int((~torch.isfinite(explanation.scores)).sum())} NaN or infinite",
                expected="finite scores",
            )
        )
