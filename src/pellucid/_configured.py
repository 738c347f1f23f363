"""A method or a metric with its parameters, as a person names it in a list of several."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pellucid._errors import ArgumentError, explain_error
from pellucid._spec import Method, Metric, bound_parameters

Spec = TypeVar("Spec", Method, Metric)


@dataclass(frozen=True)
class Configured(Generic[Spec]):
    """A method or metric, all of its parameters, and the name that tells it from the others."""

    spec: Spec
    params: Mapping[str, Any]
    label: str  # the name, and the parameters that were given


def configured(
    given: Any,
    table: Mapping[str, Spec],
    read: Callable[[Any, Mapping[str, Spec]], tuple[Spec, dict[str, Any]]],
) -> Configured[Spec]:
    """One of a list: a name, an object, a function, a partial, or a pair of it and parameters."""
    pair = isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], Mapping)
    found, more = given if pair else (given, {})
    spec, settings = read(found, table)
    settings = settings | dict(more)
    shown = ", ".join(f"{name}={value!r}" for name, value in settings.items())
    label = f"{spec.name}({shown})" if settings else spec.name
    return Configured(spec, bound_parameters(spec, settings), label)


def all_configured(
    given: Any,
    role: str,
    table: Mapping[str, Spec],
    read: Callable[[Any, Mapping[str, Spec]], tuple[Spec, dict[str, Any]]],
) -> list[Configured[Spec]]:
    """Several of them, each under a label of its own."""
    several = isinstance(given, Sequence) and not isinstance(given, str)
    if not several or not given:
        raise ArgumentError(
            explain_error(
                f"which {role}s?",
                got=f"{role}s={given!r}",
                expected="a list of names, functions, or pairs of such and their parameters",
                instead=f"{role}s={list(table)[:2]!r}",
            )
        )
    found = [configured(one, table, read) for one in given]
    labels = [one.label for one in found]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise ArgumentError(
            explain_error(
                f"two {role}s have one name",
                got=f"{twice[0]} {labels.count(twice[0])} times",
                expected=f"{role}s that differ by name or by parameters",
                instead=f"{role}s={list(dict.fromkeys(labels))!r}",
            )
        )
    return found
