"""How far a walk strays from its equivalence class. SiMEC, section 3, and its published version.

It misleads where a model is certain: a prediction near 1 hardly drifts however far its logits go.
"""

from __future__ import annotations

import torch

from pellucid._spec import walk_metric
from pellucid.metrics.walks._evidence import Evidence, Skip, WalkMeasured


@walk_metric(cite="benfenati2024unveiling", stay="lower", leave="higher")
def probability_drift(evidence: Evidence) -> WalkMeasured:
    """Largest change of any probability since the start: max_k max_c |p(k)_c - p(0)_c|.

    Over all steps and all classes, also those that were not saved.
    """
    drift = evidence.walk.drift
    if len(drift) < 2:
        raise Skip("one recorded point")
    return WalkMeasured(float(drift.max()), drift, torch.arange(len(drift)))
