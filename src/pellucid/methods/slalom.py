"""SLALOM as an explanation of one input. Leemann et al., TMLR 2024, section 5 and appendix D.

The explained number of an input and of versions with tokens taken away is described by a softmax-
weighted average of values. What the model adds to every input ([CLS], [SEP]) is one more member.

It misleads where the function is no softmax-weighted average near the input, which the fit's error
tells, and where few samples leave value and importance of a token undetermined by each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from pellucid._arguments import integer, real
from pellucid._case import Case
from pellucid._errors import ArgumentError, explain_error
from pellucid._needs import Needs
from pellucid._spec import method
from pellucid._types import Attribution, Removal
from pellucid.methods._coalitions import Design, coalitions
from pellucid.methods._fitted_slalom import Readings, Solver, readings_of
from pellucid.methods._token_groups import Player, names_of, single_tokens, stretches, whole_words

_CLASSES = 16  # up to which a value for each class is kept

_PUBLISHED = {"members": "content", "whole": 0.0, "samples": 5000, "unit": "type"}


@method(
    needs=Needs.TOKEN_DROP,
    cite="leemann2024attention",
    signed=True,
    explains="log_odds",
    presets={
        "eff": {**_PUBLISHED, "design": "short", "length": 2, "solver": "adam"},
        "fidel": {**_PUBLISHED, "design": "deletion", "most": 5, "solver": "alternating"},
        "content": {"members": "content"},
        "importance": {
            "design": "pairs",
            "members": "content",
            "whole": 0.0,
            "importance_prior": 1e-3,
        },
    },
    quick={"samples": 100, "unit": "word", "importance_prior": 0.01},
)
def slalom(
    case: Case,
    *,
    samples: int = 500,
    design: Design = "deletion",
    most: int = 10,
    length: int = 2,
    unit: Literal["position", "type", "word"] = "position",
    spans: Sequence[tuple[int, int]] = (),
    by: Removal = "delete",
    members: Literal["special", "content"] = "special",
    whole: float = 0.1,
    solver: Solver = "gauss_newton",
    importance_prior: float = 1e-5,
) -> Attribution:
    """What the fitted average of token values loses without each token, beside its parts.

    A sample leaves out 0 to `most` units ("deletion"), keeps `length` of them ("short") or either
    ("mixed"); "pairs" keeps each alone, then two. A `unit` is a token where it stands, all equal
    tokens ("type") or a word; `spans` of characters are units of their own. Tokens are deleted, or
    replaced `by` the "mask", "unk" or "pad" token. The "special" tokens of the model count as one
    member that is always there, or the "content" is alone. `whole` is the weight of the unchanged
    input, as a part of all samples; `importance_prior` draws importances together, which steadies a
    fit to few samples.

    Presets: "eff" and "fidel" are the paper's; "importance" asks for the pairs that tell importance
    from value; "content" has no member for the model's own tokens.
    """
    _check(samples, most, length, {"whole": whole, "importance_prior": importance_prior})
    games = [_game(case, row, unit, spans) for row in range(len(case.batch))]
    drawn = [
        game.drawn(case.generators[row], design, samples, most, length)
        for row, game in enumerate(games)
    ]
    keep = torch.stack([_masks(case, row, games[row], stay) for row, stay in enumerate(drawn)])
    numbers, logits = _answers(case, keep, by)
    found = [
        readings_of(
            game.players,
            game.kinds,
            stay,
            numbers[row],
            None if logits is None else logits[row],
            tokens=len(case.batch.items[row].segments),
            permanent=members == "special",
            whole=whole * samples,
            solver=solver,
            importance_prior=importance_prior,
        )
        for row, (game, stay) in enumerate(zip(games, drawn, strict=True))
    ]
    return _attribution(case, found)


@dataclass(frozen=True)
class _Game:
    """The players of one input."""

    players: list[Player]
    kinds: list[int]  # players of one kind share their value and importance
    emptied: bool  # something is left when all players are gone

    def drawn(
        self, generator: torch.Generator, design: Design, samples: int, most: int, length: int
    ) -> Tensor:
        """The unchanged input, and then who stays in each sample (m p)."""
        many = len(self.players)
        first = [self.kinds.index(kind) for kind in dict.fromkeys(self.kinds)]
        stays = coalitions(
            design,
            samples,
            many,
            first,
            generator,
            most=min(most, many if self.emptied else many - 1),
            length=length,
        )
        return torch.cat([torch.ones(1, many, dtype=torch.bool), stays])


def _game(case: Case, row: int, unit: str, spans: Sequence[tuple[int, int]]) -> _Game:
    item = case.batch.items[row]
    players = whole_words(item) if unit == "word" else single_tokens(item)
    if spans:
        players = stretches(item, players, spans)
    names = names_of(item, players) if unit == "type" else list(range(len(players)))
    number = {name: i for i, name in enumerate(dict.fromkeys(names))}
    return _Game(players, [number[name] for name in names], case.can_be_emptied)


def _masks(case: Case, row: int, game: _Game, stays: Tensor) -> Tensor:
    """Which tokens of the padded input stay in each sample (m t)."""
    where = case.mask[row].cpu().nonzero()[:, 0]
    keep = torch.ones(len(stays), case.mask.shape[1], dtype=torch.bool)
    for number, player in enumerate(game.players):
        keep[:, where[list(player)]] = stays[:, number, None]
    return keep


def _answers(case: Case, keep: Tensor, by: Removal) -> tuple[Tensor, Tensor | None]:
    """The explained number of every sample (b m), and the logits of few classes (b m c)."""
    if case.target.function is not None or not 1 < case.rows.shape[-1] <= _CLASSES:
        return case.drop(keep, by).cpu(), None
    logits = case.drop_logits(keep, by)  # b m k c
    rows = torch.arange(len(keep)).repeat_interleave(keep.shape[1])
    numbers = case.objective.take(rows).of_rows(logits.flatten(0, 1))
    found = logits[:, :, 0].cpu()
    if not case.objective.independent:
        found = found - found.mean(dim=-1, keepdim=True)  # all that a softmax depends on
    return numbers.view(keep.shape[:2]).cpu(), found


def _attribution(case: Case, found: Sequence[Readings]) -> Attribution:
    """The scores on the batch's padding, everything else as long as its input."""
    scores = torch.zeros(case.mask.shape, dtype=case.dtype)
    for row, one in enumerate(found):
        scores[row, case.mask[row].cpu()] = one.extras["removal"].to(case.dtype)
    extras = {name: [one.extras[name] for one in found] for name in found[0].extras}
    return Attribution(scores.to(case.mask.device), extras, [one.notes for one in found])


def _check(samples: int, most: int, length: int, weights: Mapping[str, float]) -> None:
    integer("samples", samples, 2, 500)
    integer("most", most, 1, 10)
    integer("length", length, 1, 2)
    for name, weight in weights.items():
        if real(name, weight) < 0:
            raise ArgumentError(
                explain_error(
                    f"{name} is a weight, which is not below zero",
                    got=f"{name}={weight!r}",
                    expected="a number of at least 0",
                    instead=f"leave {name} out",
                )
            )
