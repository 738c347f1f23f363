"""Words whose weights add up. Leemann et al., TMLR 2024, section E.1.1 and Table 3."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pellucid._arguments import integer
from pellucid._errors import ArgumentError, unknown_name
from pellucid.surrogates import Linear
from pellucid.synthetic.sequences import Data, cut, labelled

LONGEST = 30  # words; lengths are binomial with p = 1/2


@dataclass(frozen=True)
class Word:
    """One row of Table 3."""

    weight: float
    probability: float


PUBLISHED = {
    **{word: Word(0.0, 1 / 6) for word in ("the", "we", "movie", "watch")},
    "good": Word(0.6, 1 / 15),
    "best": Word(1.0, 1 / 20),
    "perfect": Word(1.5, 1 / 20),
    "ok": Word(-0.6, 1 / 15),
    "bad": Word(-1.0, 1 / 20),
    "worst": Word(-1.5, 1 / 20),
}

# The authors' code has other weights for two words and another word for one; its probabilities, 0.2
# and 0.08 and 0.06, are those of the table once they are scaled to sum to one.
RELEASED = {
    **{word: Word(0.0, 0.2 / 1.2) for word in ("the", "we", "movie", "watch")},
    "good": Word(0.7, 0.08 / 1.2),
    "best": Word(1.0, 0.06 / 1.2),
    "perfect": Word(1.5, 0.06 / 1.2),
    "ok": Word(-0.7, 0.08 / 1.2),
    "poor": Word(-1.0, 0.06 / 1.2),
    "worst": Word(-1.5, 0.06 / 1.2),
}

TABLES = {"paper": PUBLISHED, "released": RELEASED}


def linear_truth(preset: str = "paper") -> Linear:
    """The sum that labels are drawn from: Table 3, or "released", the weights of its code."""
    table = _table(preset)
    weight = torch.tensor([word.weight for word in table.values()], dtype=torch.float64)
    return Linear(tuple(table), weight, torch.zeros((), dtype=torch.float64))


def linear_data(n: int, seed: int = 0, *, preset: str = "paper") -> Data:
    """`n` sequences with F(t) = the sum of the weights of their words (equation 80).

    Lengths are Bin(30, 1/2), drawn again where they are zero, which happens once in 2^30.
    """
    table = _table(preset)
    integer("n", n, 1, 5000)
    generator = torch.Generator().manual_seed(integer("seed", seed, 0))
    probability = torch.tensor([word.probability for word in table.values()], dtype=torch.float64)
    ids = torch.multinomial(probability, n * LONGEST, replacement=True, generator=generator)
    ids = cut(ids.view(n, LONGEST), _lengths(n, generator))
    return labelled(ids, linear_truth(preset), generator)


def _lengths(n: int, generator: torch.Generator) -> Tensor:
    """Numbers of heads among 30 coins, never zero (n)."""
    lengths = torch.zeros(n, dtype=torch.long)
    while not lengths.all():
        again = lengths == 0
        coins = torch.randint(0, 2, (int(again.sum()), LONGEST), generator=generator)
        lengths[again] = coins.sum(dim=1)
    return lengths


def _table(preset: str) -> dict[str, Word]:
    if preset not in TABLES:
        raise ArgumentError(unknown_name("preset", preset, TABLES, write="preset={!r}"))
    return TABLES[preset]
