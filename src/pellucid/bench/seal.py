"""The seal of a unit: a hash of its numbers, by which damage is seen."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from pellucid.bench.units import Row, canonical


def seal(rows: Iterable[Row]) -> str:
    """SHA-256 of all that the rows say, in their order."""
    content = [[row.sample, row.measure, row.value, row.skipped, row.detail] for row in rows]
    return hashlib.sha256(canonical(content).encode()).hexdigest()
