"""What decides a walk, as plain values; the papers' own choices under their names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from pellucid._errors import ArgumentError, explain_error, unknown_name
from pellucid.explorer.checks import CORRECTED, OTHERS, check, is_number


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
        plain = found.step is None or is_number(found.step)
        mild = found.solver == "euler" and found.metric == "joint" and found.allow == "class"
        corrected = found.direction in CORRECTED and plain and mild
        found = replace(found, correct=goal == "stay" and corrected)
    if found.step is None and not found.correct:
        found = replace(found, step="relative" if found.direction in OTHERS else "seed")
    if found.scale is None:
        scale = {"relative": 0.01}.get(str(found.step), 1.0 if goal == "stay" else 2.0)
        found = replace(found, scale=scale)
    check(goal, found)
    return found


def _named(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, tuple | Path):
        return str(value)
    if hasattr(value, "describe"):
        return value.describe()
    return getattr(value, "name", None) or type(value).__name__
