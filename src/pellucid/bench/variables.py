"""What a plan leaves open: names with a meaning, and the values that are given for them.

[variables.model]
about = "a classifier of pictures"
default = "pellucid/digits-vit"  # without one, a value has to be given

[[models]]
load = "$model"                  # becomes the value, of whatever type it is
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from typing import Any

from pellucid._errors import ArgumentError, explain_error, unknown_name

_MARK = "$"


def assignments(given: Iterable[str]) -> dict[str, Any]:
    """`name=value` as a shell passes them; a value that is no TOML is a text."""
    found: dict[str, Any] = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not name or not equals:
            raise ArgumentError(
                explain_error(
                    "a variable of a plan is set by its name",
                    got=f"--set {one}",
                    expected="a name, an equals sign and a value",
                    instead="--set model=pellucid/digits-vit",
                )
            )
        found[name] = _value(value)
    return found


def filled(
    document: Mapping[str, Any], given: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The plan with every variable replaced, and what they stand for."""
    document = dict(document)
    declared = _declared(document.pop("variables", {}))
    for name in given:
        if name not in declared:
            raise ArgumentError(
                unknown_name("variable of this plan", name, declared, write="--set {}=...")
            )
    values = {name: one["default"] for name, one in declared.items() if "default" in one}
    values |= given
    missing = {name: one["about"] for name, one in declared.items() if name not in values}
    if missing:
        raise ArgumentError(
            explain_error(
                "this plan leaves open what only you can say",
                got="no value for " + "; ".join(f"{n} ({about})" for n, about in missing.items()),
                expected="a value for each",
                instead=" ".join(f"--set {name}=..." for name in missing),
            )
        )
    return {key: _replaced(part, values) for key, part in document.items()}, values


def open_variables(document: Mapping[str, Any]) -> dict[str, str]:
    """What has to be given, and what it means."""
    declared = _declared(document.get("variables", {}))
    return {name: one["about"] for name, one in declared.items() if "default" not in one}


def _declared(tables: Any) -> Mapping[str, Mapping[str, Any]]:
    fine = isinstance(tables, Mapping) and all(
        isinstance(one, Mapping)
        and isinstance(one.get("about"), str)
        and set(one) <= {"about", "default"}
        for one in tables.values()
    )
    if not fine:
        raise ArgumentError(
            explain_error(
                "the variables of this plan cannot be read",
                got=f"variables = {tables!r}",
                expected="a table for each, with about and perhaps default",
                instead='[variables.model]\nabout = "a classifier of pictures"',
            )
        )
    return tables  # type: ignore[no-any-return]


def _replaced(part: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(part, Mapping):
        return {key: _replaced(one, values) for key, one in part.items()}
    if isinstance(part, list):
        return [_replaced(one, values) for one in part]
    if isinstance(part, str) and part.startswith(_MARK):
        name = part.removeprefix(_MARK)
        if name not in values:
            raise ArgumentError(
                unknown_name("variable of this plan", name, values, write=_MARK + "{}")
            )
        return values[name]
    return part


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
