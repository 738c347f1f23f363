"""From the samples of one input to its SLALOM, and from that to numbers for its tokens."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from pellucid.methods._token_groups import Player
from pellucid.surrogates import Crossed, Slalom, crossed
from pellucid.surrogates.slalom import Kind

Solver = Literal["gauss_newton", "adam", "alternating"]

_PERMANENT = "permanent"  # the member of every sample
_SETTINGS = {"value_prior": 1e-6, "steps": 30}  # see benchmarks
_REFIT_STEPS = 8  # from where the fit ended
_SAME = 1e-12  # a spread that is rounding
_POOR = 0.5  # of the variance of samples that were left out
_TOLD = 0.5  # nats: the largest standard error of an importance that counts as told
_FROM_DATA = 0.5  # the least part of an importance that comes from the samples, not the prior


class Readings(NamedTuple):
    """What the explanation of one input keeps."""

    extras: dict[str, Tensor]
    notes: tuple[str, ...]


class _Samples(NamedTuple):
    """The different samples that have a weight."""

    sequences: list[tuple[int, ...]]  # the kinds of the players that stay
    weights: Tensor  # m
    target: Tensor  # m: the explained number
    logits: Tensor | None  # m c
    whole: int | None  # the number of the whole input


def readings_of(
    players: Sequence[Player],
    kinds: Sequence[int],
    stays: Tensor,
    numbers: Tensor,
    logits: Tensor | None,
    *,
    tokens: int,
    permanent: bool,
    whole: float,
    solver: Solver,
    importance_prior: float,
) -> Readings:
    """Fit who stays (m p) and the explained numbers (m); the first sample is the whole input.

    `kinds` are the numbers of what the players are made of. `logits` (m c) are centred.
    """
    weights = torch.ones(len(stays), dtype=torch.float64)
    weights[0] = whole
    samples = _distinct(kinds, stays, numbers, weights, logits)
    settings: dict[str, Any] = {
        "solver": solver,
        "special": (_PERMANENT,) * permanent,
        "importance_prior": importance_prior,
        **_SETTINGS,
    }
    units = tuple(range(max(kinds) + 1))
    fit = Slalom.fit(
        samples.sequences, samples.target, weights=samples.weights, units=units, **settings
    )
    checked = _checked(fit, samples, settings)
    fit = replace(fit, importance=fit.importance - fit.importance[list(kinds)].mean())
    spread = _Spread.of(players, kinds, tokens, permanent)
    extras = {
        **_readings(fit, spread),
        "value_error": spread.each(checked.value_error),
        "importance_error": spread.each(checked.importance_error),
        "identified": spread.each(_identified(fit, checked)),
        "player": torch.where(spread.owner < len(players), spread.owner, -1),
        "permanent": torch.stack([fit.value[-1], fit.importance[-1]])[: 2 * permanent],
        "empty": torch.as_tensor(fit.empty, dtype=torch.float64),
        "fidelity": torch.tensor(checked.r2, dtype=torch.float64),
    }
    if samples.logits is not None:
        of_classes = fit.revalued(samples.sequences, samples.logits, weights=samples.weights)
        extras["values_of_classes"] = spread.each(of_classes.value)
    return Readings(extras, _notes(extras, samples, len(fit.units), len(players)))


def _distinct(
    kinds: Sequence[int], stays: Tensor, numbers: Tensor, weights: Tensor, logits: Tensor | None
) -> _Samples:
    """Equal samples merged, those without weight left out."""
    distinct, place = stays[weights > 0].unique(dim=0, return_inverse=True)
    own = weights[weights > 0]
    first = torch.zeros(len(distinct), dtype=torch.long)
    first[place] = (weights > 0).nonzero()[:, 0]
    return _Samples(
        [tuple(kinds[p] for p in row.nonzero()[:, 0].tolist()) for row in distinct],
        torch.zeros(len(distinct), dtype=torch.float64).index_add(0, place, own),
        numbers[first].double(),
        None if logits is None else logits[first].double(),
        int(place[0]) if weights[0] > 0 else None,
    )


def _checked(fit: Slalom, samples: _Samples, settings: dict[str, Any]) -> Crossed:
    """The fit's errors by refits; infinite where there are too few samples to leave any out."""
    filled = sum(bool(sequence) for sequence in samples.sequences)
    if filled < 3 and not (fit.special and len(samples.sequences) >= 3):
        return Crossed(
            torch.full_like(fit.value, torch.inf), torch.full_like(fit.importance, torch.inf), 0.0
        )
    return crossed(
        fit,
        samples.sequences,
        samples.target,
        weights=samples.weights,
        kept=samples.whole,
        **settings | {"steps": _REFIT_STEPS},
    )


