"""Which players stay: sets drawn to see what an input is without the others.

Leemann et al., TMLR 2024, appendix D, on the tokens of one text in their order. A token that is
drawn twice says to a SLALOM what it says once, so a set stands for a sequence with repeats.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

Design = Literal["deletion", "short", "mixed", "pairs"]


def coalitions(
    design: Design,
    samples: int,
    many: int,
    first: Sequence[int],
    generator: torch.Generator,
    *,
    most: int,
    length: int,
) -> Tensor:
    """Which of so many players stay in each sample (m p).

    "deletion" leaves out 0 to `most` of them, each number as likely (algorithm 2); "short" keeps
    `length`, drawn with replacement from the `first` occurrence of each token (algorithm 1);
    "mixed" is half of each. "pairs" keeps each of these alone, then two of them, all equally often.
    """
    if design == "pairs":
        return _kept(_balanced(samples, torch.tensor(first), generator), many)
    deleted = {"deletion": samples, "short": 0, "mixed": (samples + 1) // 2}[design]
    gone = torch.randint(most + 1, (deleted, 1), generator=generator)
    place = torch.rand(deleted, many, generator=generator).argsort(dim=1).argsort(dim=1)
    drawn = torch.randint(len(first), (samples - deleted, length), generator=generator)
    return torch.cat([place >= gone, _kept(torch.tensor(first)[drawn], many)])


def _balanced(samples: int, first: Tensor, generator: torch.Generator) -> Tensor:
    """Each unit with itself, then with its neighbours in rings of random order (m 2)."""
    drawn = [torch.stack([first, first], dim=1)]
    for _ in range(samples // len(first)):
        ring = first[torch.randperm(len(first), generator=generator)]
        drawn.append(torch.stack([ring, ring.roll(1)], dim=1))
    return torch.cat(drawn)[:samples]


def _kept(members: Tensor, many: int) -> Tensor:
    """Masks of so many players with only these members (m p)."""
    return torch.zeros(len(members), many, dtype=torch.bool).scatter(1, members, True)
