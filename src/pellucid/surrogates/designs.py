"""Which sequences to ask a model about, to explain one of them.

Leemann et al., TMLR 2024, appendix D: short sequences (algorithm 1) and deletions (algorithm 2).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import torch
from torch import Tensor

from pellucid._arguments import integer, real
from pellucid._errors import ArgumentError, InputError, explain_error, unknown_name
from pellucid.surrogates.counts import Unit, Units

DESIGNS = ("short", "deletion", "all_pairs", "mixed")


@dataclass(frozen=True, eq=False)
class Samples:
    """Different sequences, in the order in which they were drawn first, and how often each was."""

    sequences: tuple[Units, ...]
    weights: Tensor  # b


def samples(
    sequence: Sequence[Unit],
    budget: int,
    *,
    design: str = "short",
    length: int = 2,
    most: int = 5,
    deletion_weight: float = 0.5,
    seed: int = 0,
) -> Samples:
    """`budget` samples of a sequence, equal ones merged.

    "short" draws `length` of the different units with replacement. "deletion" leaves out 0 to
    `most` positions, but never all of them. "all_pairs" is each unit and each pair once, and fails
    where the budget is too small. "mixed" is deletions, by `deletion_weight`, and short sequences.
    """
    units = tuple(dict.fromkeys(sequence))
    if not units:
        raise InputError(
            explain_error(
                "an empty sequence has no samples",
                got="sequence=()",
                expected="a sequence of at least one unit",
                instead="leave the empty text out",
            )
        )
    if design not in DESIGNS:
        raise ArgumentError(unknown_name("design", design, DESIGNS, write="design={!r}"))
    integer("budget", budget, 1, 500)
    if design == "all_pairs":
        return _merged(_all_pairs(units, budget))
    deletions = round(budget * _deleted(design, deletion_weight))
    generator = torch.Generator().manual_seed(seed)
    integer("length", length, 1, 2)
    most = min(integer("most", most, 0, 5), len(sequence) - 1)
    drawn = [_deletion(tuple(sequence), most, generator) for _ in range(deletions)]
    rows = torch.randint(len(units), (budget - deletions, length), generator=generator)
    return _merged(drawn + [tuple(units[i] for i in row) for row in rows.tolist()])


def _deleted(design: str, deletion_weight: float) -> float:
    """The part of the samples that are deletions."""
    weight = {"short": 0.0, "deletion": 1.0}.get(design, real("deletion_weight", deletion_weight))
    if not 0 <= weight <= 1:
        raise ArgumentError(
            explain_error(
                "deletion_weight is not a part of the samples",
                got=f"deletion_weight={deletion_weight!r}",
                expected="a number from 0 to 1",
                instead="deletion_weight=0.5",
            )
        )
    return weight


def _deletion(sequence: Units, most: int, generator: torch.Generator) -> Units:
    """The sequence without 0 to `most` of its positions, each number as likely."""
    gone = int(torch.randint(most + 1, (1,), generator=generator))
    kept = torch.randperm(len(sequence), generator=generator)[gone:].sort().values
    return tuple(sequence[i] for i in kept.tolist())


def _all_pairs(units: Units, budget: int) -> list[Units]:
    many = len(units)
    singles: list[Units] = [(unit,) for unit in units]
    pairs: list[Units] = [tuple(pair) for pair in combinations(units, 2)]
    if many + len(pairs) > budget:
        raise ArgumentError(
            explain_error(
                "the budget is too small for all pairs",
                got=f"budget={budget} for {many} different units",
                expected=f"at least {many + len(pairs)}",
                instead="design='short'",
            )
        )
    return singles + pairs


def _merged(drawn: list[Units]) -> Samples:
    found = Counter(drawn)
    return Samples(tuple(found), torch.tensor(list(found.values()), dtype=torch.float64))
