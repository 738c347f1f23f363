"""Checks of numbers that users pass, whatever library's integers or floats they are."""

from __future__ import annotations

import math
import operator
from typing import Any

from pellucid._errors import ArgumentError, explain_error


def integer(name: str, value: Any, least: int, example: int | None = None) -> int:
    """The value as an integer of at least `least`."""
    try:
        found = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        found = None
    if found is None or found < least:
        raise ArgumentError(
            explain_error(
                f"{name} is not a number that can be used",
                got=f"{name}={value!r}",
                expected=f"an integer of at least {least}",
                instead=f"{name}={least if example is None else example}",
            )
        )
    return found


def real(name: str, value: Any, example: float = 0.5) -> float:
    """The value as a finite number."""
    try:
        found = math.nan if isinstance(value, bool | str) else float(value)
    except (TypeError, ValueError):
        found = math.nan
    if not math.isfinite(found):
        raise ArgumentError(
            explain_error(
                f"{name} is not a number",
                got=f"{name}={value!r}",
                expected="a finite number",
                instead=f"{name}={example}",
            )
        )
    return found


def position(name: str, value: Any, many: int, what: str = "block") -> int:
    """The number of one of so many blocks or heads; a negative one counts from the end."""
    found = integer(name, value, -(10**9), 0)
    if not -many <= found < many:
        raise ArgumentError(
            explain_error(
                f"the model has no such {what}",
                got=f"{name}={value!r}",
                expected=f"a number from 0 to {many - 1}, or from -{many} to -1, from the end",
                instead=f"{name}=0",
            )
        )
    return found % many
