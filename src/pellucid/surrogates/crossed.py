"""Refits that each leave out a part of the samples: how far to trust a fit, and to what it extends.

One set of refits answers both. What each part says of the fit to the others is the share of
variance that is explained out of sample; how far the refits lie apart is the jackknife's standard
error (delete-a-group; Shao and Tu, The Jackknife and Bootstrap, 1995, section 2.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from pellucid._arguments import integer
from pellucid._errors import ArgumentError, explain_error
from pellucid.surrogates.counts import Unit, row_weights, score_table

if TYPE_CHECKING:
    from pellucid.surrogates.slalom import Slalom


_ROUNDING = 1e-20  # of squared scores: a variance of less is none


@dataclass(frozen=True, eq=False)
class Crossed:
    """What the refits of a SLALOM say of it."""

    value_error: Tensor  # u, or u c: standard errors
    importance_error: Tensor  # u
    r2: float  # of sequences that were not fitted: 1 is perfect, 0 is their mean score


def crossed(
    fit: Slalom,
    sequences: Sequence[Sequence[Unit]],
    scores: Any,
    *,
    groups: int = 10,
    kept: int | None = None,
    weights: Any = None,
    seed: int = 0,
    preset: str = "default",
    **settings: Any,
) -> Crossed:
    """Fit the sequences again without each of so many groups, beginning at `fit`.

    `kept` is the number of a sequence that no refit leaves out. `preset` and `settings` are those
    of the fit. Equal sequences count as one, by their weight.
    """
    many, table = len(sequences), score_table(scores, len(sequences))
    groups = min(integer("groups", groups, 2, 10), many)
    if many < 2:
        raise ArgumentError(
            explain_error(
                "nothing can be left out of a single sequence",
                got="one sequence",
                expected="at least two",
                instead="more samples",
            )
        )
    share = row_weights(weights, many)
    copies = torch.ones(many) if weights is None else torch.as_tensor(weights)
    share = share.clone()
    order = torch.randperm(many, generator=torch.Generator().manual_seed(seed))
    group = torch.empty(many, dtype=torch.long)
    group[order] = torch.arange(many) % groups
    if kept is not None:
        group[kept], share[kept] = -1, 0.0
    settings = {**settings, "units": fit.units, "start": fit.importance, "diagnose": False}
    predicted = table.clone()
    refits: list[Slalom] = []
    for one in range(groups):
        away = group == one
        refits.append(type(fit).fit(sequences, table, preset, weights=copies * ~away, **settings))
        left_out = [sequences[i] for i in away.nonzero()[:, 0].tolist()]
        predicted[away] = refits[-1].predict(left_out)
    return Crossed(
        _jackknife(torch.stack([refit.value for refit in refits])),
        _jackknife(torch.stack([refit.importance for refit in refits])),
        _explained(predicted.reshape(many, -1), table.reshape(many, -1), share / share.sum()),
    )


def _jackknife(refits: Tensor) -> Tensor:
    """Standard errors from refits without one group each (g ...)."""
    many = len(refits)
    return ((many - 1) / many * (refits - refits.mean(dim=0)).square().sum(dim=0)).sqrt()


def _explained(predicted: Tensor, target: Tensor, share: Tensor) -> float:
    """The share of the variance that predictions (b c) explain; of no variance, all or nothing."""
    error = float((share @ (predicted - target).square()).sum())
    spread = float((share @ (target - share @ target).square()).sum())
    rounding = _ROUNDING * float((share @ target.square()).sum())
    return 1 - error / spread if spread > rounding else float(error <= rounding)
