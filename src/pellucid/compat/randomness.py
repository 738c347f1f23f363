"""Libraries that draw from the process's own generators, kept from disturbing anything."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Inside the block all global generators start from the seed; after it they are as before."""
    python, numpy = random.getstate(), np.random.get_state()
    devices = [] if device.type == "cpu" else [device]
    try:
        with torch.random.fork_rng(devices, device_type=device.type):
            torch.manual_seed(seed)
            random.seed(seed)
            np.random.seed(seed % 2**32)
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
