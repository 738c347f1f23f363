"""The table of all metrics: one file each, one line each."""

from __future__ import annotations

from pellucid._spec import Metric
from pellucid.metrics.aopc import aopc
from pellucid.metrics.deletion import deletion
from pellucid.metrics.energy_pointing_game import energy_pointing_game
from pellucid.metrics.insertion import insertion
from pellucid.metrics.insertion_minus_deletion import insertion_minus_deletion
from pellucid.metrics.log_odds import log_odds
from pellucid.metrics.max_sensitivity import max_sensitivity
from pellucid.metrics.mean_average_precision import mean_average_precision
from pellucid.metrics.mean_iou import mean_iou
from pellucid.metrics.perturbation import negative_perturbation, positive_perturbation
from pellucid.metrics.pixel_accuracy import pixel_accuracy
from pellucid.metrics.pointing_game import pointing_game
from pellucid.metrics.runtime import runtime
from pellucid.metrics.sparseness import sparseness
from pellucid.metrics.text_deletion import text_deletion

METRICS: dict[str, Metric] = {
    found.name: found
    for found in (
        deletion,
        insertion,
        insertion_minus_deletion,
        text_deletion,
        sparseness,
        pointing_game,
        energy_pointing_game,
        pixel_accuracy,
        mean_iou,
        mean_average_precision,
        positive_perturbation,
        negative_perturbation,
        aopc,
        log_odds,
        max_sensitivity,
        runtime,
    )
}
