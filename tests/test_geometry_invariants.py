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


# ---- steps of the papers' algorithms -------------------------------------------------------------


def saturated(family="bert"):
    """A model so certain that its probabilities have no gradient left."""
    adapter = build(family, dtype=DOUBLE)
    with torch.no_grad():
        adapter.module.classifier.weight.mul_(1e6)
    return adapter


@pytest.mark.parametrize("goal", ["stay", "leave"])
@pytest.mark.parametrize("metric", ["joint", "blocks"])
@pytest.mark.parametrize("preset", ["paper", "published", "released"])
def test_a_metric_of_zero_ends_by_name_and_never_with_nan(preset, metric, goal):
    """The paper's 1 / sqrt(l_max) is infinite there."""
    tr = walk(saturated(), preset=preset, goal=goal, metric=metric, output="probabilities")
    assert tr.outcome.startswith("The metric vanished")
    assert not tr.completed
    assert torch.isfinite(tr.points).all()
    assert all(torch.isfinite(found).all() for found in tr.series.values())
    assert tr.length[-1] == 0


@pytest.mark.parametrize("goal", ["stay", "leave"])
@pytest.mark.parametrize("preset", ["paper", "published", "released"])
def test_blocks_of_held_tokens_have_no_step(preset, goal):
    """Their metric is zero as well, and no number of the walk may become NaN by it."""
    tr = walk(build("bert", dtype=DOUBLE), preset=preset, goal=goal, metric="blocks", tokens=[2, 3])
    assert all(torch.isfinite(found).all() for found in tr.series.values())
    moves = tr.points.diff(dim=0).flatten(1).norm(dim=1)
    assert torch.allclose(tr.series["step"][1:], moves)
    assert tr.outcome == "All steps were taken."


@pytest.mark.parametrize("solver", ["euler", "midpoint", "heun", "rk4"])
@pytest.mark.parametrize("options", [{}, {"metric": "blocks"}, {"goal": "leave"}])
def test_some_of_a_batch_may_be_refused_a_step(solver, options):
    """Stages of a solver are evaluated for those alone that try again."""
    adapter = build("bert", dtype=DOUBLE)
    raw = sample_inputs(adapter)
    rules = {"step": "adaptive", "solver": solver, "tolerance": 1e-3, "steps": 6, "save_every": 1}
    rules |= {"direction": "fixed"} if "goal" not in options else {"direction": "max"}
    several = pellucid.explore(adapter, raw, **rules, **options)
    for one, alone in zip(several, raw, strict=True):
        single = pellucid.explore(adapter, alone, **rules, **options)
        assert torch.allclose(one.points, single.points, rtol=0, atol=1e-9)
        assert one.series["output_length"].diff().max() <= 1.001e-3


def test_an_adaptive_step_follows_from_the_one_before():
    """d <- d clip(0.9 (tol / e)^(1/2), 0.2, 5), also behind a step that was refused at first."""
    tolerance = 1e-7
    tr = walk(
        build("vit", dtype=DOUBLE), direction="fixed", step="adaptive", correct=False,
        tolerance=tolerance, steps=8, output="centred_logits",
    )  # fmt: skip
    step, error = tr.series["step"][1:], tr.series["output_length"].diff()
    factor = (0.9 * (tolerance / error).sqrt()).clamp(0.2, 5)
    assert torch.allclose(step[1:], (step * factor)[:-1], rtol=1e-3)


@pytest.mark.parametrize("metric", ["joint", "blocks"])
def test_null_eigenvectors_are_drawn_from_all_of_the_kernel(metric):
    """Unit moves of the walked tokens alone, each step another one, none a first-order change."""
    adapter = build("bert", dtype=DOUBLE)
    tr = walk(
        adapter, "the film is fine", direction="eigenvector", metric=metric, step=1e-4, steps=12,
        tokens=[2, 3], output="centred_logits",
    )  # fmt: skip
    assert tr.outcome == "All steps were taken."
    moves = tr.points.diff(dim=0) / 1e-4  # k m d
    sizes = moves.flatten(1).norm(dim=1) if metric == "joint" else moves.norm(dim=2)
    assert torch.allclose(sizes, torch.ones(()).double())
    assert tr.pseudolength[-1] < 1e-4 * tr.length[-1]
    flat = moves.flatten(1)
    alike = (flat @ flat.T).abs() / flat.norm(dim=1)[:, None] / flat.norm(dim=1)
    assert alike.fill_diagonal_(0).max() < 0.9


def test_the_authors_code_leaves_by_the_largest_eigenvalue_where_none_is_above_its_threshold():
    adapter = build("bert", dtype=DOUBLE)
    options = {"preset": "released", "goal": "leave", "absolute": 1e9, "steps": 1}
    tr = walk(adapter, "the film is fine", **options)
    assert tr.outcome == "All steps were taken."
    metric = pellucid.metric_at(adapter, "the film is fine", output="logits")
    for move, rows, values in zip(
        tr.points[1] - tr.points[0],
        metric.rows.transpose(0, 1),
        metric.token_values(),
        strict=True,
    ):
        assert float(move.norm()) == pytest.approx((1e-6 / float(values[0])) ** 0.5, rel=1e-6)
        ratio = (rows @ move).norm() / move.norm()
        assert float(ratio**2) == pytest.approx(float(values[0]), rel=1e-6)
