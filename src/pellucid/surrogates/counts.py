"""How often each unit occurs in a sequence, and what share of a softmax that gives it.

Axes: b sequences, u units (tokens, words or positions, each once), c classes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from pellucid._errors import ArgumentError, InputError, NumericalError, explain_error

Unit = Hashable
Units = tuple[Unit, ...]


def units_of(sequences: Iterable[Sequence[Unit]]) -> Units:
    """Every unit once, in the order of first appearance."""
    return tuple(dict.fromkeys(unit for sequence in sequences for unit in sequence))


def count(sequences: Sequence[Sequence[Unit]], units: Units) -> Tensor:
    """How often each unit occurs in each sequence (b u)."""
    place = {unit: i for i, unit in enumerate(units)}
    rows, columns = [], []
    for row, sequence in enumerate(sequences):
        for unit in sequence:
            if unit not in place:
                raise _unknown(unit, units)
            rows.append(row)
            columns.append(place[unit])
    counts = torch.zeros(len(sequences), len(units), dtype=torch.float64)
    index = (torch.tensor(rows, dtype=torch.long), torch.tensor(columns, dtype=torch.long))
    return counts.index_put_(index, counts.new_ones(len(rows)), accumulate=True)


def places(sequence: Sequence[Unit], units: Units) -> Tensor:
    """Which unit stands at each position of a sequence (t)."""
    place = {unit: i for i, unit in enumerate(units)}
    for unit in sequence:
        if unit not in place:
            raise _unknown(unit, units)
    return torch.tensor([place[unit] for unit in sequence], dtype=torch.long)


def shares(counts: Tensor, importance: Tensor) -> Tensor:
    """n e^s / sum of n e^s over a sequence (b u); zeros for a sequence of nothing."""
    logits = importance + counts.log()  # b u
    top = logits.amax(dim=1, keepdim=True)
    weights = (logits - torch.where(top.isfinite(), top, 0.0)).exp()
    return weights / weights.sum(dim=1, keepdim=True).clamp(min=1e-300)


def score_table(scores: Any, many: int) -> Tensor:
    """The scores of so many sequences as finite doubles (b) or (b c)."""
    table = torch.as_tensor(scores).detach().to("cpu", torch.float64)
    if table.ndim not in (1, 2) or len(table) != many or many == 0:
        raise ArgumentError(
            explain_error(
                "there must be one row of scores for every sequence",
                got=f"scores of shape {tuple(table.shape)} for {many} sequences",
                expected="shape (sequences,) or (sequences, classes), and at least one sequence",
                instead="scores=torch.stack([score(sequence) for sequence in sequences])",
            )
        )
    finite = table.isfinite().reshape(many, -1).all(dim=1)
    if not finite.all():
        raise NumericalError(
            explain_error(
                "a score is not finite",
                got=f"scores[{int((~finite).nonzero()[0])}] = {table[~finite][0].tolist()}",
                expected="finite log-odds or logits for every sequence",
                instead="leave out the sequences that have no score, or bound their scores",
            )
        )
    return table


def row_weights(weights: Any, many: int) -> Tensor:
    """Multiplicities of rows, scaled to sum to one; equal ones for None."""
    given = torch.ones(many) if weights is None else torch.as_tensor(weights)
    table = given.detach().to("cpu", torch.float64)
    if table.shape != (many,) or not bool((table.isfinite() & (table >= 0)).all() and table.any()):
        raise ArgumentError(
            explain_error(
                "weights are not multiplicities of the sequences",
                got=f"weights of shape {tuple(table.shape)} for {many} sequences",
                expected="one finite number a sequence, none below zero and not all of them zero",
                instead="weights=None",
            )
        )
    return table / table.sum()


def _unknown(unit: Unit, units: Units) -> InputError:
    return InputError(
        explain_error(
            "the surrogate does not know a unit of this sequence",
            got=repr(unit),
            expected=f"one of the {len(units)} units that it was made for",
            instead="fit it on sequences that contain this unit, or leave the unit out",
        )
    )
