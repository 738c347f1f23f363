"""Autocast belongs to the model, not to our formulas.

Inside `formulas` autocast is off, so that sums over tokens and products of maps keep float32 or
better; inside `model`, which every forward pass enters, it is again what the caller had chosen.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch

_chosen: ContextVar[torch.dtype | None] = ContextVar("autocast of the caller", default=None)


def caller_autocast(device: torch.device) -> torch.dtype | None:
    """The type that the caller's autocast computes in on this device; None where it is off."""
    if not torch.is_autocast_enabled(device.type):
        return None
    return torch.get_autocast_dtype(device.type)


@contextmanager
def formulas(device: torch.device) -> Iterator[None]:
    """Inside the block autocast is off but for the model's own passes."""
    token = _chosen.set(caller_autocast(device))
    try:
        with torch.autocast(device.type, enabled=False):
            yield
    finally:
        _chosen.reset(token)


@contextmanager
def model(device: torch.device) -> Iterator[None]:
    """Inside the block the model runs under the autocast that the caller chose."""
    dtype = _chosen.get()
    if dtype is None:
        yield
        return
    with torch.autocast(device.type, dtype=dtype):
        yield
