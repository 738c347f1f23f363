"""Walks against what must hold of them: by the invariants, for batches, and for every task."""

import pytest
import torch

import pellucid
from pellucid.testing.tiny import build, sample_inputs

DOUBLE = torch.float64


def walk(adapter, raw=None, **options):
    raw = sample_inputs(adapter)[0] if raw is None else raw
    return pellucid.explore(adapter, raw, **{"steps": 4, "save_every": 1} | options)


# ---- what is reported ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [{"num_labels": 1}, {"problem_type": "multi_label_classification"}, {}],
    ids=["regression", "multilabel", "classification"],
)
def test_drift_and_divergence_are_those_of_the_saved_predictions(changes):
    """Every task, and a float64 model, whose prediction needs no conversion that would copy it."""
    adapter = build("bert", dtype=DOUBLE, **changes)
    tr = walk(adapter, goal="leave")
    first, then = tr.probabilities[0], tr.probabilities
    assert torch.allclose(tr.drift, (then - first).abs().amax(dim=1), rtol=0, atol=1e-15)
    assert tr.drift[-1] > 1e-3
    expected = torch.zeros(len(then), dtype=DOUBLE)
    if adapter.task != "regression":
        expected = (first * (first / then).log()).sum(dim=1)
    if adapter.task == "multilabel":
        expected += ((1 - first) * ((1 - first) / (1 - then)).log()).sum(dim=1)
    assert torch.allclose(tr.series["divergence"], expected, atol=1e-13)
