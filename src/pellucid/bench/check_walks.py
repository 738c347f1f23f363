"""A plan of walks looked at before any work, as `check.py` looks at one of explanations."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from pellucid._errors import ArgumentError, explain_error, unknown_name
from pellucid.adapters.base import Adapter
from pellucid.bench.loading import load_data, load_model, load_plain
from pellucid.bench.looking import check_kind, chunks_of, facts_of
from pellucid.bench.plan import Entry, Plan
from pellucid.bench.problems import Problems
from pellucid.bench.tasks.facts import ModelFacts
from pellucid.bench.tasks.walking import Walking
from pellucid.data import Dataset
from pellucid.explorer.explore import explore
from pellucid.explorer.settings import Settings
from pellucid.explorer.space import find_space
from pellucid.explorer.studies import ALGORITHMS, STAYING, headings, walk_unit

_RULES = ("top", "above")
_OWN = {"model", "item", "algorithm", "inputs", "repetition", "repeats", "seed", "rules", "goal"}


def checked_walks(plan: Plan) -> Walking:
    """The study of walks that can be run; otherwise one error with all that is wrong."""
    problems = Problems(plan.name)
    with problems.at("[walking]"):
        _check_options(plan.walking)
    for walk in plan.walks:
        with problems.at(walk.place):
            _check_walk(walk, plan)
    for metric in plan.metrics:
        with problems.at(metric.place):
            _check_column(metric)
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
    decoder = ""
    with problems.at("[walking]"):
        if "mlm" in plan.walking:
            decoder = load_plain(plan.walking["mlm"]).weights_hash()
    problems.refuse_any()
    return Walking(plan, models, {name: chunks_of(one, 1) for name, one in data.items()}, decoder)


def _check_model(
    plan: Plan, model: Entry, adapter: Adapter, data: Mapping[str, Dataset], problems: Problems
) -> None:
    """Whether it can be walked in, from this data."""
    for walk in plan.walks:
        if walk.is_for(model):
            with problems.at(walk.place):
                space = {**plan.walking, **walk.options}.get("space", "embedding")
                find_space(adapter, space)
    for entry in plan.data:
        if entry.name in data and entry.is_for(model):
            with problems.at(entry.place):
                check_kind(data[entry.name], entry, model, adapter)


def _check_walk(walk: Entry, plan: Plan) -> None:
    if walk.what not in ALGORITHMS:
        raise ArgumentError(unknown_name("algorithm", walk.what, ALGORITHMS, write="walk = {!r}"))
    _check_options(walk.options)
    staying = {one.name: one for one in plan.walks if one.what == STAYING}
    beside = walk.options.get("beside")
    if beside is None:
        return
    if beside not in staying or walk.what == STAYING:
        raise ArgumentError(
            unknown_name(f"{STAYING} walk to compare with", beside, staying, write="beside = {!r}")
        )
    places = [_place(plan, one) for one in (walk, staying[beside])]
    if places[0] != places[1]:
        raise ArgumentError(
            explain_error(
                "only walks of the same tokens in one space can be compared",
                got=f"{walk.name}: {places[0]}; {beside}: {places[1]}",
                expected="the same tokens and space",
                instead="tokens and space under [walking], for all walks",
            )
        )


def _place(plan: Plan, walk: Entry) -> dict[str, Any]:
    """What a walk moves, and where."""
    given = {**plan.walking, **walk.options}
    return {name: given[name] for name in ("tokens", "space") if name in given}


def _check_options(options: Mapping[str, Any]) -> None:
    """Refuse what no walk takes."""
    known = {
        *inspect.signature(walk_unit).parameters,
        *inspect.signature(explore).parameters,
        *Settings.__dataclass_fields__,
    } - _OWN
    for name in options:
        if name not in known:
            raise ArgumentError(unknown_name("option of walks", name, known, write="{} = ..."))
    tokens = options.get("tokens")
    if isinstance(tokens, Mapping) and not (len(tokens) == 1 and set(tokens) <= {*_RULES}):
        raise ArgumentError(
            explain_error(
                "this rule of importance is not known",
                got=f"tokens = {tokens!r}",
                expected="{ top = 1 } for the most important, { above = 0.5 } for the upper half",
                instead="tokens = { top = 1 }",
            )
        )


def _check_column(metric: Entry) -> None:
    if metric.what not in headings():
        raise ArgumentError(
            unknown_name("column of walks", metric.what, headings(), write="metric = {!r}")
        )
    if metric.options or metric.name != metric.what:
        raise ArgumentError(
            explain_error(
                "the columns of walks are measured in one way, under their own names",
                got=f"{metric.name}: {dict(metric.options)}",
                expected="nothing beside it; `stride` and `top` belong to [walking]",
                instead=f'metric = "{metric.what}"',
            )
        )
