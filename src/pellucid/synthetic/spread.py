"""Means with their standard errors, as the tables of SLALOM's paper print them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import pstdev


def standard_error(values: Sequence[float]) -> float:
    """The standard deviation over n by the root of n, as the authors' code takes it; 0 for one."""
    return pstdev(values) / math.sqrt(len(values))
