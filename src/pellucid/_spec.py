"""How a method or a metric is declared: a function, with what it needs said beside it as data.

The decorators register nothing. What exists is listed in `pellucid.methods.METHODS` and
`pellucid.metrics.METRICS`; a function of the same shape that is in no list works as well.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, get_args, get_origin, get_type_hints

from pellucid._arguments import integer, real
from pellucid._errors import ArgumentError, explain_error, unknown_name
from pellucid._needs import Needs
from pellucid._target import Quantity

Better = Literal["higher", "lower"]
TruthKind = Literal["mask", "label", "rationale", "attention"]
Reads = Quantity | Literal["explained"]
_BOTH = ("text", "image")


@dataclass(frozen=True)
class Method:
    """An explanation method: ``function(case, **parameters)`` gives one score a token or pixel."""

    function: Callable[..., Any]
    name: str
    needs: Needs
    cite: tuple[str, ...]
    signed: bool
    kinds: tuple[str, ...] = _BOTH
    explains: Quantity = "logit"  # the quantity where the user names none
    class_specific: bool = True
    presets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    quick: Mapping[str, Any] = field(default_factory=dict)
    declared: bool = True  # False: a plain function, which finds out what it needs as it asks
    role: Literal["method"] = "method"

    def __call__(self, case: Any, **parameters: Any) -> Any:
        return self.function(case, **parameters)

    @property
    def summary(self) -> str:
        """The first line of the docstring."""
        return _summary(self.function)


@dataclass(frozen=True)
class Metric:
    """A measure: ``function(case, explanations, **parameters)`` gives one number each.

    One that needs to know more than the model does takes it, one an explanation, after them.
    """

    function: Callable[..., Any]
    name: str
    needs: Needs
    cite: tuple[str, ...]
    better: Better
    family: str
    kinds: tuple[str, ...] = _BOTH
    presets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    truth: TruthKind | None = None  # what it compares with, besides the model
    reads: Reads = "probability"  # the number of the class that a case's score is
    pool: Callable[[Mapping[str, int]], float | None] | None = None  # from counts to the number
    absolute: bool = False  # twice the scores are another explanation
    quick: Mapping[str, Any] = field(default_factory=dict)
    role: Literal["metric"] = "metric"

    def __call__(self, case: Any, explanations: Any, *truths: Any, **parameters: Any) -> Any:
        return self.function(case, explanations, *truths, **parameters)

    @property
    def summary(self) -> str:
        """The first line of the docstring."""
        return _summary(self.function)


@dataclass(frozen=True)
class WalkMetric:
    """A measure of walks: ``function(evidence, **parameters)`` gives a `WalkMeasured`.

    No model runs: `Evidence` is a walk and what was decoded from it. Walks that stay and walks that
    leave are not good for the same reasons, so each has its direction, or none.
    """

    function: Callable[..., Any]
    name: str
    cite: tuple[str, ...]
    stay: Better | None
    leave: Better | None
    kinds: tuple[str, ...] = _BOTH
    presets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    role: Literal["metric of walks"] = "metric of walks"

    def __call__(self, evidence: Any, **parameters: Any) -> Any:
        return self.function(evidence, **parameters)

    @property
    def summary(self) -> str:
        """The first line of the docstring."""
        return _summary(self.function)


def method(
    *,
    needs: Needs,
    cite: str | tuple[str, ...] = (),
    signed: bool,
    kinds: tuple[str, ...] = _BOTH,
    explains: Quantity = "logit",
    class_specific: bool = True,
    presets: Mapping[str, Mapping[str, Any]] | None = None,
    quick: Mapping[str, Any] | None = None,
) -> Callable[[Callable[..., Any]], Method]:
    """Declare a method. `signed`: whether a negative score speaks against the target.

    `presets` are named sets of parameters, such as a paper's own: ``explain(..., preset="tis")``.
    `quick` are parameters that make it cheap, with which the contract is tested.
    """

    def declare(function: Callable[..., Any]) -> Method:
        return Method(
            function,
            function.__name__,
            needs,
            _as_tuple(cite),
            signed,
            kinds,
            explains,
            class_specific,
            presets or {},
            quick or {},
        )

    return declare


def metric(
    *,
    needs: Needs = Needs.NOTHING,
    cite: str | tuple[str, ...] = (),
    better: Better,
    family: str,
    kinds: tuple[str, ...] = _BOTH,
    presets: Mapping[str, Mapping[str, Any]] | None = None,
    truth: TruthKind | None = None,
    reads: Reads = "probability",
    pool: Callable[[Mapping[str, int]], float | None] | None = None,
    absolute: bool = False,
    quick: Mapping[str, Any] | None = None,
) -> Callable[[Callable[..., Any]], Metric]:
    """Declare a metric. `better` says in which direction it improves.

    `truth` is what it needs besides the model: the "mask" of the object, the right "label", a
    "rationale" or the "attention" of people. `reads` is the number of the class that it looks at,
    or the one that was "explained". A metric of a whole data set gives `pool`, which makes the
    number from the sum of all counts. `quick` are parameters with which the contract is tested.
    """

    def declare(function: Callable[..., Any]) -> Metric:
        return Metric(
            function,
            function.__name__,
            needs,
            _as_tuple(cite),
            better,
            family,
            kinds,
            presets or {},
            truth,
            reads,
            pool,
            absolute,
            quick or {},
        )

    return declare


def walk_metric(
    *,
    cite: str | tuple[str, ...],
    stay: Better | None,
    leave: Better | None,
    kinds: tuple[str, ...] = _BOTH,
) -> Callable[[Callable[..., Any]], WalkMetric]:
    """Declare a metric of walks. `stay` and `leave` say which numbers speak for such a walk."""

    def declare(function: Callable[..., Any]) -> WalkMetric:
        return WalkMetric(function, function.__name__, _as_tuple(cite), stay, leave, kinds)

    return declare


def bound_parameters(
    spec: Method | Metric | WalkMetric, given: Mapping[str, Any]
) -> dict[str, Any]:
    """All parameters of a method or metric with their values; an unknown name is an error.

    ``preset="name"`` stands for the parameters of that preset, which the others override.
    """
    given = _with_preset(spec, given)
    skipped = 2 + (spec.truth is not None) if spec.role == "metric" else 1
    names = list(inspect.signature(spec.function).parameters.values())[skipped:]
    known = {p.name: p for p in names if p.kind is not inspect.Parameter.VAR_KEYWORD}
    open_ended = len(known) < len(names)
    for name in given:
        if name not in known and not open_ended:
            what = f"parameter of {spec.role} {spec.name!r}:"
            raise ArgumentError(unknown_name(what, name, known, write="{}=..."))
    missing = [p for p in known.values() if p.default is p.empty and p.name not in given]
    if missing:
        raise ArgumentError(
            explain_error(
                f"{spec.role} {spec.name!r} needs a parameter",
                got=", ".join(f"{name}={value!r}" for name, value in given.items()) or "none",
                expected=", ".join(p.name for p in missing),
                instead=f"{missing[0].name}=...",
            )
        )
    _check_choices(spec, given)
    return {name: p.default for name, p in known.items()} | dict(given)


def _with_preset(spec: Method | Metric | WalkMetric, given: Mapping[str, Any]) -> dict[str, Any]:
    chosen = dict(given)
    name = chosen.pop("preset", None)
    if name is None:
        return chosen
    if name not in spec.presets:
        what = f"preset of {spec.role} {spec.name!r}:"
        raise ArgumentError(unknown_name(what, name, spec.presets, write="preset={!r}"))
    return {**spec.presets[name], **chosen}


def _check_choices(spec: Method | Metric | WalkMetric, given: Mapping[str, Any]) -> None:
    """A Literal takes one of its values, an int an integer, a float a finite number."""
    hints = get_type_hints(spec.function) if given else {}
    for name, value in given.items():
        if hints.get(name) is int:
            integer(name, value, -(10**9), 1)
        elif hints.get(name) is float:
            real(name, value)
        choices = get_args(hints.get(name)) if get_origin(hints.get(name)) is Literal else ()
        if choices and value not in choices:
            raise ArgumentError(
                explain_error(
                    f"{spec.role} {spec.name!r} has no such choice",
                    got=f"{name}={value!r}",
                    expected=f"one of {', '.join(map(repr, choices))}",
                    instead=f"{name}={choices[0]!r}",
                )
            )


def as_method(found: Any, table: Mapping[str, Method]) -> tuple[Method, dict[str, Any]]:
    """A method given by name, as an object, a plain function or a partial, with its settings."""
    if isinstance(found, str):
        if found not in table:
            raise ArgumentError(unknown_name("method", found, table, write="method={!r}"))
        return table[found], {}
    if isinstance(found, partial):
        inner, settings = as_method(found.func, table)
        return inner, settings | dict(found.keywords)
    if isinstance(found, Method):
        return found, {}
    if callable(found):
        name = getattr(found, "__name__", type(found).__name__)
        return Method(found, name, Needs.NOTHING, (), signed=True, declared=False), {}
    raise ArgumentError(
        explain_error(
            "this is not a method",
            got=repr(found),
            expected="a name, or a function of a pellucid.Case",
            instead="method='rollout'",
        )
    )


def as_metric(found: Any, table: Mapping[str, Metric]) -> tuple[Metric, dict[str, Any]]:
    """A metric given by name, as an object or as a partial of one, with its settings."""
    if isinstance(found, partial):
        inner, settings = as_metric(found.func, table)
        return inner, settings | dict(found.keywords)
    if isinstance(found, Metric):
        return found, {}
    if not isinstance(found, str) or found not in table:
        raise ArgumentError(unknown_name("metric", found, table, write="metric={!r}"))
    return table[found], {}


def _as_tuple(cite: str | tuple[str, ...]) -> tuple[str, ...]:
    return (cite,) if isinstance(cite, str) else cite


def _summary(function: Callable[..., Any]) -> str:
    return (inspect.getdoc(function) or "").split("\n", 1)[0]
