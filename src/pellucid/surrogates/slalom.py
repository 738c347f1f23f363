"""SLALOM: a softmax-weighted average of values. Leemann et al., TMLR 2024, equation 4."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from pellucid._errors import ArgumentError, explain_error, unknown_name
from pellucid.surrogates.counts import (
    Unit,
    Units,
    count,
    places,
    row_weights,
    score_table,
    shares,
)
from pellucid.surrogates.gauss_newton import least_squares
from pellucid.surrogates.report import Report

Kind = Literal["removal", "contribution", "gradient", "linear", "value", "importance"]
KINDS = ("removal", "contribution", "gradient", "linear", "value", "importance")


@dataclass(frozen=True, eq=False)
class Slalom:
    """F(t) = sum of a_i v(t_i), where the a_i are the softmax of the importances s(t_i).

    Importances count up to a constant; a fit and a recovery report them with a sum of
    zero. `special` are members of every sequence that no sequence names. `empty` is the output
    for nothing at all, which only a SLALOM without special members is ever asked for.
    """

    units: Units
    value: Tensor  # u, or u c
    importance: Tensor  # u
    special: Units = ()
    empty: Tensor | float = 0.0  # a number, or c
    identified: Tensor | None = None  # u: whether the data tell the importance
    report: Report | None = None

    def __post_init__(self) -> None:
        shaped = self.value.ndim in (1, 2) and len(self.value) == len(self.units)
        known = set(self.special) <= set(self.units) and len(set(self.units)) == len(self.units)
        if not (shaped and known and self.importance.shape == (len(self.units),)):
            raise ArgumentError(
                explain_error(
                    "values and importances do not belong to these units",
                    got=f"{len(self.units)} units, value of shape {tuple(self.value.shape)}, "
                    f"importance of shape {tuple(self.importance.shape)}, special={self.special}",
                    expected="different units, one row of each for every unit, special among them",
                    instead="Slalom(units, torch.zeros(len(units)), torch.zeros(len(units)))",
                )
            )

    def counts(self, sequences: Sequence[Sequence[Unit]]) -> Tensor:
        """How often each unit is a member of each sequence (b u), special members included."""
        return count(sequences, self.units) + count([self.special], self.units)

    def predict(self, sequences: Sequence[Sequence[Unit]]) -> Tensor:
        """The output for each sequence: (b), or (b c)."""
        return self.output(self.counts(sequences))

    def output(self, counts: Tensor) -> Tensor:
        """The output for rows of counts (b u)."""
        found = shares(counts, self._importance) @ self._value
        nothing = ~counts.any(dim=1)
        found[nothing] = self._empty
        return found

    def derivatives(self, sequences: Sequence[Sequence[Unit]]) -> tuple[Tensor, Tensor]:
        """dF/dv (b u), the same for all classes, and dF/ds: (b u), or (b u c)."""
        counts = self.counts(sequences)
        share, value = shares(counts, self._importance), self._value
        gap = value - self.output(counts)[:, None]  # b u, or b u c
        return share, share * gap if value.ndim == 1 else share[..., None] * gap

    def scores(
        self, sequence: Sequence[Unit], kind: Kind = "removal", *, special: bool = False
    ) -> Tensor:
        """One number (or c) a position: (t), or (t c); special members follow where asked for.

        With a the share of one occurrence: "contribution" a v sums to F over all members,
        "gradient" a (v - F) sums to zero, "removal" is F minus F without this occurrence,
        a (v - F) / (1 - a). "linear" e^s v (equation 65) depends on the constant in s and only
        ranks.
        """
        if kind not in KINDS:
            raise ArgumentError(unknown_name("score", kind, KINDS, write="kind={!r}"))
        members = (*sequence, *self.special) if special else tuple(sequence)
        return self._unit_scores(self.counts([sequence]), kind)[places(members, self.units)]

    def _unit_scores(self, counts: Tensor, kind: Kind) -> Tensor:
        """The score of one occurrence of each unit (u), or (u c)."""
        value, importance = self._value, self._importance
        column = (-1,) + (1,) * (value.ndim - 1)
        if kind == "value":
            return value
        if kind == "importance":
            return importance
        if kind == "linear":
            return importance.exp().reshape(column) * value
        if kind == "removal":
            present = counts[0].nonzero()[:, 0]
            fewer = counts.repeat(len(present), 1)
            fewer[torch.arange(len(present)), present] -= 1
            found = torch.zeros_like(value)
            found[present] = self.output(counts) - self.output(fewer)
            return found
        share = shares(counts, importance)[0] / counts[0].clamp(min=1)  # u, of one occurrence
        return share.reshape(column) * (
            value if kind == "contribution" else value - self.output(counts)
        )

    def shapley(
        self, sequence: Sequence[Unit], *, tolerance: float = 1e-10
    ) -> tuple[Tensor, float]:
        """The Shapley value of each position, (t) or (t c), and the error that is left.

        Special members are no players: they belong to every coalition.
        """
        from pellucid.surrogates.shapley import shapley_values

        where, game = self._game(sequence)
        values, error = shapley_values(*game, tolerance=tolerance)
        return self._shaped(values[where]), error

    def interactions(self, sequence: Sequence[Unit]) -> Tensor:
        """The Shapley interaction index of each pair of positions: (t t), or (t t c)."""
        from pellucid.surrogates.shapley import shapley_interactions

        where, game = self._game(sequence)
        found = shapley_interactions(*game)[where][:, where]  # t t c
        found = found * ~torch.eye(len(where), dtype=torch.bool)[..., None]
        return self._shaped(found)

    def _game(self, sequence: Sequence[Unit]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Which player each position is, and copies, log weights and values; the same of members.

        Values are counted from the output of the empty coalition, which is then zero.
        """
        present = tuple(dict.fromkeys(sequence))
        own, fixed = places(present, self.units), places(self.special, self.units)
        value = self._value.reshape(len(self.units), -1)  # u c
        value = value - self.predict([()]).reshape(1, -1)
        game = (
            count([sequence], present)[0],
            self._importance[own],
            value[own],
            self._importance[fixed],
            value[fixed],
        )
        return places(sequence, present), game

    def _shaped(self, found: Tensor) -> Tensor:
        return found[..., 0] if self.value.ndim == 1 else found

    @property
    def _value(self) -> Tensor:
        return self.value.to(torch.float64)

    @property
    def _importance(self) -> Tensor:
        return self.importance.to(torch.float64)

    @property
    def _empty(self) -> Tensor:
        return torch.as_tensor(self.empty, dtype=torch.float64)

    def revalued(
        self,
        sequences: Sequence[Sequence[Unit]],
        scores: Any,
        *,
        weights: Any = None,
        value_prior: float = 1e-6,
    ) -> Slalom:
        """The SLALOM of other scores with the same importances: new values by equation 74."""
        target = score_table(scores, len(sequences))
        table, share = target.reshape(len(target), -1), row_weights(weights, len(sequences))
        counts = self.counts(sequences)
        mean = share @ table
        value = least_squares(
            shares(counts, self._importance), table, share * counts.any(dim=1), mean, value_prior
        )
        empty = (
            (share * ~counts.any(dim=1))
            @ table
            / max(float(share @ (~counts.any(dim=1)).double()), 1e-300)
        )
        return replace(
            self,
            value=value.reshape(-1, *target.shape[1:]),
            empty=empty.reshape(target.shape[1:]),
            report=None,
        )

    @classmethod
    def recover(
        cls,
        query: Callable[[list[tuple[Unit, ...]]], Any],
        vocabulary: Sequence[Unit],
        *,
        gauge: float = 0.0,
        symmetric: bool = False,
    ) -> Slalom:
        """The SLALOM that answers `query`, from 2 |V| - 1 sequences of one or two units.

        `gauge` is the sum of the importances. `symmetric` asks for pairs in both orders and takes
        their mean, for models that read them differently.
        """
        from pellucid.surrogates.recovery import recovered

        units, value, importance, identified = recovered(query, vocabulary, gauge, symmetric)
        return cls(units, value, importance, identified=identified)

    @classmethod
    def fit(
        cls,
        sequences: Sequence[Sequence[Unit]],
        scores: Any,
        preset: str = "default",
        **settings: Any,
    ) -> Slalom:
        """The SLALOM nearest to scores of sequences, by mean squared error.

        `preset` is "default", "eff" or "fidel"; `settings` are fields of
        `pellucid.surrogates.Settings`.
        """
        from pellucid.surrogates.fitting import fitted, settings_of

        return cls(**fitted(sequences, scores, settings_of(preset, **settings)))
