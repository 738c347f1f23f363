"""`measure`: how good an explanation is, by one metric."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import torch

from pellucid._again import explain_again
from pellucid._arguments import integer
from pellucid._batches import run_in_batches
from pellucid._case import Case
from pellucid._errors import ArgumentError, NumericalError, explain_error, unknown_name
from pellucid._meter import Meter
from pellucid._needs import require
from pellucid._results import Explanation
from pellucid._spec import Better, Metric, bound_parameters
from pellucid._target import Target
from pellucid._truth import read_truths
from pellucid._types import Batch, Measured
from pellucid.adapters import as_adapter
from pellucid.adapters.base import Adapter
from pellucid.metrics import METRICS
from pellucid.record import precision


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
    counts: Mapping[str, int] = field(default_factory=dict)  # to be summed over a data set


@torch.inference_mode(False)
def measure(
    model: Any,
    explanations: Explanation | Sequence[Explanation],
    *,
    metric: str | Metric,
    target: int | str | None = None,
    truth: Any = None,
    seed: int = 0,
    batch_size: int = 32,
    **params: Any,
) -> Any:
    """Measure one explanation, or each of a list of them.

    Main arguments: `explanations` are what `explain` returned (or were loaded from files);
    `metric` is a name from `list_metrics()`. Further keywords are the metric's own.

    Other arguments: `target` is the class whose probability is read (None: the class that was
    explained); `truth` is what some metrics compare with, for a list one for each: the mask of the
    object (1 inside, 0 outside, -1 not counted), as large as the image that was explained, which is
    resized and cropped as that was; the right class, by name or number; or what people marked in
    the text: a number for every word between white space (a list of such lists, one a person), or
    a tuple of the words' character spans and the numbers; `seed` decides all randomness;
    `batch_size` changed inputs go through at once.
    """
    adapter = as_adapter(model)
    spec = _as_metric(metric)
    params = bound_parameters(spec, params)
    seed, batch_size = integer("seed", seed, 0), integer("batch_size", batch_size, 1, 32)
    adapter.check_state()
    require(adapter, spec, METRICS)
    several = not isinstance(explanations, Explanation)
    found = list(explanations) if isinstance(explanations, Sequence) else [explanations]
    for explanation in found:
        check_measurable(explanation, adapter)
    truths = read_truths(truth, found, several, spec, adapter)
    groups: dict[Target, list[int]] = defaultdict(list)
    for position, explanation in enumerate(found):
        groups[_measured_target(explanation, target, spec, adapter)].append(position)
    results: dict[int, Measurement] = {}
    for goal, positions in groups.items():
        group = [(found[position], truths[position]) for position in positions]
        measured = _measure_class(adapter, group, spec, params, goal, seed, batch_size)
        results |= dict(zip(positions, measured, strict=True))
    ordered = [results[position] for position in range(len(found))]
    return ordered if several else ordered[0]


def _measure_class(
    adapter: Adapter,
    group: list[tuple[Explanation, Any]],
    spec: Metric,
    params: Mapping[str, Any],
    target: Target,
    seed: int,
    batch_size: int,
) -> list[Measurement]:
    """Measure explanations by the probability of one class."""

    def work(chosen: list[int]) -> list[Measurement]:
        some = [group[i][0] for i in chosen]
        truths = [] if spec.truth is None else [[group[i][1] for i in chosen]]
        batch = adapter.batch([one.item for one in some], target)
        _check_tokens(some, batch)
        case = Case(
            adapter,
            batch,
            target,
            seed=seed,
            batch_size=batch_size,
            spec=spec,
            meter=Meter(len(batch)),
            again=explain_again,
        )
        with precision.formulas(adapter.device):
            measured: Measured = spec(case, some, *truths, **params)
        return [_one(case, spec, params, measured, row) for row in range(len(some))]

    items = [explanation.item for explanation, _ in group]
    return run_in_batches(items, work, batch_size, False, adapter.largest_batch)


def _one(
    case: Case, spec: Metric, params: Mapping[str, Any], measured: Measured, row: int
) -> Measurement:
    value = measured.values[row]
    if value is not None and not math.isfinite(value):
        raise NumericalError(
            explain_error(
                f"metric {spec.name!r} gave a number that is not finite",
                got=value,
                expected="a finite number",
                instead="pellucid.load(..., dtype='float64')",
            )
        )
    return Measurement(
        metric=spec.name,
        value=value,
        better=spec.better,
        params=dict(params),
        label=case.adapter.label_name(cast(int, case.target.label)),
        evaluations=int(case.meter.forwards[row]),
        curve=tuple(measured.curves[row].tolist()) if measured.curves else (),
        ties=measured.ties[row] if measured.ties else 0.0,
        skipped=measured.skipped[row] if measured.skipped else "",
        counts=measured.counts[row] if measured.counts else {},
    )


def _as_metric(metric: str | Metric) -> Metric:
    if isinstance(metric, Metric):
        return metric
    if not isinstance(metric, str) or metric not in METRICS:
        raise ArgumentError(unknown_name("metric", metric, METRICS, write="metric={!r}"))
    return METRICS[metric]


def _measured_target(
    explanation: Explanation, asked: int | str | None, spec: Metric, adapter: Adapter
) -> Target:
    """The probability that is read: of the class asked for, or of the one that was explained."""
    index = explanation.index if asked is None else adapter.class_index(asked)
    if index is None:
        raise ArgumentError(
            explain_error(
                "this explanation is not about a class, so no class's probability can be read",
                got=f"an explanation of the {explanation.explains}",
                expected="an explanation of a class, or target=",
                instead=f"target={adapter.labels[0] if adapter.labels else 0!r}"
                if adapter.task not in ("regression", "other")
                else "a classifier: this model has no probabilities",
            )
        )
    goal = explanation.target or Target()
    if spec.reads == "explained":
        return replace(goal, label=index)
    return Target(label=index, quantity=spec.reads, mask=goal.mask)


def _check_tokens(explanations: Sequence[Explanation], batch: Batch) -> None:
    """The scores belong to the tokens that this model reads, one by one."""
    for explanation, item in zip(explanations, batch.items, strict=True):
        if explanation.segments != item.segments:
            raise ArgumentError(
                explain_error(
                    "the scores are not about the tokens that this model reads",
                    got=f"{len(explanation.segments)} scored, {len(item.segments)} read",
                    expected="an explanation of this model, of an input that it read whole",
                    instead="explain the input again with this model (windows cannot be measured)",
                )
            )


def check_measurable(explanation: Any, adapter: Adapter) -> None:
    """An explanation of this kind of input, of this very model, with finite scores."""
    if not isinstance(explanation, Explanation):
        raise ArgumentError(
            explain_error(
                "only explanations can be measured",
                got=type(explanation).__name__,
                expected="what pellucid.explain returned, or a list of such",
                instead="pellucid.measure(model, pellucid.explain(model, ...), metric=...)",
            )
        )
    if explanation.kind != adapter.kind:
        raise ArgumentError(
            explain_error(
                "the explanation and the model do not fit",
                got=f"an explanation of {explanation.kind}",
                expected=f"{adapter.kind}, which is what {adapter.name} reads",
                instead="measure it with the model that it explains",
            )
        )
    if explanation.provenance.weights != adapter.weights_hash():
        raise ArgumentError(
            explain_error(
                "this explanation is of another model",
                got=f"{explanation.provenance.model}, weights "
                f"{explanation.provenance.weights[:12]}",
                expected=f"{adapter.name}, weights {adapter.weights_hash()[:12]}",
                instead="measure it with the model that it explains",
            )
        )
    if not torch.isfinite(explanation.scores).all():
        raise NumericalError(
            explain_error(
                "the scores are not finite",
                got=f"{int((~torch.isfinite(explanation.scores)).sum())} NaN or infinite",
                expected="finite scores",
                instead="explain the input again",
            )
        )
