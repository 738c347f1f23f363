"""`--tokens`: which tokens a walk moves, as one typed word."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pellucid import ArgumentError

HELP = "Positions, words, /pattern/, top:5, above:0.5, rect:top,left,bottom,right, or all."


def parse_tokens(written: str | None) -> Any:
    """What `explore` takes as its `tokens`."""
    from pellucid import Above, Rectangle, Top

    if written is None or written == "all":
        return written
    if len(written) > 2 and written[0] == written[-1] == "/":
        return _pattern(written)
    name, _, values = written.partition(":")
    try:
        if name == "top":
            return Top(int(values))
        if name == "above":
            return Above(float(values))
        if name == "rect":
            top, left, bottom, right = (int(value) for value in values.split(","))
            return Rectangle(top, left, bottom, right)
    except ValueError as error:
        raise _unclear(written, str(error)) from None
    several = [one.strip() for one in written.split(",") if one.strip()]
    if not several:
        raise _unclear(written, "nothing is named")
    return [int(one) if one.isdecimal() else one for one in several]


def _pattern(written: str) -> re.Pattern[str]:
    try:
        return re.compile(written[1:-1])
    except re.error as error:
        raise _unclear(written, f"no pattern: {error}") from None


def _unclear(written: str, why: str) -> ArgumentError:
    from pellucid import ArgumentError
    from pellucid._errors import explain_error

    return ArgumentError(
        explain_error(
            "this does not say which tokens are to move",
            got=f"--tokens {written!r} ({why})",
            expected="positions or words with commas, /pattern/, top:5, above:0.5, "
            "rect:top,left,bottom,right or all",
            instead="--tokens 2,3 or --tokens top:5",
        )
    )
