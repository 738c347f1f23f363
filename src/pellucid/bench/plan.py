"""A plan: models x data x methods x metrics, as a TOML file says it.

    [study]                      # all of it may be left out
    seed = 0
    target = "predicted"         # what is explained: or "label", or the name of a class

    [[models]]
    load = "pellucid/digits-vit" # what `pellucid.load` takes; its keywords may follow

    [[data]]
    read = "bundled"             # a reader; its keywords may follow
    kind = "images"

    [[methods]]
    method = "rollout"           # its parameters may follow
    discard = 0.9

    [[metrics]]
    metric = "deletion"          # its parameters may follow

Every entry may have a `name`, by which tables call it, and data, methods and metrics may say
`models = ["..."]`: the ones that they are for, where that is not all of them.

A plan of walks has [[walks]] in place of [[methods]]; its [[metrics]] are columns of walks, all of
them where there are none:

    [walking]                    # what every walk is given, as `explore` takes it
    steps = 1000

    [[walks]]
    walk = "SiMExp"              # an algorithm; its options may follow
    beside = "SiMEC"             # the name of the walk that it is compared with

Variables are in `variables.py`, tables of papers to show beside the results in `published.py`.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pellucid._arguments import integer
from pellucid._errors import ArgumentError, PellucidError, explain_error, unknown_name
from pellucid._target import QUANTITIES
from pellucid.bench.problems import Problems
from pellucid.bench.published import Published, published_table
from pellucid.bench.variables import filled

_PLANS = Path(__file__).parent / "plans"
_INPUTS = {"models": "load", "data": "read"}
_MAPS = {**_INPUTS, "methods": "method", "metrics": "metric"}
_WALKS = {**_INPUTS, "walks": "walk", "metrics": "metric"}
_LEAST = {"seed": 0, "chunk": 1, "batch_size": 1, "shown": 0, "repetitions": 1}
PREDICTED, LABEL = "predicted", "label"


@dataclass(frozen=True)
class Entry:
    """One model, data set, method or metric of a plan."""

    place: str  # for errors: [[methods]] 2
    name: str  # for tables
    what: str  # what is loaded, read or called
    options: Mapping[str, Any]
    models: tuple[str, ...] | None  # for which; None: for all

    def is_for(self, model: Entry) -> bool:
        """Whether it belongs with this model."""
        return self.models is None or model.name in self.models


@dataclass(frozen=True)
class Settings:
    """The table [study]."""

    seed: int = 0
    target: str | int = PREDICTED
    quantity: str | None = None  # of the target; None: what each method explains by itself
    chunk: int = 8  # samples of a unit
    batch_size: int = 8
    maps: bool = True  # whether scores are kept
    shown: int = 8  # samples of each data set that the report shows
    repetitions: int = 1  # of every walk
    published: tuple[str, ...] = ()  # tables of papers


@dataclass(frozen=True)
class Plan:
    """What a file says, in its own order; plain data."""

    name: str
    settings: Settings
    models: tuple[Entry, ...]
    data: tuple[Entry, ...]
    methods: tuple[Entry, ...]
    metrics: tuple[Entry, ...]
    walks: tuple[Entry, ...] = ()
    walking: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, Any] = field(default_factory=dict)
    source: str = field(default="", compare=False)  # the file itself, kept with the results

    @property
    def published(self) -> list[Published]:
        """The tables of papers that are shown beside the results."""
        return [published_table(name) for name in self.settings.published]


def plan_names() -> list[str]:
    """The plans that come with the package."""
    return sorted(path.stem for path in _PLANS.glob("*.toml"))


def plan_summary(name: str) -> str:
    """The first comment of a plan that comes with the package."""
    return (_PLANS / f"{name}.toml").read_text(encoding="utf-8").splitlines()[0].lstrip("# ")


def read_plan(path: str | Path, variables: Mapping[str, Any] | None = None) -> Plan:
    """Read a plan by its path, or by the name of one that comes with the package.

    `variables` are values for what the plan leaves open.
    """
    text, name = plan_text(path)
    return as_plan(_document(path, text), name, text, variables)


def plan_text(path: str | Path) -> tuple[str, str]:
    """The plan as it is written, and its name."""
    named = _PLANS / f"{path}.toml"
    source = named if str(path) in plan_names() else Path(path)
    try:
        return source.read_text(encoding="utf-8"), source.stem
    except OSError:
        raise _no_plan(str(path)) from None
    except UnicodeDecodeError as error:
        raise _not_toml(path, error) from None


def _document(path: str | Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _not_toml(path, error) from None


def _not_toml(path: str | Path, error: Exception) -> ArgumentError:
    return ArgumentError(
        explain_error(
            "this plan is not a TOML file",
            got=f"{path} ({error})",
            expected='lines such as load = "pellucid/digits-vit" under [[models]]',
            instead="`pellucid bench plans --show smoke-digits`, for one to start from",
        )
    )


def as_plan(
    document: Mapping[str, Any],
    name: str,
    source: str = "",
    variables: Mapping[str, Any] | None = None,
) -> Plan:
    """The plan that a TOML document says; everything that is wrong with it is said at once."""
    document, values = filled(document, variables or {})
    problems = Problems(name)
    kinds, single = (_WALKS, ["study", "walking"]) if "walks" in document else (_MAPS, ["study"])
    for key in document:
        with problems.at("the file"):
            if key not in {*single, *kinds}:
                known = [*(f"[{one}]" for one in single), *(f"[[{part}]]" for part in kinds)]
                raise ArgumentError(unknown_name("table", f"[{key}]", known, write="{}"))
    settings = _settings(document.get("study", {}), problems)
    walking = document.get("walking", {})
    with problems.at("[walking]"):
        if not isinstance(walking, Mapping):
            raise _wrong("a table", walking, "[walking]")
    parts = {
        part: _entries(document.get(part), part, verb, problems)
        for part, verb in kinds.items()
        if part in document or (kinds, part) != (_WALKS, "metrics")
    }
    models = {entry.name for entry in parts["models"]}
    for entry in (one for part, entries in parts.items() if part != "models" for one in entries):
        for model in entry.models or ():
            with problems.at(entry.place):
                if model not in models:
                    raise ArgumentError(
                        unknown_name("model", model, models, write="models = [{!r}]")
                    )
    problems.refuse_any()
    return Plan(
        name,
        settings,
        **{"methods": (), "metrics": (), **parts},
        walking=walking,
        variables=values,
        source=source,
    )


def _settings(table: Any, problems: Problems) -> Settings:
    place, known = "[study]", Settings.__dataclass_fields__
    with problems.at(place):
        if not isinstance(table, Mapping):
            raise _wrong("a table", table, "[study]")
    table = table if isinstance(table, Mapping) else {}
    for key in table:
        with problems.at(place):
            if key not in known:
                raise ArgumentError(unknown_name("setting", key, known, write="{} = ..."))
    for key, least in _LEAST.items():
        with problems.at(place):
            integer(key, table.get(key, known[key].default), least)
    with problems.at(place):
        if not isinstance(table.get("maps", True), bool):
            raise _wrong("true or false", table["maps"], "maps = false")
    with problems.at(place):
        target = table.get("target", PREDICTED)
        if isinstance(target, bool) or not isinstance(target, str | int):
            raise _wrong("'predicted', 'label' or a class", target, 'target = "label"')
    with problems.at(place):
        _check_quantity(table.get("quantity"), target)
    names = table.get("published", [])
    with problems.at(place):
        if not isinstance(names, list) or not all(isinstance(one, str) for one in names):
            raise _wrong("a list of names", names, 'published = ["tis: Table 1"]')
        for one in names:
            published_table(one)
    given = {key: value for key, value in table.items() if key in known}
    return Settings(**{**given, "published": tuple(map(str, names))})


def _check_quantity(quantity: Any, target: Any) -> None:
    if quantity is None:
        return
    if quantity not in QUANTITIES:
        raise ArgumentError(unknown_name("quantity", quantity, QUANTITIES, write="quantity = {!r}"))
    if target == LABEL:
        raise _wrong(
            "a quantity of the predicted class, or of one that is named",
            f"quantity {quantity!r} with target 'label'",
            'target = "predicted"',
        )


def _entries(tables: Any, part: str, verb: str, problems: Problems) -> tuple[Entry, ...]:
    """The entries of one part, each under a name of its own."""
    found: list[Entry] = []
    with problems.at(f"[[{part}]]"):
        if not isinstance(tables, list) or not tables:
            got = "nothing" if tables is None else f"{part} = {tables!r}"
            raise _wrong(f"at least one table [[{part}]]", got, f'[[{part}]]\n{verb} = "..."')
    for number, table in enumerate(tables if isinstance(tables, list) else [], 1):
        place = f"[[{part}]] {number}"
        with problems.at(place):
            found.append(_entry(table, place, verb))
    for name, times in Counter(entry.name for entry in found).items():
        with problems.at(f"[[{part}]]"):
            if times > 1:
                raise ArgumentError(
                    explain_error(
                        f"{times} entries have one name, so no table could tell them apart",
                        got=name,
                        expected="a name for each",
                        instead=f'name = "{name} (1)"',
                    )
                )
    return tuple(found)


def _entry(table: Any, place: str, verb: str) -> Entry:
    if not isinstance(table, Mapping) or not isinstance(table.get(verb), str):
        raise _wrong(f"{verb} and a name", table, f'{verb} = "..."')
    options = dict(table)
    what = options.pop(verb)
    name, models = options.pop("name", None), options.pop("models", None)
    if not (name is None or (isinstance(name, str) and name)):
        raise _wrong("a text", name, 'name = "..."')
    if not (models is None or (isinstance(models, list) and models)):
        raise _wrong("a list of the models' names", models, 'models = ["..."]')
    return Entry(place, name or _called(what, options, verb), what, options, _tuple(models))


def _called(what: str, options: Mapping[str, Any], verb: str) -> str:
    """What a table calls it: a model by its last name, the others by what they are given."""
    if verb == "load":
        return what.rstrip("/").rsplit("/", 1)[-1]
    shown = ", ".join(f"{name}={value!r}" for name, value in options.items() if name != "path")
    return f"{what}({shown})" if shown else what


def _tuple(models: list[str] | None) -> tuple[str, ...] | None:
    return None if models is None else tuple(map(str, models))


def _wrong(expected: str, got: Any, instead: str) -> PellucidError:
    return ArgumentError(
        explain_error("this cannot be read", got=repr(got), expected=expected, instead=instead)
    )


def _no_plan(name: str) -> ArgumentError:
    if "/" in name or name.endswith(".toml"):
        return ArgumentError(
            explain_error(
                "there is no such plan",
                got=name,
                expected="the path of a TOML file, or a name that `pellucid bench plans` lists",
                instead="pellucid bench run smoke-digits --out RUN",
            )
        )
    return ArgumentError(unknown_name("plan", name, plan_names(), write="{}"))
