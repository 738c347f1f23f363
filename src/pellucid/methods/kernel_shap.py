"""Kernel SHAP. Lundberg and Lee, NeurIPS 2017, section 4.1; sampled in pairs as in Covert and Lee,
AISTATS 2021.

Shapley values are the weighted least-squares fit of sum_i z_i phi_i to v(z) - v(0) over all proper
coalitions z, under the constraint that they sum to v(1) - v(0). Subtracting the constraint's even
share leaves an unconstrained fit on centred coalitions. A coalition and its complement are centred
to x and -x, so that a pair is one equation for the half difference of their values.

Axes: p pairs, n players.

It misleads where the remains of an input are unlike any that the model was trained on, since it
averages over all of them; equal scores of two tokens may hide that either alone suffices.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import torch
from torch import Tensor

from pellucid._arguments import integer
from pellucid._baselines import Reference
from pellucid._case import Case
from pellucid._errors import ArgumentError, explain_error
from pellucid._needs import Needs
from pellucid._spec import method
from pellucid._types import Attribution, Removal
from pellucid.methods._late import late_notes
from pellucid.methods._players import Unit, players, subsets

_SINGULAR = 1e-9  # what is smaller beside 1 is nothing


@method(
    needs=Needs.NOTHING,  # any image can be painted over, and any text shortened
    cite=("lundberg2017unified", "covert2021improving"),
    signed=True,
    explains="log_odds",
    quick={"samples": 128, "cells": 4},
)
def kernel_shap(
    case: Case,
    *,
    samples: int = 0,
    unit: Unit = "token",
    by: Removal = "delete",
    baseline: Reference = "zero",
    cells: int = 8,
) -> Attribution:
    """Shapley values: what each token or patch adds, on average over all orders of adding them.

    The players are a `unit` of a text, a "token", a "word", or all words of one "type"; one that is
    not there is deleted, or replaced `by` the "mask", "unk" or "pad" token. Of an image, they are
    patches, which are left out; where a model cannot do without them all, `cells` x `cells` pieces,
    which are painted over with the `baseline`. Scores sum to what all of them add to none.

    `samples` coalitions are drawn besides (0: 2048 and two a player, as in the authors' code). The
    values are exact where all coalitions are no more than that, as for up to 11 players by default.
    The extras are the "empty_value" without any player, and every score's "standard_error" by the
    jackknife over pairs, zero where values are exact.
    """
    game = players(case, unit, by, baseline, cells)
    samples = integer("samples", samples, 0, 2048)
    pairs = [
        _pairs(count, samples or 2 * count + 2048, generator)
        for count, generator in zip(game.counts, case.generators, strict=True)
    ]
    value = case.value.cpu()
    answers = game.values([one.in_turn() for one in pairs])
    found = [_values(*one) for one in zip(pairs, answers, value, strict=True)]
    extras = {
        "empty_value": torch.stack([answer[0] for answer in answers]),
        "standard_error": game.share([error for _, error in found]),
    }
    notes = [
        told
        for one, answer in zip(pairs, answers, strict=True)
        for told in late_notes([len(answer) - 1], 2 * len(one.z), "coalitions")
    ]
    return Attribution(game.share([phi for phi, _ in found]), extras, notes)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Coalitions, each to be asked about with its complement; any first of them are a fair sample.

    `pi` is how much each counts: the weight of the kernel where all pairs are there, or 1 where
    they were drawn as often as the kernel has weight.
    """

    z: Tensor  # p n
    pi: Tensor  # p
    complete: bool

    def in_turn(self) -> Tensor:
        """Nobody, then each coalition and its complement (1+2p n)."""
        nobody = torch.zeros(1, self.z.shape[1], dtype=torch.bool)
        return torch.cat([nobody, torch.stack([self.z, ~self.z], dim=1).flatten(0, 1)])


def _pairs(players: int, samples: int, generator: torch.Generator) -> _Pairs:
    """All pairs where they are few enough, or pairs that are drawn."""
    if 2**players - 2 <= samples:
        number = 1 + torch.randperm(2 ** (players - 1) - 1, generator=generator)
        z = (number[:, None] >> torch.arange(players)) & 1 == 1  # those without the last player
        sizes = range(1, players)
        kernel = [(players - 1) / (comb(players, k) * k * (players - k)) for k in sizes]  # Th. 2
        by_size = torch.tensor([0.0, *kernel], dtype=torch.float64)
        return _Pairs(z, by_size[z.sum(dim=1)], complete=True)
    if samples <= 2 * players:
        raise _too_few(players, samples)
    k = torch.arange(1, players)
    chance = 1 / (k * (players - k)).double()  # of a size, with all of its coalitions
    drawn = torch.multinomial(chance, samples // 2, replacement=True, generator=generator)
    z = subsets(k[drawn], players, generator)
    pi = torch.ones(len(z), dtype=torch.float64)
    _centred(z, pi, complete=False)  # raises before the model is asked
    return _Pairs(z, pi, complete=False)


def _values(pairs: _Pairs, answers: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """The values of all players (n), and their standard errors (n)."""
    players = pairs.z.shape[1]
    change = value - answers[0]  # what the values sum to
    if players == 1:
        return change[None], torch.zeros_like(change)[None]
    known = (len(answers) - 1) // 2
    complete = pairs.complete and known == len(pairs.z)
    z, pi = pairs.z[:known], pairs.pi[:known]
    x, inverse, leverage = _centred(z, pi, complete)
    v, v_rest = answers[1 : 1 + 2 * known].view(-1, 2).unbind(dim=1)
    y = (v - v_rest) / 2 - change * (z.double().mean(dim=1) - 0.5)
    theta = inverse @ (x.T @ (pi * y))
    if complete:
        return change / players + theta, torch.zeros_like(theta)
    missing = pi * (y - x @ theta) / (1 - leverage)  # of each pair, from a fit without it
    moved = (x @ inverse) * missing[:, None]  # p n
    return change / players + theta, ((known - 1) * moved.var(dim=0, correction=0)).sqrt()


def _centred(z: Tensor, pi: Tensor, complete: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Centred coalitions x (p n), the inverse of x' pi x off the constraint (n n), leverages (p).

    Unless they are complete, the values must be determined without any one pair, too.
    """
    x = z.double() - z.double().mean(dim=1, keepdim=True)
    players = x.shape[1]
    gram = x.T @ (pi[:, None] * x)  # which is zero along the constraint, and only there
    eigenvalues = torch.linalg.eigvalsh(gram)[1:]
    if eigenvalues[0] <= _SINGULAR * eigenvalues[-1]:
        raise _too_few(players, 2 * len(x))
    inverse = torch.linalg.inv(gram + eigenvalues.mean() / players)
    leverage = pi * ((x @ inverse) * x).sum(dim=1)
    if not complete and leverage.max() > 1 - _SINGULAR:
        raise _too_few(players, 2 * len(x))
    return x, inverse, leverage


def _too_few(players: int, samples: int) -> ArgumentError:
    return ArgumentError(
        explain_error(
            "so few coalitions do not determine what each player is worth",
            got=f"{samples} for {players} players",
            expected=f"more than {max(samples, 2 * players)}, such as {2 * players + 2048}",
            instead=f"samples={2 * players + 2048}, more seconds, or unit='word' for a text",
        )
    )
