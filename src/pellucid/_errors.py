"""Every error that pellucid raises on purpose.

    PellucidError
    ├── ArgumentError (ValueError)            a name or a value that no function here knows
    ├── InputError (ValueError)               a text or an image that cannot be explained
    ├── ModelError (ValueError)               a model that cannot be loaded or run
    ├── UnsupportedCombination (ValueError)   this method or metric, on this model
    ├── StoreError (ValueError)               a file that cannot be read or written
    ├── NumericalError (RuntimeError)         NaN or infinity where a number was due
    ├── BudgetExceeded (RuntimeError)         more model evaluations, or time, than were allowed
    └── StudyError (RuntimeError)             a study that cannot go on

Every message says what failed, what was got, what was expected and what to type instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class PellucidError(Exception):
    """The root: ``except pellucid.PellucidError`` catches all of them."""


class ArgumentError(PellucidError, ValueError):
    """An argument has a name or a value that is not known here."""


class InputError(PellucidError, ValueError):
    """The text or image given cannot be explained as it is."""


class ModelError(PellucidError, ValueError):
    """The model cannot be loaded, or is not in a state in which it can be explained."""


class UnsupportedCombination(PellucidError, ValueError):
    """The method or metric needs something that this model does not offer."""


class StoreError(PellucidError, ValueError):
    """A file could not be read or written."""


class NumericalError(PellucidError, RuntimeError):
    """A number that should be finite is not."""


class BudgetExceeded(PellucidError, RuntimeError):
    """The method would need more model evaluations, or time, than it was allowed."""


class StudyError(PellucidError, RuntimeError):
    """The study cannot go on; what it has found is kept."""


def explain_error(what: str, *, got: object = None, expected: str = "", instead: str = "") -> str:
    """The message of an error in the one shape that all of them share."""
    lines = [what]
    if got is not None:
        lines.append(f"  got:      {got}")
    if expected:
        lines.append(f"  expected: {expected}")
    if instead:
        lines.append(f"  instead:  {instead}")
    return "\n".join(lines)


def unknown_name(what: str, got: object, names: Iterable[str], *, write: str = "{!r}") -> str:
    """The message for a name that is not in a list: the nearest ones first.

    `write` is the line to type, with a place for the right name: ``"method={!r}"``.
    """
    known = sorted(names)
    folded = {name.lower(): name for name in known}
    near = [folded[n] for n in get_close_matches(str(got).lower(), folded, n=3, cutoff=0.5)]
    guess = f": did you mean {' or '.join(map(repr, near))}?" if near else ""
    shown = ", ".join(known[:20]) + (f", ... ({len(known)} in all)" if len(known) > 20 else "")
    instead = write.format((near or known)[0]) if known else f"leave {got!r} out"
    return explain_error(
        f"unknown {what} {got!r}{guess}",
        got=repr(got),
        expected=f"one of: {shown}" if known else "nothing: none is accepted here",
        instead=instead,
    )
