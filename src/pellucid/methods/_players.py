"""What a surrogate of a model takes away as one: a token, a word, a patch, a piece of an image.

A coalition is the set of players that stay. What the model says of it is what it says of the input
without the others: tokens are deleted or replaced, patches really left out, pixels painted over.

Axes: n players, m coalitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from pellucid._arguments import integer
from pellucid._baselines import Reference, reference_pixels
from pellucid._case import Case
from pellucid._kept import score_kept
from pellucid._perturb import in_time, score_pixels
from pellucid._types import Removal, Text
from pellucid.methods._token_groups import Player, single_tokens, whole_words

Unit = Literal["token", "word", "type"]


@dataclass(frozen=True, eq=False)
class Players:
    """Who plays, for each input of a batch, and what happens to those who do not."""

    case: Case
    owner: Tensor  # b t, or b h w for pixels: the player that each belongs to, or -1
    by: Removal
    empty: Tensor | None  # b c h w: what pixels are painted over with; None where tokens go

    @property
    def counts(self) -> list[int]:
        """How many players each input has."""
        return [int(own.max()) + 1 for own in self.owner]

    def values(self, coalitions: Sequence[Tensor]) -> list[Tensor]:
        """The explained number of the coalitions of each input, from m n each to m each.

        Equal ones are evaluated once. Where a time was given, the last may be missing.
        """
        most = max(len(some) for some in coalitions)
        filled = [torch.cat([some, some[:1].expand(most - len(some), -1)]) for some in coalitions]
        sets = pad_sequence([some.T for some in filled], batch_first=True).transpose(1, 2)
        found = in_time(self.case, sets, self._score).cpu()  # b m
        return [row[: len(some)] for row, some in zip(found, coalitions, strict=True)]

    def share(self, numbers: Sequence[Tensor]) -> Tensor:
        """The number of each player (n each), shared evenly by what belongs to it."""
        out = torch.zeros(self.owner.shape, dtype=self.case.dtype)
        for row, own, some in zip(out, self.owner, numbers, strict=True):
            size = torch.bincount(own[own >= 0], minlength=len(some))
            row[own >= 0] = (some / size)[own[own >= 0]].to(row)
        return out

    def _score(self, sets: Tensor) -> Tensor:
        """The explained number of these coalitions (b m n -> b m)."""
        if self.empty is not None:
            return self._painted(sets, self.empty)
        nobodys = self.owner[:, None] < 0  # the model's own tokens stay
        index = self.owner.clamp(min=0)[:, None].expand(-1, sets.shape[1], -1)
        return score_kept(self.case, sets.gather(2, index) | nobodys, self.by)

    def _painted(self, sets: Tensor, empty: Tensor) -> Tensor:
        """The same where the pixels of the others are painted over."""
        x, device = self.case.pixels, self.case.pixels.device
        unique = [some.unique(dim=0, return_inverse=True) for some in sets]
        distinct = pad_sequence([some for some, _ in unique], batch_first=True).to(device)
        owner = self.owner.to(device)

        def changed(rows: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
            own = owner[rows].flatten(1)
            shown = distinct[rows, k].gather(1, own).view(len(rows), *x.shape[2:])  # j h w
            return torch.where(shown[:, None], x[rows], empty[rows]), shown

        values = torch.zeros(distinct.shape[:2], dtype=torch.float64)
        for rows, k, _, some in score_pixels(self.case, [len(d) for d, _ in unique], changed):
            values[rows, k] = some.cpu()
        return torch.stack([own[place] for own, (_, place) in zip(values, unique, strict=True)])


def players(case: Case, unit: Unit, by: Removal, baseline: Reference, cells: int) -> Players:
    """The players of a batch: units of a text, patches that can be left out, or cells."""
    if case.kind == "text":
        return Players(case, _units_of_texts(case, unit), by, None)
    if case.can_be_emptied:
        patch = case.content.cumsum(dim=1) - 1
        return Players(case, patch.masked_fill(~case.content, -1).cpu(), by, None)
    height, width = case.pixels.shape[-2:]
    cells = integer("cells", cells, 1, 8)
    across = _stretches(width, cells)
    cell = _stretches(height, cells)[:, None] * (int(across[-1]) + 1) + across  # h w
    owner = cell.expand(len(case.batch), -1, -1)
    return Players(case, owner, by, reference_pixels(case, baseline))


def _stretches(side: int, cells: int) -> Tensor:
    """Which of so many stretches, as equal as can be, each pixel of a side lies in."""
    return torch.arange(side) * min(cells, side) // side


def _units_of_texts(case: Case, unit: Unit) -> Tensor:
    """The player of every token (b t)."""
    owner = torch.full(case.mask.shape, -1)
    for row, real, item in zip(owner, case.mask.cpu(), case.batch.items, strict=True):
        assert isinstance(item, Text)
        row[real] = _units(item, unit)
    return owner


def _units(text: Text, unit: Unit) -> Tensor:
    """The player of every token of a text, numbered in its order; -1 for the model's own (t)."""
    groups = single_tokens(text) if unit == "token" else whole_words(text)
    names = [_written(text, group) if unit == "type" else group for group in groups]
    numbers = {name: i for i, name in enumerate(dict.fromkeys(names))}
    owner = torch.full((len(text.segments),), -1)
    for name, group in zip(names, groups, strict=True):
        owner[list(group)] = numbers[name]
    return owner


def _written(text: Text, group: Player) -> str | Player:
    """A word as it stands in its text; what stands nowhere is like nothing else."""
    pieces = [text.segments[i] for i in group]
    spans = [piece.span for piece in pieces if piece.span is not None]
    if not spans:
        return group
    return text.parts[pieces[0].part][min(a for a, _ in spans) : max(b for _, b in spans)]


def subsets(sizes: Tensor, players: int, generator: torch.Generator) -> Tensor:
    """Random sets of so many players each (m n)."""
    place = torch.rand(len(sizes), players, generator=generator).argsort(dim=1).argsort(dim=1)
    return place < sizes[:, None]
