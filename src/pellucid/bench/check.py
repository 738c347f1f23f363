"""A plan looked at before any work: everything is loaded once, and all that cannot work is said."""

from __future__ import annotations

from collections.abc import Iterable

from pellucid._errors import ArgumentError, UnsupportedCombination, explain_error, unknown_name
from pellucid._needs import require
from pellucid._spec import as_method, bound_parameters
from pellucid.adapters.base import Adapter
from pellucid.bench.check_walks import checked_walks
from pellucid.bench.loading import load_data, load_model
from pellucid.bench.looking import check_kind, chunks_of, facts_of
from pellucid.bench.plan import LABEL, PREDICTED, Entry, Plan
from pellucid.bench.problems import Problems
from pellucid.bench.tasks.explaining import Explaining
from pellucid.bench.tasks.facts import ModelFacts
from pellucid.bench.tasks.walking import Walking
from pellucid.data import Dataset, check_labels
from pellucid.methods import METHODS
from pellucid.metrics import METRICS


def checked(plan: Plan) -> Explaining | Walking:
    """The study of a plan that can be run; otherwise one error with all of its problems."""
    return checked_walks(plan) if plan.walks else _checked_maps(plan)


def _checked_maps(plan: Plan) -> Explaining:
    problems = Problems(plan.name)
    for entry in plan.methods:
        with problems.at(entry.place):
            bound_parameters(as_method(entry.what, METHODS)[0], entry.options)
    for entry in plan.metrics:
        with problems.at(entry.place):
            if entry.what not in METRICS:
                raise ArgumentError(
                    unknown_name("metric", entry.what, METRICS, write="metric = {!r}")
                )
            bound_parameters(METRICS[entry.what], entry.options)
    data: dict[str, Dataset] = {}
    for entry in plan.data:
        with problems.at(entry.place):
            data[entry.name] = load_data(entry)
    models: dict[str, ModelFacts] = {}
    for entry in plan.models:
        with problems.at(entry.place):
            adapter = load_model(entry)
            models[entry.name] = facts_of(adapter)
            _check_model(plan, entry, adapter, data, problems)
            del adapter  # before the next one needs the memory
    problems.refuse_any()
    chunk = plan.settings.chunk
    return Explaining(plan, models, {name: chunks_of(found, chunk) for name, found in data.items()})


def _check_model(
    plan: Plan, model: Entry, adapter: Adapter, data: dict[str, Dataset], problems: Problems
) -> None:
    """What one model is to do, and cannot."""
    for part in ("data", "methods", "metrics"):
        with problems.at(model.place):
            if not any(entry.is_for(model) for entry in getattr(plan, part)):
                raise _nothing_for(model, part)
    if plan.settings.target not in (PREDICTED, LABEL):
        with problems.at("[study]"):
            adapter.class_index(plan.settings.target)
    for method in _known(plan.methods, METHODS, model):
        with problems.at(method.place):
            require(adapter, METHODS[method.what], METHODS)
    metrics = list(_known(plan.metrics, METRICS, model))
    for metric in metrics:
        with problems.at(metric.place):
            require(adapter, METRICS[metric.what], METRICS)
    for entry in plan.data:
        if entry.name in data and entry.is_for(model):
            with problems.at(entry.place):
                check_kind(data[entry.name], entry, model, adapter)
            if data[entry.name].kind != adapter.kind:
                continue
            for metric in metrics:
                with problems.at(metric.place):
                    _check_truth(data[entry.name], entry, metric)
            needs_labels = any(METRICS[metric.what].truth == "label" for metric in metrics)
            if plan.settings.target == LABEL or needs_labels:
                with problems.at(entry.place):
                    check_labels(data[entry.name], adapter)


def _known(entries: Iterable[Entry], table: object, model: Entry) -> Iterable[Entry]:
    """Those for this model whose names exist, which has been checked already."""
    return (one for one in entries if one.what in table and one.is_for(model))  # type: ignore[operator]


def _check_truth(data: Dataset, entry: Entry, metric: Entry) -> None:
    kind = METRICS[metric.what].truth
    if kind is not None and kind != "label" and kind not in data.truths:
        raise UnsupportedCombination(
            explain_error(
                f"metric {metric.name!r} compares with a {kind}, which {entry.name} has not",
                got=f"truth: {', '.join(data.truths) or 'none'}",
                expected=f"samples with a {kind}",
                instead=f"leave {metric.name!r} out, or read data that has one",
            )
        )


def _nothing_for(model: Entry, part: str) -> ArgumentError:
    return ArgumentError(
        explain_error(
            f"none of the {part} is for this model",
            got=f"models = [...] without {model.name!r} in every entry of [[{part}]]",
            expected=f"one of the {part} at least",
            instead=f'models = ["{model.name}"], or leave `models` out',
        )
    )
