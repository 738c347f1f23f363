"""Texts of which only some tokens are kept, in the order of their scores, and what that leaves.

A grid says how many: "tokens:5" is 5, 10, 15, ... tokens that stay, as SLALOM's paper has it;
"percent:[1,5,10,20,50]" counts, as ERASER does, the highest-scored part of the text, which stays
where they are inserted and goes where they are deleted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch import Tensor

from pellucid._case import Case
from pellucid._errors import ArgumentError, explain_error
from pellucid._kept import answers_to_kept
from pellucid._results import Explanation
from pellucid._types import Measured
from pellucid.metrics._ranking import Ties, ranks, tie_fraction

Level = Literal["one", "clean"]  # what the loss is counted from: certainty, or the whole text


def tokens_of(explanation: Explanation) -> Tensor:
    """True for the tokens of the user's text, which alone are ranked and removed (t)."""
    return torch.tensor([segment.role == "content" for segment in explanation.segments])


def insertion_masks(rank: Tensor, grid: str) -> Tensor:
    """The highest-scored tokens stay, so many at each point of the grid (m n)."""
    kept = [count for _, count in _points(grid, len(rank))]
    return rank < torch.tensor(kept, dtype=torch.long)[:, None]


def deletion_masks(rank: Tensor, grid: str) -> Tensor:
    """The lowest-scored tokens stay: so many, or all but the part that a percentage says (m n)."""
    many = len(rank)
    gone = [many - count if unit == "tokens" else count for unit, count in _points(grid, many)]
    return rank >= torch.tensor(gone, dtype=torch.long)[:, None]


def _points(grid: str, many: int) -> list[tuple[str, int]]:
    """The points of a grid for a text of so many tokens."""
    unit, numbers = _parsed(grid)
    if unit == "tokens":
        step = int(numbers[0])
        return [(unit, count) for count in range(step, many + 1, step)]
    return [(unit, max(1, math.ceil(part * many / 100))) for part in numbers]


def _parsed(grid: str) -> tuple[str, list[float]]:
    """A unit and its numbers."""
    unit, _, listed = grid.partition(":") if isinstance(grid, str) else ("", "", "")
    found = re.findall(r"[^\s,\[\]]+", listed)
    numeric = all(re.fullmatch(r"\d+(\.\d+)?", one) for one in found)
    numbers = [float(one) for one in found] if numeric else []
    tokens = unit == "tokens" and len(numbers) == 1 and numbers[0] >= 1 and numbers[0] % 1 == 0
    if tokens or (unit == "percent" and numbers and all(0 < one <= 100 for one in numbers)):
        return unit, numbers
    raise ArgumentError(
        explain_error(
            "this is no grid of kept tokens",
            got=f"grid={grid!r}",
            expected="'tokens:STEP' with a whole number, or 'percent:[...]' with parts of 100",
            instead="grid='tokens:5', or grid='percent:[1,5,10,20,50]'",
        )
    )


def values_of_kept(case: Case, kept: Sequence[Tensor]) -> list[Tensor]:
    """The explained number of each text with only some of its tokens: m t -> m, text by text.

    All of them share batches of similar length; masks that are equal are evaluated once.
    """
    most = max((len(one) for one in kept), default=0)
    if most == 0:
        return [torch.empty(0, dtype=torch.float64) for _ in kept]
    keep = case.mask.cpu()[:, None].repeat(1, most, 1)  # b m t
    for row, own in enumerate(kept):
        if len(own):
            real = case.mask[row].cpu()
            keep[row][:, real] = own[torch.arange(most).clamp(max=len(own) - 1)]
    found = answers_to_kept(case, keep).double().cpu()
    return [values[: len(own)] for values, own in zip(found, kept, strict=True)]


def measured(
    case: Case,
    explanations: Sequence[Explanation],
    masks: Callable[[Tensor, str], Tensor],
    grid: str,
    reference: Level,
    ties: Ties,
) -> Measured:
    """The reference level less the mean of the class's probability over the grid."""
    kept, tied, skipped = [], [], []
    for explanation, generator in zip(explanations, case.generators, strict=True):
        own = tokens_of(explanation)
        scores = explanation.scores[own]
        stays = masks(ranks(scores, ties, generator), grid)  # m n
        keep = torch.ones(len(stays), len(own), dtype=torch.bool)
        keep[:, own] = stays
        skipped.append(_reason(keep, grid))
        kept.append(keep[:0] if skipped[-1] else keep)
        tied.append(tie_fraction(scores))
    curves = values_of_kept(case, kept)
    levels = case.value.tolist() if reference == "clean" else [1.0] * len(curves)
    return Measured(
        values=[
            level - float(curve.mean()) if len(curve) else None
            for level, curve in zip(levels, curves, strict=True)
        ],
        curves=curves,
        ties=tied,
        skipped=skipped,
    )


def _reason(keep: Tensor, grid: str) -> str:
    """Why a text has no point of the grid, or one at which the model would have nothing to read."""
    if not len(keep):
        return f"fewer than {grid.partition(':')[2]} tokens"
    return "" if keep.any(dim=1).all() else "nothing would be left of the text"
