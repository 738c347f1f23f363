"""What decides a walk, as plain values; the papers' own choices under their names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

from pellucid._arguments import integer
from pellucid._errors import ArgumentError, explain_error, unknown_name
from pellucid.explorer.solvers import SOLVERS
from pellucid.explorer.strides import NAMES as STRIDES

STAYING = ("persistent", "haar", "fixed", "away", "toward", "eigenvector", "released")
LEAVING = ("uniform", "max", "weighted", "lift", "released")
OTHERS = ("trial", "gradient", "isotropic")
Metric = Literal["joint", "blocks"]
Allow = Literal["class", "nondecreasing", "degrowth"]  # the last as the authors' code does


@dataclass(frozen=True)
class Settings:
    """One walk's rules. None is resolved by the goal and the model."""

    output: Any = None
    top_k: int | None = None
    metric: str = "joint"
    direction: str | None = None
    sign: str = "persist"
    persistence: float = 1.0
    toward: Any = None
    step: str | float | None = None
    scale: float | None = None
    longest: float | None = None
    solver: str = "euler"
    correct: bool | None = None
    tolerance: float | None = None
    within: Any = None
    zero: float | None = None
    absolute: float = 0.0
    allow: str = "class"
    growth: float | None = None

    def plain(self) -> dict[str, Any]:
        """The settings as a file keeps them."""
        given = {name: _named(getattr(self, name)) for name in ("output", "within", "toward")}
        return asdict(replace(self, **given))


PRESETS: dict[str, dict[str, Any]] = {
    "paper": {  # simec.txt, Algorithms 1 and 2 line by line
        "output": "logits",
        "metric": "joint",
        "correct": False,
        "step": "seed",
        "longest": float("inf"),
        "sign": "random",
    },
    "published": {  # the later version: its step rule, its box, blocks of single tokens
        "output": "logits",
        "metric": "blocks",
        "correct": False,
        "step": "published",
        "scale": 1.0,
        "longest": float("inf"),
        "sign": "random",
        "within": "bounds",
    },
    "released": {  # what the authors' code does: absolute threshold, rounded index, smallest of all
        "output": "logits",
        "metric": "blocks",
        "correct": False,
        "step": "official",
        "scale": 1.0,
        "longest": float("inf"),
        "direction": "released",
        "absolute": 0.01,
        "sign": "random",
    },
}
_BY_GOAL: dict[str, dict[str, dict[str, Any]]] = {
    "paper": {"stay": {"direction": "haar", "scale": 1.0}, "leave": {"scale": 2.0}},
    "published": {"stay": {"direction": "haar"}},
}


def resolve(goal: str, preset: str | None, given: Mapping[str, Any]) -> Settings:
    """The settings of a walk: what was given, over the preset, over the defaults of the goal.

    `goal` is "stay", "leave", or "class".
    """
    known = {found.name for found in fields(Settings)}
    for name in given:
        if name not in known:
            raise ArgumentError(unknown_name("parameter of explore:", name, known, write="{}=..."))
    chosen: dict[str, Any] = {}
    if preset is not None:
        if preset not in PRESETS:
            raise ArgumentError(unknown_name("preset", preset, PRESETS, write="preset={!r}"))
        if goal == "class":
            raise ArgumentError(
                explain_error(
                    "the papers' presets do not walk to a class",
                    got=f"preset={preset!r} with a class as goal",
                    expected="goal='stay' or goal='leave'",
                    instead="preset=None",
                )
            )
        chosen = PRESETS[preset] | _BY_GOAL.get(preset, {}).get(goal, {})
    chosen |= {name: value for name, value in given.items() if value is not None}
    return _completed(goal, Settings(**chosen))


def _completed(goal: str, found: Settings) -> Settings:
    """Defaults that depend on each other, then the checks."""
    if found.direction is None:
        default = {"stay": "persistent", "leave": "uniform", "class": "boundary"}[goal]
        found = replace(found, direction=default)
    if found.correct is None:
        plain = found.step is None or _is_number(found.step)
        mild = found.solver == "euler" and found.metric == "joint" and found.allow == "class"
        corrected = found.direction in STAYING[:5] and plain and mild
        found = replace(found, correct=goal == "stay" and corrected)
    if found.step is None and not found.correct:
        found = replace(found, step="relative" if found.direction in OTHERS else "seed")
    if found.scale is None:
        scale = {"relative": 0.01}.get(str(found.step), 1.0 if goal == "stay" else 2.0)
        found = replace(found, scale=scale)
    _check(goal, found)
    return found


