"""Exact recovery of a SLALOM from single units and pairs. Leemann et al., TMLR 2024, appendix B.6.

The last step has the sign that makes the importances sum to the gauge; equation 58 lacks it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from pellucid._arguments import real
from pellucid._errors import ArgumentError, explain_error
from pellucid.surrogates.counts import Unit, Units, score_table

_LEAST = 1e-12  # a share of less than this cannot be told from nothing
Query = Callable[[list[tuple[Unit, ...]]], Any]


def recovered(
    query: Query, vocabulary: Sequence[Unit], gauge: float, symmetric: bool
) -> tuple[Units, Tensor, Tensor, Tensor]:
    """Units, values (u) or (u c), importances (u), and whether each importance is told (u)."""
    units = _different(vocabulary)
    singles: list[Units] = [(unit,) for unit in units]
    value = score_table(query(singles), len(singles))  # u, or u c: G([t]) = v(t)
    table = value.reshape(len(units), -1)  # u c
    even = torch.full((len(units),), real("gauge", gauge, 0.0) / len(units), dtype=torch.float64)
    if len(units) == 1:
        return units, value, even, torch.ones(1, dtype=torch.bool)
    low, high = _extremes(table)
    span = (table[high] - table[low]).norm()
    if span <= 1e-14 * table.abs().max():
        return units, value, even, torch.zeros(len(units), dtype=torch.bool)
    # Each unit is compared with the end that is farther from it: at least half the span away.
    far = torch.where(
        (table - table[low]).norm(dim=1) >= (table - table[high]).norm(dim=1), low, high
    )
    far[high], first = low, torch.arange(len(units))
    first = first[first != low]
    distance, told = _distances(query, units, table, first, far[first], symmetric)
    eta = torch.zeros(len(units), dtype=torch.float64)  # s(t) - s(low)
    identified = torch.ones(len(units), dtype=torch.bool)
    eta[first], identified[first] = distance, told
    by_high = far == high
    by_high[low] = False
    identified = identified & (~by_high | identified[high])
    eta = eta + torch.where(by_high, eta[high], 0.0)
    return units, value, eta + (gauge - eta.sum()) / len(units), identified


def _distances(
    query: Query, units: Units, value: Tensor, first: Tensor, second: Tensor, symmetric: bool
) -> tuple[Tensor, Tensor]:
    """s(first) - s(second) of pairs, and whether both shares are large enough to be told."""
    places = list(zip(first.tolist(), second.tolist(), strict=True))
    pairs: list[Units] = [(units[i], units[j]) for i, j in places]
    if symmetric:
        pairs += [(units[j], units[i]) for i, j in places]
    found = score_table(query(pairs), len(pairs)).reshape(len(pairs), -1)
    if symmetric:
        found = (found[: len(first)] + found[len(first) :]) / 2
    gap = value[first] - value[second]  # b c
    length = gap.square().sum(dim=1)
    share = ((found - value[second]) * gap).sum(dim=1) / length  # a, projected on all classes
    rest = ((value[first] - found) * gap).sum(dim=1) / length  # 1 - a, without cancellation
    told = (share > _LEAST) & (rest > _LEAST)
    return share.clamp(_LEAST, 1).log() - rest.clamp(_LEAST, 1).log(), told


def _extremes(value: Tensor) -> tuple[int, int]:
    """The two units whose values (u c) are farthest apart."""
    if value.shape[1] == 1:
        return int(value[:, 0].argmin()), int(value[:, 0].argmax())
    distance = torch.cdist(value, value, compute_mode="donot_use_mm_for_euclid_dist")
    return divmod(int(distance.argmax()), len(value))


def _different(vocabulary: Sequence[Unit]) -> Units:
    units = tuple(vocabulary)
    if not units or len(set(units)) < len(units):
        raise ArgumentError(
            explain_error(
                "the vocabulary cannot be recovered",
                got=f"{len(units)} units, {len(set(units))} of them different",
                expected="at least one unit, and each of them once",
                instead="vocabulary=list(dict.fromkeys(tokens))",
            )
        )
    return units
