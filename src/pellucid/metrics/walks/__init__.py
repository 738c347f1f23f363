"""The table of all metrics of walks: what SiMEC and SiMExp are told apart by.

One file each. A metric is a function of an `Evidence` that returns a `WalkMeasured`, or raises a
`Skip` with the reason why this walk has no such number.
"""

from __future__ import annotations

from pellucid._spec import WalkMetric
from pellucid.metrics.walks._evidence import Evidence as Evidence
from pellucid.metrics.walks._evidence import Skip as Skip
from pellucid.metrics.walks._evidence import WalkMeasured as WalkMeasured
from pellucid.metrics.walks.catch_up import catch_up, catch_up_delay
from pellucid.metrics.walks.class_probability import (
    original_probability,
    probability_gap,
    top_probability,
)
from pellucid.metrics.walks.decoded_correlation import decoded_correlation
from pellucid.metrics.walks.first_change import first_change
from pellucid.metrics.walks.informative_images import (
    informative_per_second,
    informative_share,
    pictures_per_second,
)
from pellucid.metrics.walks.pixel_change import pixel_change
from pellucid.metrics.walks.prediction_changes import prediction_changes
from pellucid.metrics.walks.probability_drift import probability_drift
from pellucid.metrics.walks.ranking_changes import ranking_changes
from pellucid.metrics.walks.ranking_correlation import ranking_correlation
from pellucid.metrics.walks.seconds_per_token import seconds_per_token
from pellucid.metrics.walks.suggested_class import (
    flip_rate,
    probability_changed,
    probability_stayed,
)
from pellucid.metrics.walks.token_change import token_change
from pellucid.metrics.walks.volume_ratio import volume_ratio
from pellucid.metrics.walks.wasserstein import wasserstein

WALK_METRICS: dict[str, WalkMetric] = {
    found.name: found
    for found in (
        prediction_changes,
        ranking_changes,
        ranking_correlation,
        first_change,
        original_probability,
        top_probability,
        probability_gap,
        probability_drift,
        volume_ratio,
        seconds_per_token,
        wasserstein,
        decoded_correlation,
        catch_up,
        catch_up_delay,
        flip_rate,
        probability_changed,
        probability_stayed,
        pixel_change,
        token_change,
        pictures_per_second,
        informative_share,
        informative_per_second,
    )
}
