"""`evaluate`: methods on data by metrics, with every version of an input put to the model once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

from pellucid._again import explain_again
from pellucid._answers import Answers
from pellucid._arguments import integer
from pellucid._batches import Progress, reporting
from pellucid._case import Case
from pellucid._configured import Configured, all_configured
from pellucid._errors import (
    ArgumentError,
    InputError,
    NumericalError,
    UnsupportedCombination,
    explain_error,
)
from pellucid._explain import Engine, check_progress
from pellucid._measure import Measurement, Measuring
from pellucid._needs import require
from pellucid._provenance import versions
from pellucid._results import Explanation
from pellucid._samples import (
    ReadSample,
    Sample,
    check_labels,
    check_truths,
    read_sample,
    reason_of,
    samples_of,
)
from pellucid._spec import Method, Metric, as_method, as_metric
from pellucid._table import Cost, Scored, Table
from pellucid._target import Target
from pellucid._types import Picture, Text
from pellucid.adapters import as_adapter
from pellucid.adapters.base import Adapter
from pellucid.methods import METHODS
from pellucid.metrics import METRICS

T = TypeVar("T")
R = TypeVar("R")

LABEL = "label"  # the target that is each sample's own label
_OF_ONE_INPUT = (InputError, NumericalError)  # what one sample may be skipped for


@torch.inference_mode(False)
def evaluate(
    model: Any,
    data: Any,
    *,
    methods: Sequence[Any],
    metrics: Sequence[Any],
    target: Any = None,
    seed: int = 0,
    batch_size: int = 8,
    progress: Progress = None,
) -> Table:
    """Explain all data by each method, and measure every explanation by each metric.

    Main arguments: `data` is a sequence of samples (with `input`, `label`, `truth` and `id`), or a
    list of inputs as `explain` takes them; `methods` and `metrics` are names, functions (of a
    `Case`), partials, or pairs such as ("integrated_gradients", {"steps": 50}). What a metric
    compares with is taken from the samples.

    Other arguments: `target` is the class that is explained and read: "label" for that of each
    sample, a class by name or number, or None for the predicted one; `seed` decides all randomness;
    `batch_size` samples are explained, and changed inputs go through the model, at once; `progress`
    is True, False, a function of (done, total), or None for a bar on a terminal.

    A sample that cannot be read, explained or measured is skipped, and the table counts why. What
    cannot work for any sample is refused before the first. Curves are not kept; `measure` has them.
    """
    adapter = as_adapter(model)
    chosen = all_configured(methods, "method", METHODS, as_method)
    measures = all_configured(metrics, "metric", METRICS, as_metric)
    goal, by_label = _goal(target, adapter)
    seed, batch_size = integer("seed", seed, 0), integer("batch_size", batch_size, 1, 8)
    check_progress(progress)
    check_fit(adapter, chosen, measures)
    samples = samples_of(data)
    check_truths(samples, [one.spec for one in measures])
    if by_label:
        check_labels(samples)
    scored: dict[str, list[Scored]] = {method.label: [] for method in chosen}
    with reporting(progress, len(samples) * len(chosen), "evaluating", "explanation") as report:
        for read in _read_in_batches(adapter, samples, goal, batch_size):
            answers = Answers()  # of these samples only
            for method in chosen:
                found = evaluate_samples(
                    adapter,
                    read,
                    method,
                    measures,
                    target=LABEL if by_label else goal,
                    seed=seed,
                    batch_size=batch_size,
                    answers=answers,
                )
                scored[method.label] += [one.numbers_only() for one in found]
                report(sum(map(len, scored.values())))
    return Table(
        model=adapter.name,
        weights=adapter.weights_hash(),
        target=_described(goal, by_label),
        seed=seed,
        versions=versions(),
        methods=tuple(chosen),
        metrics=tuple(measures),
        scored=scored,
    )


def check_fit(
    adapter: Adapter,
    methods: Sequence[Configured[Method]],
    metrics: Sequence[Configured[Metric]],
) -> None:
    """Refuse before any work what the model does not offer."""
    adapter.check_state()
    adapter.weights_hash()  # which finds bad weights
    if adapter.task in ("regression", "other"):
        raise UnsupportedCombination(
            f"metrics read the probability of a class, and {adapter.name} has none.\n"
            f"  missing:  classes (its task is {adapter.task})\n"
            "  instead:  a classifier"
        )
    for method in methods:
        require(adapter, method.spec, METHODS)
    for metric in metrics:
        require(adapter, metric.spec, METRICS)


def evaluate_samples(
    adapter: Adapter,
    samples: Sequence[ReadSample],
    method: Configured[Method],
    metrics: Sequence[Configured[Metric]],
    *,
    target: Any = None,
    seed: int = 0,
    batch_size: int = 8,
    answers: Answers | None = None,
) -> list[Scored]:
    """One method on some samples: for each of them its measurements, one a metric.

    `answers` are those that the model is known to have given, which this adds to.
    """
    goal, by_label = _goal(target, adapter)
    engine = Engine(adapter, method.spec, method.params, seed, batch_size)
    explained = _explained(engine, samples, goal, by_label)
    again = partial(_again_by, method.spec)
    answers = answers or Answers()
    columns = [
        _measured(
            Measuring(adapter, one.spec, one.params, seed, batch_size, answers, again),
            samples,
            explained,
        )
        for one in metrics
    ]
    return [
        Scored(
            sample.sample.id,
            tuple(row),
            _cost(found),
            found if isinstance(found, Explanation) else None,
        )
        for sample, found, *row in zip(samples, explained, *columns, strict=True)
    ]


# ---- the parts -----------------------------------------------------------------------------------


def _read_in_batches(
    adapter: Adapter, samples: Sequence[Sample], goal: Target, batch_size: int
) -> Iterator[list[ReadSample]]:
    """The samples as the model reads them, some at a time; an error where none could be read."""
    readable = 0
    for start in range(0, len(samples), batch_size):
        numbers = range(start, min(start + batch_size, len(samples)))
        read = [read_sample(adapter, samples[i], goal) for i in numbers]
        readable += sum(one.item is not None for one in read)
        yield read
    if not readable:
        raise InputError(
            explain_error(
                f"none of the {len(samples)} samples can be read",
                got=f"of the last: {read[-1].skipped}",
                expected=f"{adapter.kind} inputs, as pellucid.explain takes them",
                instead=f"pellucid.explain(model, {read[-1].sample.input!r})  # says more",
            )
        )


def _explained(
    engine: Engine, samples: Sequence[ReadSample], goal: Target, by_label: bool
) -> list[Explanation | str]:
    """The explanation of each sample, or why there is none."""
    goal = goal.with_default(engine.spec.explains)
    found: list[Explanation | str] = [sample.skipped for sample in samples]
    groups: dict[Target, list[int]] = defaultdict(list)
    for position, sample in enumerate(samples):
        if sample.item is None:
            continue
        try:
            own = replace(goal, label=sample.class_in(engine.adapter)) if by_label else goal
        except (ArgumentError, InputError) as error:
            found[position] = reason_of(error)
        else:
            groups[own].append(position)
    for own, positions in groups.items():
        items = [cast(Text | Picture, samples[i].item) for i in positions]
        explained = _in_parts(partial(engine.explain_items, target=own), items)
        for position, one in zip(positions, explained, strict=True):
            found[position] = one
    return found


def _measured(
    measuring: Measuring, samples: Sequence[ReadSample], explained: Sequence[Explanation | str]
) -> list[Measurement]:
    """The measurement of each sample; without a number where there is a reason for it."""
    found: list[Measurement | str] = []
    known: list[tuple[Explanation, Any]] = []
    for sample, explanation in zip(samples, explained, strict=True):
        if isinstance(explanation, str):
            found.append(explanation)
            continue
        try:
            truth = sample.truth_for(measuring.spec, explanation, measuring.adapter)
        except (ArgumentError, InputError) as error:
            found.append(reason_of(error))
        else:
            found.append("")
            known.append((explanation, truth))

    def work(pairs: Sequence[tuple[Explanation, Any]]) -> list[Measurement]:
        some, truths = [one for one, _ in pairs], [truth for _, truth in pairs]
        return measuring.measure_all(some, truths, [cast(int, one.index) for one in some])

    measured = iter(_in_parts(work, known))
    return [_or_skipped(measuring, one or next(measured)) for one in found]


def _in_parts(work: Callable[[Sequence[T]], Sequence[R]], items: Sequence[T]) -> list[R | str]:
    """`work` on all at once; where it fails for one of them, on halves, until that one is alone."""
    if not items:
        return []
    try:
        return list(work(items))
    except _OF_ONE_INPUT as error:
        if len(items) == 1:
            return [reason_of(error)]
    half = len(items) // 2
    return [*_in_parts(work, items[:half]), *_in_parts(work, items[half:])]


def _or_skipped(measuring: Measuring, found: Measurement | str) -> Measurement:
    """The measurement, or one that only says why there is no number."""
    if isinstance(found, Measurement):
        return found
    spec, params = measuring.spec, dict(measuring.params)
    return Measurement(spec.name, None, spec.better, params, "", 0, skipped=found)


def _cost(found: Explanation | str) -> Cost:
    """What the explanation has cost by itself."""
    if isinstance(found, str):
        return Cost()
    made = found.provenance
    return Cost(made.forwards, made.backwards, made.seconds)


def _again_by(
    spec: Method,
    case: Case,
    row: int,
    explanation: Explanation,
    method: Callable[..., Any] | None,
    **changed: Any,
) -> list[Tensor]:
    """An explanation made again by the method at hand, which need be none of pellucid's own."""
    return explain_again(case, row, explanation, method or spec, **changed)


def _described(goal: Target, by_label: bool) -> str:
    """The class in words."""
    if by_label:
        return "the label of each sample"
    return "the predicted class" if goal.label is None else repr(goal.label)


def _goal(target: Any, adapter: Adapter) -> tuple[Target, bool]:
    """The target, and whether its class is the label of each sample."""
    by_label = isinstance(target, str) and target == LABEL
    goal = Target.parse(None if by_label else target)
    if goal.function is not None or goal.text is not None:
        raise ArgumentError(
            explain_error(
                "metrics read the probability of a class",
                got=f"target: {goal.describe()}",
                expected="'label', a class by name or number, or None for the predicted one",
                instead=f"target={LABEL!r}",
            )
        )
    if goal.label is not None:
        adapter.class_index(goal.label)
    return goal, by_label