def _check(goal: str, found: Settings) -> None:
    directions = {
        "stay": (*STAYING, *OTHERS),
        "leave": (*LEAVING, "boundary", *OTHERS),
        "class": ("boundary", "lift", "uniform", "max", "weighted"),
    }[goal]
    steps = (*STRIDES, "a number")
    _one_of("direction", found.direction, directions)
    _one_of("metric", found.metric, get_args(Metric))
    _one_of("solver", found.solver, tuple(SOLVERS))
    _one_of("sign", found.sign, ("persist", "random", "leave", "align"))
    _one_of("allow", found.allow, get_args(Allow))
    if found.step is not None and not _is_number(found.step):
        _one_of("step", found.step, steps)
    for name in ("scale", "longest", "tolerance", "zero", "growth"):
        value = getattr(found, name)
        if value is not None and not (_is_number(value) and value > 0):
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
    for name, most in (("persistence", 1.0), ("absolute", float("inf"))):
        value = getattr(found, name)
        if not (_is_number(value) and 0 <= value <= most):
            raise ArgumentError(
                explain_error(
                    f"{name} is out of its range",
                    got=f"{name}={value!r}",
                    expected="a number from 0 to 1" if most == 1 else "a number of at least 0",
                    instead=f"{name}={getattr(Settings(), name)}",
                )
            )
    if _is_number(found.step) and not float(found.step) > 0:  # type: ignore[arg-type]  # a number
        raise ArgumentError(
            explain_error(
                "a step needs a length",
                got=f"step={found.step!r}",
                expected="a number greater than zero, or " + ", ".join(STRIDES),
                instead="step=None",
            )
        )
    if found.correct and (goal != "stay" or found.metric != "joint" or found.solver != "euler"):
        raise ArgumentError(
            explain_error(
                "this walk cannot be corrected",
                got=f"correct=True with goal={goal!r}, metric={found.metric!r}, "
                f"solver={found.solver!r}",
                expected="goal='stay', metric='joint', solver='euler'",
                instead="correct=None",
            )
        )
    if found.correct and found.direction not in STAYING[:5]:
        raise ArgumentError(
            explain_error(
                "a step in this direction cannot be corrected",
                got=f"correct=True, direction={found.direction!r}",
                expected="one of " + ", ".join(STAYING[:5]),
                instead="correct=None",
            )
        )
    if found.correct and isinstance(found.step, str):
        raise ArgumentError(
            explain_error(
                "a corrected walk finds the length of its steps itself",
                got=f"correct=True, step={found.step!r}",
                expected="step=None, or a number that no step exceeds",
                instead="step=None",
            )
        )
    _check_growing(goal, found)
    if found.sign == "align" and found.metric != "blocks":
        raise ArgumentError(
            explain_error(
                "one eigenvector has no others to be aligned with",
                got=f"sign='align' with metric={found.metric!r}",
                expected="metric='blocks', where every token has its own",
                instead="sign='persist'",
            )
        )
    if (found.direction == "toward") != (found.toward is not None):
        raise ArgumentError(
            explain_error(
                "a walk towards another input needs that input, and no other walk does",
                got=f"direction={found.direction!r}, toward={found.toward!r}",
                expected="direction='toward' and toward=another input, or neither",
                instead="direction='persistent'",
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
    fitting = {"nondecreasing": STAYING[:5], "degrowth": ("released",)}.get(found.allow, ())
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


def _one_of(name: str, value: Any, names: tuple[str, ...]) -> None:
    if value not in names:
        raise ArgumentError(unknown_name(name, value, names, write=name + "={!r}"))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _named(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, tuple | Path):
        return str(value)
    if hasattr(value, "describe"):
        return value.describe()
    return getattr(value, "name", None) or type(value).__name__
