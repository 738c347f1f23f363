"""Inputs of which only some tokens are kept: what the model says of them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pellucid._answers import answers_to
from pellucid._perturb import Answer, evaluate_versions
from pellucid._target import QUANTITIES
from pellucid._types import Batch, Removal

if TYPE_CHECKING:
    from pellucid._case import Case


def score_kept(
    case: Case, keep: Tensor, by: Removal = "delete", answer: Answer | None = None
) -> Tensor:
    """The explained number with only the kept tokens: b t -> b, or b m t -> b m; or another answer.

    Masks that are equal are evaluated once. Images share a batch where they keep equally many, and
    what is left of a text that has no token of its own is the token that begins or ends one.
    """
    kept = _Kept(case, keep if keep.dim() == 3 else keep[:, None], by)
    equal = case.kind == "image"
    values = evaluate_versions(
        case, kept.rows, kept.batch, answer=answer, lengths=kept.lengths, equal=equal
    )
    found = kept.asked(values)  # b m
    return found if keep.dim() == 3 else found[:, 0]


def answers_to_kept(case: Case, keep: Tensor, by: Removal = "delete") -> Tensor:
    """The same for metrics (b m t -> b m), which ask each other's questions again."""
    kept = _Kept(case, keep, by)
    answers = answers_to(
        case, kept.rows, kept.keys, kept.batch, lengths=kept.lengths, equal=case.kind == "image"
    )
    return kept.asked(answers[:, QUANTITIES.index(case.target.quantity or "logit")])


@dataclass(frozen=True)
class _Kept:
    """The different masks among those of a batch, one version an input and mask."""

    case: Case
    keep: Tensor  # b m t
    by: Removal

    @cached_property
    def _distinct(self) -> list[tuple[Tensor, Tensor]]:
        """The different masks of each input (k t), and which of them each mask is (m)."""
        real, content = self.case.mask[:, None], self.case.content[:, None]
        own = real & (self.keep.to(real.device) | ~content)
        return [one.unique(dim=0, return_inverse=True) for one in own]

    @cached_property
    def masks(self) -> Tensor:
        return torch.cat([masks for masks, _ in self._distinct])  # j t

    @cached_property
    def rows(self) -> Tensor:
        counts = torch.tensor([len(masks) for masks, _ in self._distinct])
        return torch.arange(len(counts)).repeat_interleave(counts)

    @property
    def lengths(self) -> Tensor | None:
        return self.masks.sum(dim=1).cpu() if self.by == "delete" else None

    @property
    def keys(self) -> list[Hashable]:
        """What is kept, whatever the padding, and what became of the rest."""
        lengths = [len(item.segments) for item in self.case.batch.items]
        masks = self.masks.cpu().numpy()
        return [
            (self.by, mask[: lengths[row]].tobytes())
            for row, mask in zip(self.rows.tolist(), masks, strict=True)
        ]

    @cached_property
    def _whole(self) -> Batch:
        return self.case.shortened(self.by)

    def batch(self, jobs: Tensor) -> Batch:
        masks = self.masks[jobs.to(self.masks.device)]
        return self.case.adapter.without(self._whole.take(self.rows[jobs]), masks, self.by)

    def asked(self, values: Tensor) -> Tensor:
        """The values of the different masks, put where their masks were asked for (b m ...)."""
        counts = [len(masks) for masks, _ in self._distinct]
        split = values.to(self.case.mask.device).split(counts)
        return torch.stack(
            [own[place] for own, (_, place) in zip(split, self._distinct, strict=True)]
        )
