"""Whether the rules of a walk go together: one question a function, each with its own error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

from pellucid._arguments import integer
from pellucid._errors import ArgumentError, explain_error, unknown_name
from pellucid.explorer.solvers import SOLVERS
from pellucid.explorer.strides import NAMES as STRIDES

if TYPE_CHECKING:
    from pellucid.explorer.settings import Settings

CORRECTED = ("persistent", "haar", "fixed", "away", "toward")  # directions that can be corrected
STAYING = (*CORRECTED, "eigenvector", "released")
LEAVING = ("uniform", "max", "weighted", "lift", "released")
OTHERS = ("trial", "gradient", "isotropic")
Metric = Literal["joint", "blocks"]
Allow = Literal["class", "nondecreasing", "degrowth"]
_DIRECTIONS = {
    "stay": (*STAYING, *OTHERS),
    "leave": (*LEAVING, "boundary", *OTHERS),
    "class": ("boundary", "lift", "uniform", "max", "weighted"),
}
_NOT_NEGATIVE = {"persistence": (1.0, 1.0), "absolute": (float("inf"), 0.0)}  # the most; default


def check(goal: str, found: Settings) -> None:
    """Raise the first thing that is wrong; `goal` is "stay", "leave" or "class"."""
    _check_names(goal, found)
    _check_numbers(found)
    if found.correct:
        _check_corrected(goal, found)
    _check_growing(goal, found)
    _check_aligned(found)
    _check_toward(found)


def is_number(value: Any) -> bool:
    """A number that is not a truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check_names(goal: str, found: Settings) -> None:
    _one_of("direction", found.direction, _DIRECTIONS[goal])
    _one_of("metric", found.metric, get_args(Metric))
    _one_of("solver", found.solver, tuple(SOLVERS))
    _one_of("sign", found.sign, ("persist", "random", "leave", "align"))
    _one_of("allow", found.allow, get_args(Allow))
    if found.step is not None and not is_number(found.step):
        _one_of("step", found.step, (*STRIDES, "a number"))


def _check_numbers(found: Settings) -> None:
    for name in ("scale", "longest", "tolerance", "zero", "growth"):
        value = getattr(found, name)
        if value is not None and not (is_number(value) and value > 0):
            raise ArgumentError(
                explain_error(
                    f"{name} is not a positive number",
                    got=f"{name}={value!r}",
                    expected="a number greater than zero",
                    instead=f"{name}=None",
                )
            )
    if found.top_k is not None:
        integer("top_k", found.top_k, 1, 10)
    for name, (most, default) in _NOT_NEGATIVE.items():
        value = getattr(found, name)
        if not (is_number(value) and 0 <= value <= most):
            raise ArgumentError(
                explain_error(
                    f"{name} is out of its range",
                    got=f"{name}={value!r}",
                    expected="a number from 0 to 1" if most == 1 else "a number of at least 0",
                    instead=f"{name}={default}",
                )
            )
    if is_number(found.step) and not float(found.step) > 0:  # type: ignore[arg-type]  # a number
        raise ArgumentError(
            explain_error(
                "a step needs a length",
                got=f"step={found.step!r}",
                expected="a number greater than zero, or " + ", ".join(STRIDES),
                instead="step=None",
            )
        )


def _check_corrected(goal: str, found: Settings) -> None:
    if goal != "stay" or found.metric != "joint" or found.solver != "euler":
        raise ArgumentError(
            explain_error(
                "this walk cannot be corrected",
                got=f"correct=True with goal={goal!r}, metric={found.metric!r}, "
                f"solver={found.solver!r}",
                expected="goal='stay', metric='joint', solver='euler'",
                instead="correct=None",
            )
        )
    if found.direction not in CORRECTED:
        raise ArgumentError(
            explain_error(
                "a step in this direction cannot be corrected",
                got=f"correct=True, direction={found.direction!r}",
                expected="one of " + ", ".join(CORRECTED),
                instead="correct=None",
            )
        )
    if isinstance(found.step, str):
        raise ArgumentError(
            explain_error(
                "a corrected walk finds the length of its steps itself",
                got=f"correct=True, step={found.step!r}",
                expected="step=None, or a number that no step exceeds",
                instead="step=None",
            )
        )


def _check_growing(goal: str, found: Settings) -> None:
    """Whether what is allowed besides the class goes with the rest."""
    if found.allow != "nondecreasing" and found.growth is not None:
        raise ArgumentError(
            explain_error(
                "this walk has no part of its own that grows",
                got=f"growth={found.growth!r} with allow={found.allow!r}",
                expected="allow='nondecreasing' with it",
                instead="growth=None",
            )
        )
    fitting = {"nondecreasing": CORRECTED, "degrowth": ("released",)}.get(found.allow, ())
    if fitting and (goal != "stay" or found.correct or found.direction not in fitting):
        raise ArgumentError(
            explain_error(
                "this walk cannot let the predicted class grow",
                got=f"allow={found.allow!r} with goal={goal!r}, direction={found.direction!r}, "
                f"correct={found.correct!r}",
                expected="goal='stay', correct=None and direction " + " or ".join(fitting),
                instead="allow='class'",
            )
        )


def _check_aligned(found: Settings) -> None:
    if found.sign == "align" and found.metric != "blocks":
        raise ArgumentError(
            explain_error(
                "one eigenvector has no others to be aligned with",
                got=f"sign='align' with metric={found.metric!r}",
                expected="metric='blocks', where every token has its own",
                instead="sign='persist'",
            )
        )


def _check_toward(found: Settings) -> None:
    if (found.direction == "toward") != (found.toward is not None):
        raise ArgumentError(
            explain_error(
                "a walk towards another input needs that input, and no other walk does",
                got=f"direction={found.direction!r}, toward={found.toward!r}",
                expected="direction='toward' and toward=another input, or neither",
                instead="direction='persistent'",
            )
        )


def _one_of(name: str, value: Any, names: tuple[str, ...]) -> None:
    if value not in names:
        raise ArgumentError(unknown_name(name, value, names, write=name + "={!r}"))
