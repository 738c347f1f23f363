"""`measure`: how good an explanation is, by one metric."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from pellucid._again import explain_again
from pellucid._answers import Answers
from pellucid._arguments import integer
from pellucid._batches import run_in_batches
from pellucid._case import Case
from pellucid._errors import ArgumentError, NumericalError, explain_error
from pellucid._needs import require
from pellucid._results import Explanation
from pellucid._spec import Better, Metric, as_metric, bound_parameters
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
    seconds: float = field(default=0.0, compare=False)  # of its batch, shared evenly


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
    spec, settings = as_metric(metric, METRICS)
    params = bound_parameters(spec, settings | params)
    seed, batch_size = integer("seed", seed, 0), integer("batch_size", batch_size, 1, 32)
    adapter.check_state()
    require(adapter, spec, METRICS)
    several = not isinstance(explanations, Explanation)
    found = list(explanations) if isinstance(explanations, Sequence) else [explanations]
    for explanation in found:
        check_measurable(explanation, adapter)
    truths = read_truths(truth, found, several, spec, adapter)
    classes = [_measured_class(explanation, target, adapter) for explanation in found]
    measuring = Measuring(adapter, spec, params, seed, batch_size)
    measured = measuring.measure_all(found, truths, classes)
    return measured if several else measured[0]


@dataclass(frozen=True)
class Measuring:
    """A model, a configured metric, and what the model is known to have answered."""

    adapter: Adapter
    spec: Metric
    params: Mapping[str, Any]
    seed: int
    batch_size: int
    answers: Answers = field(default_factory=Answers)
    again: Callable[..., list[Tensor]] = explain_again

    def measure_all(
        self, explanations: Sequence[Explanation], truths: Sequence[Any], classes: Sequence[int]
    ) -> list[Measurement]:
        """Measure each explanation by the number of its class; batches may hold several classes."""
        groups: dict[Target, list[int]] = defaultdict(list)
        for position, explanation in enumerate(explanations):
            groups[_number_read(explanation, self.spec)].append(position)
        results: dict[int, Measurement] = {}
        for target, positions in groups.items():
            group = [(explanations[i], truths[i], classes[i]) for i in positions]
            results |= dict(zip(positions, self._measure_group(group, target), strict=True))
        return [results[position] for position in range(len(explanations))]

    def _measure_group(
        self, group: list[tuple[Explanation, Any, int]], target: Target
    ) -> list[Measurement]:
        """Measure explanations whose numbers are read at one place of the output."""

        def work(chosen: list[int]) -> list[Measurement]:
            some, truths, classes = zip(*(group[i] for i in chosen), strict=True)
            return self._measure_batch(some, truths, classes, target)

        items = [explanation.item for explanation, _, _ in group]
        return run_in_batches(items, work, self.batch_size, False, self.adapter.largest_batch)

    def _measure_batch(
        self,
        explanations: Sequence[Explanation],
        truths: Sequence[Any],
        classes: Sequence[int],
        target: Target,
    ) -> list[Measurement]:
        batch = self.adapter.batch([one.item for one in explanations], target)
        _check_tokens(explanations, batch)
        case = Case(
            self.adapter,
            batch,
            target,
            seed=self.seed,
            batch_size=self.batch_size,
            spec=self.spec,
            again=self.again,
            classes=classes,
            answers=self.answers,
        )
        compared = [] if self.spec.truth is None else [list(truths)]
        began = time.perf_counter()
        with precision.formulas(self.adapter.device):
            measured: Measured = self.spec(case, list(explanations), *compared, **self.params)
        seconds = (time.perf_counter() - began) / len(batch)
        return [self._one(case, measured, row, index, seconds) for row, index in enumerate(classes)]

    def _one(
        self, case: Case, measured: Measured, row: int, index: int, seconds: float
    ) -> Measurement:
        value = measured.values[row]
        if value is not None and not math.isfinite(value):
            raise NumericalError(
                explain_error(
                    f"metric {self.spec.name!r} gave a number that is not finite",
                    got=value,
                    expected="a finite number",
                    instead="pellucid.load(..., dtype='float64')",
                )
            )
        return Measurement(
            metric=self.spec.name,
            value=value,
            better=self.spec.better,
            params=dict(self.params),
            label=self.adapter.label_name(index),
            evaluations=int(case.meter.forwards[row]),
            curve=tuple(measured.curves[row].tolist()) if measured.curves else (),
            ties=measured.ties[row] if measured.ties else 0.0,
            skipped=measured.skipped[row] if measured.skipped else "",
            counts=measured.counts[row] if measured.counts else {},
            seconds=seconds,
        )


def _measured_class(explanation: Explanation, asked: int | str | None, adapter: Adapter) -> int:
    """The class that is read: the one asked for, or the one that was explained."""
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
    return index


def _number_read(explanation: Explanation, spec: Metric) -> Target:
    """What is read of the class: what the metric says, or the very number that was explained."""
    goal = explanation.target or Target()
    if spec.reads == "explained":
        return replace(goal, label=None)
    return Target(quantity=spec.reads, mask=goal.mask)


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
