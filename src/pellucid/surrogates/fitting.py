"""From sequences and scores to a SLALOM: settings, presets, and the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from pellucid._arguments import integer, real
from pellucid._errors import ArgumentError, InputError, explain_error, unknown_name
from pellucid.surrogates.adam import adam
from pellucid.surrogates.alternating import alternating
from pellucid.surrogates.counts import (
    Unit,
    Units,
    count,
    row_weights,
    score_table,
    shares,
    units_of,
)
from pellucid.surrogates.gauss_newton import gauss_newton, resolution
from pellucid.surrogates.report import Report
from pellucid.surrogates.uncertainty import standard_errors

SOLVERS = ("gauss_newton", "adam", "alternating")


@dataclass(frozen=True)
class Settings:
    """How a SLALOM is fitted. Priors do not depend on the scale of the scores."""

    solver: Literal["gauss_newton", "adam", "alternating"] = "gauss_newton"
    special: Units = ()  # members of every sequence
    units: Units | None = None  # all that may occur; those of the sequences, if None
    weights: Any = None  # how often each sequence was drawn
    empty: float | None = None  # F of nothing; the mean score of empty sequences, or 0, if None
    value_prior: float = 1e-8
    importance_prior: float = 1e-8
    steps: int = 100  # of gauss_newton
    start: Any = None  # importances that gauss_newton begins at, one a unit; zeros, if None
    rate: float = 5e-3  # of adam, as its batch and epochs
    batch: int = 128
    epochs: int = 60
    rounds: int = 20  # of alternating
    reweight: bool = False  # divide out what the published importance step multiplies in
    polish: bool = False  # gauss_newton from where another solver ended
    held_out: float = 0.0  # the part of the sequences that only measures
    diagnose: bool = True  # standard errors and what is identified
    seed: int = 0


PRESETS = {
    "default": Settings(),
    "eff": Settings(solver="adam"),
    "fidel": Settings(solver="alternating"),
}


def settings_of(preset: str, **changes: Any) -> Settings:
    """The settings of a preset with some of them changed, checked."""
    if preset not in PRESETS:
        raise ArgumentError(unknown_name("preset", preset, PRESETS, write="preset={!r}"))
    names = [field.name for field in fields(Settings)]
    for name in changes:
        if name not in names:
            raise ArgumentError(unknown_name("setting", name, names, write="{}=..."))
    found = replace(PRESETS[preset], **changes)
    if found.solver not in SOLVERS:
        raise ArgumentError(unknown_name("solver", found.solver, SOLVERS, write="solver={!r}"))
    for name in ("steps", "batch", "epochs", "rounds"):
        integer(name, getattr(found, name), 1)
    ranges = {"value_prior": 1e300, "importance_prior": 1e300, "held_out": 0.9, "rate": 1e300}
    for name, most in ranges.items():
        value = getattr(found, name)
        if not 0 <= real(name, value) <= most:
            raise ArgumentError(
                explain_error(
                    f"{name} is out of its range",
                    got=f"{name}={value!r}",
                    expected="at least 0" + (f" and at most {most}" if most < 1 else ""),
                    instead=f"{name}={getattr(PRESETS[preset], name)}",
                )
            )
    return found


def fitted(sequences: Sequence[Sequence[Unit]], scores: Any, settings: Settings) -> dict[str, Any]:
    """The fields of the SLALOM that fits these scores."""
    given = score_table(scores, len(sequences))
    target = given.reshape(len(given), -1)  # b c
    weights = row_weights(settings.weights, len(sequences))
    seen = units_of(sequences) if settings.units is None else settings.units
    units = tuple(dict.fromkeys((*seen, *settings.special)))
    rows = _Rows(count(sequences, units) + count([settings.special], units), target, weights)
    generator = torch.Generator().manual_seed(settings.seed)
    used, rest = _split(rows, settings.held_out, generator)
    drawn = len(rows.counts) if settings.weights is None else float(sum(settings.weights))
    copies = drawn * len(used.counts) / len(rows.counts)
    value, importance, steps = _solve(used, copies, settings, generator)
    importance = importance - importance.mean()
    report = _report(used, rest, value, importance, steps)
    shape = given.shape[1:]  # of a row: a number, or c
    found = {
        "units": units,
        "value": value.reshape(-1, *shape),
        "importance": importance,
        "special": tuple(settings.special),
        "empty": _empty(settings, rows).reshape(shape),
        "report": report,
    }
    if not settings.diagnose:
        return found
    told = standard_errors(used.counts, used.target, used.weights, value, importance)
    part = resolution(
        *used,
        value,
        importance,
        value_prior=settings.value_prior,
        importance_prior=settings.importance_prior,
    )
    report = replace(
        report,
        resolution=part,
        value_error=told.value.reshape(-1, *shape),
        importance_error=told.importance,
        smallest=told.smallest,
    )
    return {**found, "report": report, "identified": told.identified}


class _Rows(NamedTuple):
    """What is fitted: one row a sequence."""

    counts: Tensor  # b u
    target: Tensor  # b c
    weights: Tensor  # b

    def take(self, which: Tensor) -> _Rows:
        return _Rows(self.counts[which], self.target[which], self.weights[which])

    def mse(self, value: Tensor, importance: Tensor) -> float:
        error = shares(self.counts, importance) @ value - self.target
        return float(self.weights @ error.square().mean(dim=1) / self.weights.sum())


def _split(rows: _Rows, held_out: float, generator: torch.Generator) -> tuple[_Rows, _Rows]:
    """Rows to fit, with weights that sum to one, and rows that only measure."""
    usable = rows.counts.any(dim=1) & (rows.weights > 0)
    drawn = torch.rand(len(usable), generator=generator) >= held_out
    used = rows.take(usable & drawn)
    if not len(used.counts):
        raise InputError(
            explain_error(
                "no sequence is left to fit",
                got=f"{len(usable)} sequences, {int(usable.sum())} of them not empty",
                expected="at least one sequence with a member that is not held out",
                instead="give sequences of one or two units too, and held_out=0.0",
            )
        )
    return used._replace(weights=used.weights / used.weights.sum()), rows.take(usable & ~drawn)


def _empty(settings: Settings, rows: _Rows) -> Tensor:
    """The output for nothing (c)."""
    if settings.empty is not None:
        return torch.full_like(rows.target[0], real("empty", settings.empty))
    nothing = rows.weights * ~rows.counts.any(dim=1)
    return nothing @ rows.target / nothing.sum().clamp(min=1e-300)


def _solve(
    rows: _Rows, copies: float, how: Settings, generator: torch.Generator
) -> tuple[Tensor, Tensor, int]:
    """Values (u c), importances (u) and the number of steps."""
    value, start, before = None, how.start, 0
    if how.solver == "adam":
        pool = max(1, round(copies))
        value, start, before = adam(
            *rows, generator, pool=pool, rate=how.rate, batch=how.batch, epochs=how.epochs
        )
    elif how.solver == "alternating":
        value, start, before = alternating(*rows, rounds=how.rounds, reweight=how.reweight)
    if value is not None and not how.polish:
        return value, start, before
    value, importance, steps = gauss_newton(
        *rows,
        value_prior=how.value_prior,
        importance_prior=how.importance_prior,
        steps=how.steps,
        start=start,
    )
    return value, importance, before + steps


def _report(used: _Rows, rest: _Rows, value: Tensor, importance: Tensor, steps: int) -> Report:
    mse = used.mse(value, importance)
    spread = float((used.weights @ (used.target - used.weights @ used.target).square()).mean())
    r2 = 1 - mse / spread if spread > 0 else float(mse == 0)
    return Report(mse, r2, rest.mse(value, importance) if len(rest.counts) else None, steps)
