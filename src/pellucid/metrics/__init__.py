"""The table of all metrics: one file each, one line each."""

from __future__ import annotations

from pellucid._spec import Metric
from pellucid.metrics.deletion import deletion
from pellucid.metrics.insertion import insertion
from pellucid.metrics.insertion_minus_deletion import insertion_minus_deletion
from pellucid.metrics.text_deletion import text_deletion

METRICS: dict[str, Metric] = {
    found.name: found
    for found in (
        deletion,
        insertion,
        insertion_minus_deletion,
        text_deletion,
    )
}
