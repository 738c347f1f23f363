"""Which players stay: sets drawn to see what an input is without the others.

Leemann et al., TMLR 2024, appendix D, on the tokens of one text in their order. A token that is
drawn twice says to a SLALOM what it says once, so a set stands for a sequence with repeats.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

Design = Literal["deletion", "short", "mixed"]


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
    "mixed" is half of each.
    """
    deleted = {"deletion": samples, "short": 0, "mixed": (samples + 1) // 2}[design]
    gone = torch.randint(most + 1, (deleted, 1), generator=generator)
    place = torch.rand(deleted, many, generator=generator).argsort(dim=1).argsort(dim=1)
    drawn = torch.randint(len(first), (samples - deleted, length), generator=generator)
    few = torch.zeros(samples - deleted, many, dtype=torch.bool)
    few.scatter_(1, torch.tensor(first)[drawn], True)
    return torch.cat([place >= gone, few])
