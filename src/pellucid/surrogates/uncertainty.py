"""What scores of sequences tell of a SLALOM's parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from pellucid._arguments import integer
from pellucid.surrogates.counts import Unit, row_weights, score_table, shares, units_of

if TYPE_CHECKING:
    from pellucid.surrogates.slalom import Slalom

_NOTHING = 1e-11  # an eigenvalue of less than this part of the largest tells nothing
_TOUCHED = 1e-4  # a parameter is untold where this much of it lies in such directions


class Told(NamedTuple):
    """Standard errors, and how well the worst direction is told."""

    value: Tensor  # u c
    importance: Tensor  # u
    identified: Tensor  # u: whether an importance shows in the scores at all
    smallest: Tensor  # up to five eigenvalues, the gauge's left out


def standard_errors(
    counts: Tensor, target: Tensor, weights: Tensor, value: Tensor, importance: Tensor
) -> Told:
    """The roots of the diagonal of sigma^2 (J' J)^-1, with importances that sum to zero.

    Infinite where no score depends on a parameter, and where no row is left to tell the noise.

    The number of rows, not of copies, counts the evidence: a model asked twice says the same.
    """
    (rows, units), classes = counts.shape, value.shape[1]
    share = shares(counts, importance)
    output = share @ value
    slope = share[..., None] * (value - output[:, None])  # b u c
    jacobian = counts.new_zeros(rows, classes, classes + 1, units)
    for c in range(classes):
        jacobian[:, c, c] = share
    # Importances are given by all their directions but the gauge's, which stay of unit length.
    jacobian[:, :, classes] = (slope - slope.mean(dim=1, keepdim=True)).transpose(1, 2)
    scale = (weights * rows).sqrt()
    flat = (scale[:, None, None, None] * jacobian).flatten(2).flatten(0, 1)  # b*c (c+1)*u
    eigenvalues, vectors = torch.linalg.eigh(flat.T @ flat)
    gauge = torch.zeros(flat.shape[1], dtype=counts.dtype)
    gauge[classes * units :] = units**-0.5
    told = eigenvalues > _NOTHING * eigenvalues.max()
    vectors = vectors - gauge[:, None] * (gauge @ vectors)
    free = max(int((scale > 0).sum()) * classes - int(told.sum()), 0)
    error = float((weights * rows) @ (output - target).square().sum(dim=1))
    variance = error / free if free else torch.inf
    unit = (vectors[:, told].square() / eigenvalues[told]).sum(dim=1)
    spread = torch.where(unit > 0, variance * unit, 0.0)
    lost = vectors[:, ~told].square().sum(dim=1).sqrt() > _TOUCHED
    errors = torch.where(lost, torch.inf, spread.sqrt()).reshape(classes + 1, units)
    identified = ~lost.reshape(classes + 1, units)[classes]
    return Told(errors[:classes].T, errors[classes], identified, eigenvalues[1:6] / rows)


def refit_errors(
    sequences: Sequence[Sequence[Unit]],
    scores: Any,
    *,
    times: int = 50,
    seed: int = 0,
    preset: str = "default",
    **settings: Any,
) -> tuple[Tensor, Tensor]:
    """Standard deviations of values (u) or (u c) and importances (u) over refits.

    Each refit draws as many sequences as there are, with replacement; `scores` and `weights` go
    with them. A unit that a draw leaves out keeps its prior there.
    """
    from pellucid.surrogates.slalom import Slalom

    generator = torch.Generator().manual_seed(seed)
    table = score_table(scores, len(sequences))
    weights = row_weights(settings.pop("weights", None), len(sequences))
    settings = {"units": units_of(sequences), "diagnose": False, **settings}
    fits: list[Slalom] = []
    for _ in range(integer("times", times, 2)):
        rows = torch.multinomial(weights, len(sequences), replacement=True, generator=generator)
        drawn = rows.bincount(minlength=len(sequences))
        fits.append(Slalom.fit(sequences, table, preset, weights=drawn, **settings))
    values = torch.stack([fit.value for fit in fits])
    importances = torch.stack([fit.importance for fit in fits])
    return values.std(dim=0), importances.std(dim=0)