def _identified(fit: Slalom, checked: Crossed) -> Tensor:
    """Importances that the samples tell: they hold in refits, and the prior has no large part."""
    assert fit.identified is not None
    assert fit.report is not None
    assert fit.report.resolution is not None
    told = (checked.importance_error <= _TOLD) & (fit.report.resolution >= _FROM_DATA)
    return fit.identified & told


class _Spread(NamedTuple):
    """From the players, and what is always there after them, to the tokens of one input."""

    unit: Tensor  # p, and one more: what each is made of, among the units of the fit
    owner: Tensor  # t: the player of each token, the model's own in the last place
    size: Tensor  # p, and one more: tokens

    @classmethod
    def of(
        cls, players: Sequence[Player], kinds: Sequence[int], tokens: int, permanent: bool
    ) -> _Spread:
        owner = torch.full((tokens,), len(players))
        for number, player in enumerate(players):
            owner[list(player)] = number
        unit = torch.tensor([*kinds, max(kinds) + 1 if permanent else -1])
        return cls(unit, owner, owner.bincount(minlength=len(unit)).clamp(min=1))

    def each(self, of_units: Tensor) -> Tensor:
        """The number of each token's unit (t ...); zero for what is no member."""
        found = of_units[self.unit]
        found[self.unit < 0] = 0
        return found[self.owner]

    def shared(self, of_players: Tensor) -> Tensor:
        """The number of each player, shared evenly by its tokens (t); zero for the rest."""
        found = of_players.new_zeros(len(self.size))
        found[: len(of_players)] = of_players
        return (found / self.size)[self.owner]


def _readings(fit: Slalom, spread: _Spread) -> dict[str, Tensor]:
    """The scores of section 5 and appendix C for each token (t).

    Tokens of one player share its weight: the importance of each is less by the logarithm of their
    number, so that all tokens together are a SLALOM, and all that is additive is shared evenly.
    """
    sequence = spread.unit[:-1].tolist()
    member = (spread.unit >= 0)[spread.owner]
    found = {
        "values": spread.each(fit.value),
        "importance": spread.each(fit.importance)
        - member * spread.size[spread.owner].double().log(),
        "removal": spread.shared(fit.scores(sequence, "removal")),
    }
    additive: tuple[Kind, ...] = ("linear", "contribution", "gradient")
    shared = {kind: spread.shared(fit.scores(sequence, kind, special=True)) for kind in additive}
    return found | shared


def _notes(
    extras: dict[str, Tensor], samples: _Samples, units: int, players: int
) -> tuple[str, ...]:
    """What a reader must know before trusting the numbers."""
    different, told = len(samples.sequences), int(extras["identified"][extras["player"] >= 0].sum())
    inside, fidelity = int((extras["player"] >= 0).sum()), float(extras["fidelity"])
    found = []
    if float(samples.target.max() - samples.target.min()) <= _SAME * float(
        samples.target.abs().max()
    ):
        found.append(
            "the explained number was the same in all samples: there is nothing to explain"
        )
    elif players == 1:
        found.append("there is one unit: its value and importance cannot be told apart")
    elif different < 2 * units:
        found.append(
            f"{2 * units - 1} numbers were fitted to {different} different samples: "
            "more samples, or unit='word', would tell more"
        )
    if math.isfinite(fidelity) and fidelity < _POOR and players > 1:
        found.append(
            f"on samples left out of the fit the surrogate explains {max(fidelity, 0.0):.0%} of "
            "the variance: read these numbers with care"
        )
    if 2 * told < inside and players > 1:
        found.append(
            f"the samples tell the importance of {told} of {inside} tokens: for the others, what a "
            "removal does is known better than the value and importance that it is made of"
        )
    return tuple(found)
