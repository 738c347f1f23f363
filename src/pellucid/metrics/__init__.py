"""The table of all metrics: one file each, one line each."""

from __future__ import annotations

from pellucid._spec import Metric
from pellucid.metrics.aopc import aopc
from pellucid.metrics.attention_auroc import attention_auroc
from pellucid.metrics.completeness_gap import completeness_gap
from pellucid.metrics.comprehensiveness import comprehensiveness
from pellucid.metrics.deletion import deletion
from pellucid.metrics.energy_pointing_game import energy_pointing_game
from pellucid.metrics.infidelity import infidelity
from pellucid.metrics.insertion import insertion
from pellucid.metrics.insertion_minus_deletion import insertion_minus_deletion
from pellucid.metrics.log_odds import log_odds
from pellucid.metrics.max_sensitivity import max_sensitivity
from pellucid.metrics.mean_average_precision import mean_average_precision
from pellucid.metrics.mean_iou import mean_iou
from pellucid.metrics.naive_bayes_correlation import naive_bayes_correlation
from pellucid.metrics.perturbation import negative_perturbation, positive_perturbation
from pellucid.metrics.pixel_accuracy import pixel_accuracy
from pellucid.metrics.pointing_game import pointing_game
from pellucid.metrics.rationale_auprc import rationale_auprc
from pellucid.metrics.rationale_auroc import rationale_auroc
from pellucid.metrics.rationale_cosine import rationale_cosine
from pellucid.metrics.removal_correlation import removal_correlation
from pellucid.metrics.removal_fidelity import removal_fidelity
from pellucid.metrics.road import road
from pellucid.metrics.runtime import runtime
from pellucid.metrics.sparseness import sparseness
from pellucid.metrics.sufficiency import sufficiency
from pellucid.metrics.text_deletion import text_deletion
from pellucid.metrics.text_insertion import text_insertion
from pellucid.metrics.weight_randomisation import weight_randomisation

METRICS: dict[str, Metric] = {
    found.name: found
    for found in (
        deletion,
        insertion,
        insertion_minus_deletion,
        text_deletion,
        text_insertion,
        comprehensiveness,
        sufficiency,
        removal_fidelity,
        removal_correlation,
        infidelity,
        completeness_gap,
        weight_randomisation,
        naive_bayes_correlation,
        rationale_cosine,
        rationale_auroc,
        rationale_auprc,
        attention_auroc,
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
        road,
        runtime,
    )
}
