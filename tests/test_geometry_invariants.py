"""Walks against what must hold of them: by the invariants, for batches, and for every task."""

import numpy as np
import pytest
import torch
from torch import nn

import pellucid
from pellucid.explorer.corrector import Corrected, Frame, correct
from pellucid.testing.tiny import build, sample_inputs, word_piece

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


# ---- directions and lengths ----------------------------------------------------------------------


@pytest.mark.parametrize("correct", [True, False])
def test_persistence_is_the_cosine_between_steps(correct):
    """However short they are: v <- rho v + sqrt(1 - rho^2) z, in very many dimensions."""
    tr = walk(
        build("vit", dtype=DOUBLE), persistence=0.8, correct=correct, step=1e-3, steps=30,
        direction="persistent",
    )  # fmt: skip
    moves = tr.points.diff(dim=0).flatten(1)
    moves = moves / moves.norm(dim=1, keepdim=True)
    cosine = (moves[1:] * moves[:-1]).sum(dim=1)
    assert abs(float(cosine.mean()) - 0.8) < 0.02


@pytest.mark.parametrize(
    "options",
    [
        {"within": "bounds"},
        {"within": "layernorm"},
        {"direction": "toward", "toward": "a plot was slow", "tokens": [2]},
        {"direction": "toward", "toward": "a plot was slow", "tokens": [2], "correct": False},
        {"goal": "leave", "direction": "boundary"},
        {"direction": "trial", "within": "bounds"},
    ],
)
def test_the_length_is_that_of_the_path_of_states(options):
    """In whatever coordinates it was walked: the sum of |dx| over the moved tokens."""
    tr = walk(build("bert", dtype=DOUBLE), "the film is fine", steps=10, **options)
    moves = tr.points.diff(dim=0).flatten(1).norm(dim=1)
    assert torch.allclose(tr.series["step"][1:], moves, rtol=1e-9)
    assert torch.allclose(tr.length[1:], moves.cumsum(dim=0), rtol=1e-9)
    assert moves.sum() > 0


def test_towards_another_input_heads_straight_at_it():
    """Only the moved tokens count: their direction is that of the gap, less what is held."""
    adapter = build("bert", dtype=DOUBLE)
    options = {"direction": "toward", "toward": "a plot was slow", "tokens": [2], "steps": 1}
    tr = walk(adapter, "the film is fine", correct=False, step=1e-2, **options)
    encoded = adapter.encode(["a plot was slow"], pellucid.Target.predicted())
    gap = (adapter.value_at(encoded, "embedding")[0, [2]] - tr.points[0]).flatten()
    metric = pellucid.metric_at(adapter, "the film is fine", tokens=[2])
    free = metric.null_project(gap.view(1, -1)).flatten()
    move = (tr.points[1] - tr.points[0]).flatten()
    assert torch.allclose(move, 1e-2 * free / free.norm(), atol=1e-12)


def test_towards_an_input_outside_the_region_is_towards_its_nearest_state():
    adapter = build("vit", dtype=DOUBLE)
    first, second, third = sample_inputs(adapter)
    box = pellucid.feasible(adapter, [first, third])
    tr = walk(adapter, first, within=box, direction="toward", toward=second, steps=20)
    encoded = adapter.encode([second], pellucid.Target.predicted())
    state = adapter.value_at(encoded, "embedding")[:, 1:]
    nearest = state.clamp(box.low[:, 1:], box.high[:, 1:])
    gaps = (tr.points - nearest).flatten(1).norm(dim=1)
    assert gaps[-1] < gaps[0]
    assert tr.drift.max() <= 1e-6


@pytest.mark.parametrize("other", [0, 2])
def test_every_input_of_a_batch_must_be_as_long_as_the_one_to_walk_towards(other):
    """Padding does not count, whichever input is the longest."""
    adapter = build("bert", dtype=DOUBLE)
    raw = sample_inputs(adapter)
    with pytest.raises(pellucid.ArgumentError, match="another number of tokens"):
        walk(adapter, raw, direction="toward", toward=raw[other])


@pytest.mark.parametrize("options", [{"goal": "leave", "direction": "boundary"}, {"goal": 2}])
def test_a_walk_to_a_boundary_keeps_to_its_region(options):
    adapter = build("vit", dtype=DOUBLE)
    black_and_white = (sample_inputs(adapter)[0] // 128) * np.uint8(255)  # at the walls
    tr = walk(adapter, black_and_white, space="pixels", steps=200, **options)
    ends = torch.stack(
        [adapter.reader.normalise(torch.full((1, 3, 1, 1), v, dtype=DOUBLE)) for v in (0, 1)]
    )
    assert tr.outcome.startswith("The walk arrived")
    assert tr.points.min() >= ends.min() - 1e-12
    assert tr.points.max() <= ends.max() + 1e-12


# ---- corrections ---------------------------------------------------------------------------------


class Parabola:
    """y = 1 + 1000 w^2, which has no zero, beside a slope of one."""

    def __init__(self):
        self.passes = 0

    def values(self, w, rows):
        self.passes += 1
        y = 1 + 1000 * w[:, 0] ** 2
        return y, y.clone()

    def run(self, name, program, parts, rows):
        return program(rows, parts)


def test_a_correction_that_makes_it_worse_is_given_up():
    level, one = Parabola(), torch.ones(1, 1, 1, dtype=DOUBLE)
    none, number = torch.zeros_like(one), torch.ones(1, 1, dtype=DOUBLE)
    count = torch.zeros(1, dtype=torch.long)
    start = Corrected(none, number, number, one, number, 0 * number, number[0], count)
    found = correct(level, start, none, one, 0 * number, torch.arange(1), 1e-9)
    assert found.residual > 4
    assert level.passes == 1, "one correction, and no second one"


# ---- batches -------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch_size", [1, 2, 3, 64])
def test_repeats_do_not_depend_on_the_size_of_batches(batch_size):
    adapter = build("bert", dtype=DOUBLE)
    raw = sample_inputs(adapter)[:2]
    found = pellucid.explore(adapter, raw, repeats=3, steps=2, batch_size=batch_size)
    assert [one.settings["repeat"] for one in found] == [0, 1, 2] * 2
    ends = [one.points[-1].flatten() for one in found]
    for first in (0, 3):
        for i, j in ((0, 1), (0, 2), (1, 2)):
            assert (ends[first + i] - ends[first + j]).norm() > 0.1
    alone = pellucid.explore(adapter, raw[1], repeats=3, steps=2)
    for one, other in zip(found[3:], alone, strict=True):
        assert torch.allclose(one.points, other.points, rtol=0, atol=1e-9)


# ---- what cannot be ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"goal": 0},
        {"goal": "leave", "direction": "boundary"},
        {"goal": "leave", "direction": "gradient"},
        {"direction": "gradient"},
    ],
)
def test_one_output_has_no_other_class(options):
    adapter = build("bert", dtype=DOUBLE, num_labels=1)
    with pytest.raises(pellucid.ArgumentError, match="needs a model that has several"):
        walk(adapter, **options)
    assert walk(adapter, goal="leave", direction="max").drift[-1] > 0, "the line that is given"


def test_tokens_of_a_model_that_has_none():
    adapter = build("swin", dtype=DOUBLE)
    for call in (pellucid.explore, pellucid.metric_at):
        with pytest.raises(pellucid.ArgumentError, match="no tokens to choose from"):
            call(adapter, sample_inputs(adapter)[0], space="pixels", tokens=[3])


@pytest.mark.parametrize("direction", ["trial", "gradient", "isotropic", "eigenvector", "released"])
def test_what_only_a_kernel_can_correct(direction):
    with pytest.raises(pellucid.ArgumentError, match="cannot be corrected"):
        walk(build("bert", dtype=DOUBLE), direction=direction, correct=True)


def test_a_block_without_a_kernel():
    """Room enough for all tokens together is none for each by itself."""
    adapter = build("bert", dtype=DOUBLE)
    with pytest.raises(pellucid.ArgumentError, match="no direction that leaves the prediction"):
        walk(adapter, output="hidden", metric="blocks")
    assert walk(adapter, output="hidden").completed
    assert walk(adapter, output="hidden", tokens=[1], direction="isotropic").completed


@pytest.mark.parametrize("goal", [0, 1, 2])
def test_log_odds_are_of_the_class_to_walk_to(goal):
    tr = walk(build("bert", dtype=DOUBLE), goal=goal, direction="lift", output="log_odds", step=0.1)
    assert (tr.probabilities[:, goal].diff() > 0).all()


def test_directions_that_change_nothing_are_not_corrected_along():
    """Singular values down to 1e-7 of the largest are told from none, as J J' alone could not."""
    generator = torch.Generator().manual_seed(3)
    left, right = (
        torch.linalg.qr(torch.randn(n, 5, generator=generator, dtype=DOUBLE))[0] for n in (5, 40)
    )
    sizes = torch.tensor([1.0, 1e-2, 1e-4, 1e-7, 0.0], dtype=DOUBLE)
    jacobian = (left * sizes) @ right.T
    frame = Frame.of(jacobian[None], 1e-9)
    basis = frame.basis[0][frame.basis[0].norm(dim=1) > 0]
    assert len(basis) == 4
    assert torch.allclose(basis @ basis.T, torch.eye(4).double(), atol=1e-13)
    small = left @ torch.tensor([0, 0, 0, 1.0, 0], dtype=DOUBLE)
    move = frame.basis[0].T @ (frame.inverse[0] @ small)  # the least that changes y by that
    assert torch.allclose(jacobian @ move, small, atol=1e-6)


MEMBERS = {
    "persistent": {},
    "long steps": {"longest": 5.0},
    "ends at a distance": {"distance": 1.0, "longest": 0.6},
    "mixed": {"persistence": 0.5},
    "haar": {"direction": "haar"},
    "away": {"direction": "away"},
    "word": {"space": "word"},
    "hidden:1": {"space": "hidden:1"},
    "hidden:2": {"space": "hidden:2"},
    "bounds": {"within": "bounds"},
    "layernorm": {"within": "layernorm"},
    "box": {"within": "box"},
    "projected": {"within": "box", "correct": False, "step": 2.0, "longest": 9.0},
    "hidden": {"output": "hidden"},
    "fisher": {"output": "fisher", "top_k": 2},
    "heun": {"solver": "heun", "direction": "fixed", "step": 0.2},
    "rk4": {"solver": "rk4", "direction": "fixed", "step": 0.2},
    "adaptive": {"step": "adaptive", "direction": "fixed", "tolerance": 1e-4},
    "paper": {"preset": "paper"},
    "paper, leaving": {"preset": "paper", "goal": "leave"},
    "published": {"preset": "published"},
    "published, leaving": {"preset": "published", "goal": "leave"},
    "released, leaving": {"preset": "released", "goal": "leave"},
    "lift": {"goal": "leave", "direction": "lift"},
    "blocks": {"goal": "leave", "direction": "max", "metric": "blocks"},
    "boundary": {"goal": "leave", "direction": "boundary"},
    "class": {"goal": 1, "steps": 20},
    "trial": {"direction": "trial", "step": 0.3},
    "gradient": {"direction": "gradient", "step": 0.3, "goal": "leave"},
    "isotropic": {"direction": "isotropic", "step": 0.3},
    "top": {"tokens": pellucid.Top(2)},
}


def assert_members(adapter, options, raw, groups=((0, 1, 2), (2, 0))):
    """Any batch of these inputs walks as each of them does alone, up to rounding."""
    options = {"steps": 4, "save_every": 2} | options
    alone = [pellucid.explore(adapter, one, **options) for one in raw]
    for numbers in groups:
        several = pellucid.explore(adapter, [raw[i] for i in numbers], **options)
        for found, i in zip(several, numbers, strict=True):
            assert found.outcome == alone[i].outcome
            assert torch.equal(found.iterations, alone[i].iterations)
            assert torch.allclose(found.points, alone[i].points, rtol=0, atol=1e-10)
            assert torch.allclose(found.probabilities, alone[i].probabilities, rtol=0, atol=1e-10)
            for name, values in found.series.items():
                assert torch.allclose(values, alone[i].series[name], rtol=1e-9, atol=1e-10), name
    return alone


@pytest.mark.parametrize("name", MEMBERS)
def test_a_batch_walks_as_its_members(name):
    """Inputs of three lengths, by every kind of step; rounding differs, and a walk amplifies it."""
    adapter = build("bert", dtype=DOUBLE)
    raw, options = sample_inputs(adapter), dict(MEMBERS[name])
    if options.get("within") == "box":
        options["within"] = pellucid.feasible(adapter, raw)
    alone = assert_members(adapter, options, raw)
    if name == "class":
        assert len({one.steps for one in alone}) == 3, "they arrive one after the other"


@pytest.mark.parametrize("options", [{}, {"goal": 2, "steps": 20}])
def test_a_batch_of_images_walks_as_its_members_over_pixels(options):
    adapter = build("vit", dtype=DOUBLE)
    assert_members(adapter, {"space": "pixels"} | options, sample_inputs(adapter))


def test_an_input_that_is_stuck_does_not_hold_up_the_others():
    adapter = build("bert", dtype=DOUBLE)
    raw = sample_inputs(adapter)
    with torch.no_grad():
        first = adapter.output(adapter.encode(raw, pellucid.Target.predicted())).logits[:, 0]
    middle = float(first.median())

    def jagged(logits):
        """Nothing that a step could hold, for inputs with a large first logit."""
        return torch.where(logits[:, :1] > middle + 1e-3, (logits * 1e14).floor(), logits)

    alone = assert_members(adapter, {"output": jagged, "longest": 0.01}, raw)
    ends = [one.outcome.split(",")[0] for one in alone]
    assert sorted(ends) == ["All steps were taken."] * 2 + ["No step"]


# ---- numbers that are given ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [{"top_k": 0}, {"top_k": 1.5}, {"persistence": 2.0}, {"persistence": "much"}, {"absolute": -1}],
)
def test_numbers_out_of_their_range(options):
    with pytest.raises(pellucid.ArgumentError, match=next(iter(options))):
        walk(build("bert", dtype=DOUBLE), **options)


def test_top_k_counts_without_a_named_output():
    mlm, classifier = build("bert-mlm", dtype=DOUBLE), build("bert", dtype=DOUBLE)
    assert (
        walk(mlm, top_k=5, steps=1).settings["output"] == "fisher of the 5 likeliest and the rest"
    )
    assert pellucid.metric_at(mlm, "the film is [MASK]", top_k=5).rank == 5
    assert pellucid.metric_at(classifier, "the film is fine", top_k=1).rank == 1
    found, named = (
        pellucid.explain(mlm, "the film is [MASK]", method="pullback", top_k=5, output=output)
        for output in ("default", "fisher")
    )
    assert torch.equal(found.scores, named.scores)


@pytest.mark.parametrize("options", [{}, {"goal": "leave"}, {"direction": "haar", "step": 0.1}])
def test_an_output_without_a_derivative_is_said(options):
    with pytest.raises(pellucid.NumericalError, match="derivative of the output"):
        walk(build("bert", dtype=DOUBLE), output=lambda z: z / 0, **options)


def test_a_region_of_one_state():
    adapter = build("vit", dtype=DOUBLE)
    raw = sample_inputs(adapter)[0]
    with pytest.raises(pellucid.ArgumentError, match="holds a single state"):
        walk(adapter, raw, within=pellucid.feasible(adapter, [raw]))


def test_the_word_that_an_error_says_to_type_can_be_typed():
    adapter = build("bert", dtype=DOUBLE)
    with pytest.raises(pellucid.ArgumentError, match=r"tokens=\['unfinely'\]"):
        walk(adapter, "unfinely film", tokens="zebra")
    assert walk(adapter, "unfinely film", tokens=["unfinely"], steps=1).tokens == (1, 2, 3)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"within": "bounds"},
        {"goal": "leave", "direction": "boundary"},
        {"goal": 2, "output": "fisher"},
        {"direction": "trial"},
    ],
)
def test_without_a_metric_at_both_ends_the_polygon_of_outputs_is_the_pseudolength(options):
    tr = walk(build("bert", dtype=DOUBLE), **options)
    assert torch.allclose(tr.pseudolength, tr.series["output_length"], rtol=1e-9, atol=1e-15)


# ---- invariants of the whole ---------------------------------------------------------------------


class Mixing(nn.Module):
    """One attention without positions, and a head: permuting its tokens changes nothing else."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(300, 8)
        self.blocks = nn.ModuleList([Attending()])
        self.head = nn.Linear(8, 3)

    def forward(self, input_ids):
        x = self.table(input_ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(dim=1))


class Attending(nn.Module):
    """Tokens read each other by what they are alone."""

    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(8, 24)

    def forward(self, x):
        q, k, v = self.mix(x)[:, None].chunk(3, dim=-1)
        return x + nn.functional.scaled_dot_product_attention(q, k, v)[:, 0]


@pytest.fixture(scope="module")
def mixing():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = Mixing().eval().double()
    return pellucid.adapt(module, word_piece(), labels=["x", "y", "z"])


def test_importance_moves_with_the_tokens(mixing):
    scores, permuted = (
        pellucid.explain(mixing, raw, method="pullback").scores[1:-1]
        for raw in ("the film is fine", "fine is the film")
    )
    assert torch.allclose(scores[[3, 2, 0, 1]], permuted, rtol=1e-8)
    assert scores.std() > 1e-3 * scores.mean()


@pytest.mark.parametrize("goal", ["stay", "leave"])
@pytest.mark.parametrize(("step", "power"), [("seed", -1), ("published", 0)])
def test_how_steps_scale_with_the_output(mixing, step, power, goal):
    """Psi times a: eigenvalues times a^2, the seed's steps over a, the published ones unchanged."""
    options = {"goal": goal, "step": step, "steps": 1, "longest": 1e9, "scale": 0.1}
    options |= {"correct": False, "direction": {"stay": "haar", "leave": "max"}[goal]}
    one, other = (
        walk(mixing, "the film is fine", output=output, **options)
        for output in (lambda z: z, lambda z: 5 * z)
    )
    assert torch.allclose(other.length, one.length * 5.0**power, rtol=1e-8)
    spectra = [
        pellucid.metric_at(mixing, "the film is fine", output=output).values
        for output in (lambda z: z, lambda z: 5 * z)
    ]
    assert torch.allclose(spectra[1], 25 * spectra[0], rtol=1e-8)


@pytest.fixture(scope="module")
def narrow():
    """Eight numbers a token, so that a few hundred walks fill the sphere."""
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1}
    return build("bert", dtype=DOUBLE, **sizes)


@pytest.mark.parametrize("metric", ["joint", "blocks"])
def test_random_directions_are_uniform_over_the_kernel(narrow, metric):
    """Mean 0 and covariance P / (n - r), with P the projector on the kernel, over many walks."""
    count = 600
    found = pellucid.explore(
        narrow, "the film is fine", tokens=[2], direction="haar", correct=False, step=1.0,
        longest=9.0, steps=1, save_every=1, repeats=count, batch_size=count, metric=metric,
        output="centred_logits",
    )  # fmt: skip
    moves = torch.stack([(one.points[1] - one.points[0]).flatten() for one in found])
    at = pellucid.metric_at(narrow, "the film is fine", tokens=[2], output="centred_logits")
    projector = torch.stack([at.null_project(e.view(1, -1)).flatten() for e in torch.eye(8)])
    assert at.dimension == 6
    assert torch.allclose(moves.norm(dim=1), torch.ones(()).double())
    assert moves.mean(dim=0).norm() < 3 / count**0.5
    covariance = moves.T @ moves / count
    assert (covariance - projector.double() / 6).norm() < 3 / count**0.5
    assert (moves @ at.rows[:, 0].T).abs().max() < 1e-12, "first-order null"


def test_every_eigenvalue_is_left_along_as_often(narrow):
    """Line 6 of Algorithm 2: one of the w_l at random; to first order psi moves by d sqrt(l)."""
    count, step = 300, 1e-6
    found = pellucid.explore(
        narrow, "the film is fine", goal="leave", direction="uniform", sign="random", step=step,
        steps=1, repeats=count, batch_size=count, output="logits",
    )  # fmt: skip
    sizes = pellucid.metric_at(narrow, "the film is fine", output="logits").values[:3].sqrt()
    moved = torch.stack([one.series["output_length"][-1] for one in found]) / step
    gap, nearest = (moved[:, None] / sizes - 1).abs().min(dim=1)
    assert gap.max() < 1e-4
    assert (nearest.bincount(minlength=3) - count / 3).abs().max() < 3 * (count * 2 / 9) ** 0.5


def test_a_walk_with_fresh_jacobians_is_the_integral_of_the_field(mixing, monkeypatch):
    """Reuse of none: with steps that get shorter both follow P0(x) v, corrected or not."""
    monkeypatch.setattr("pellucid.explorer.inside._HARD", -1)
    gaps = []
    for steps in (20, 80):
        rules = {"direction": "fixed", "steps": steps, "step": 0.8 / steps, "save_every": steps}
        one = walk(mixing, "the film is fine", solver="rk4", correct=False, **rules)
        other = walk(mixing, "the film is fine", tolerance=1e-12, **rules)
        gaps.append(float((one.points[-1] - other.points[-1]).norm()))
    assert gaps[1] < 0.3 * gaps[0] < 1e-2


# ---- boxes of data, and what is read -------------------------------------------------------------


def test_a_box_of_quantiles_is_that_of_every_number():
    adapter = build("vit", dtype=DOUBLE)
    raw = sample_inputs(adapter)
    box = pellucid.feasible(adapter, raw, rule="quantile", amount=0.2)
    states = adapter.value_at(adapter.encode(raw, pellucid.Target.predicted()), "embedding")
    assert np.allclose(box.low[0], np.quantile(states.numpy(), 0.2, axis=0), atol=1e-12)
    assert np.allclose(box.high[0], np.quantile(states.numpy(), 0.8, axis=0), atol=1e-12)


@pytest.mark.parametrize(
    ("inputs", "options", "said"),
    [
        ([], {}, "no inputs to make a box of"),
        (["the film is fine"], {"batch_size": 0}, "batch_size"),
        (["the film is fine"], {"rule": "quantile", "amount": 0.7}, "does not make a box"),
        (["the film is fine"], {"rule": "gauss", "amount": -1.0}, "does not make a box"),
    ],
)
def test_boxes_that_cannot_be_made(inputs, options, said):
    with pytest.raises(pellucid.ArgumentError, match=said):
        pellucid.feasible(build("bert", dtype=DOUBLE), inputs, **options)


@pytest.mark.parametrize("family", ["vit", "deit-distilled", "bert", "bert-mlm", "gpt2-lm"])
@pytest.mark.parametrize("goal", ["stay", "leave"])
def test_computing_only_what_is_read_changes_no_walk(family, goal, monkeypatch):
    """Tiny models save too little to do so by themselves."""
    adapter = build(family, dtype=DOUBLE)
    raw = sample_inputs(adapter)
    assert adapter.anatomy.behind
    found = []
    for least in (0, 2**62):
        monkeypatch.setattr("pellucid.adapters.torch_model._WORTH_SAVING", least)
        found.append(pellucid.explore(adapter, raw, goal=goal, steps=3, save_every=1))
    for one, other in zip(*found, strict=True):
        assert torch.allclose(one.points, other.points, rtol=0, atol=1e-10)
        assert torch.allclose(one.probabilities, other.probabilities, rtol=0, atol=1e-10)


# ---- the papers' presets, one step against dense matrices ----------------------------------------


@pytest.mark.parametrize("goal", ["stay", "leave"])
@pytest.mark.parametrize("preset", ["paper", "published", "released"])
def test_a_step_of_each_preset_against_dense_matrices(preset, goal):
    """Its direction is an eigenvector of g (or of each block) of the right kind, its length d.

    paper: 1 or 2 over sqrt(l_max); published: sqrt(l_min / l_max), l_min the least that is not
    zero; released: sqrt(1e-6 / l_max), with the absolute threshold 0.01 on eigenvalues.
    """
    adapter, raw = build("bert", dtype=DOUBLE), "the film is fine"
    rules = {"preset": preset, "goal": goal, "steps": 1}
    if preset == "published":
        rules["within"] = pellucid.feasible(
            adapter, sample_inputs(adapter), rule="gauss", amount=99
        )
    tr = walk(adapter, raw, **rules)
    metric = pellucid.metric_at(adapter, raw, output="logits")
    rows = metric.rows.flatten(1)[None] if preset == "paper" else metric.rows.transpose(0, 1)
    moves = (tr.points[1] - tr.points[0]).view(len(rows), -1)
    for b, move in zip(rows, moves, strict=True):
        g = b.T @ b
        values = torch.linalg.eigvalsh(g)
        largest, least = values[-1], values[-3]
        expected = {
            "paper": {"stay": 1.0, "leave": 2.0}[goal] / largest.sqrt(),
            "published": (least / largest).sqrt(),
            "released": (1e-6 / largest).sqrt(),
        }[preset]
        assert torch.allclose(move.norm(), expected, rtol=1e-6)
        unit = move / move.norm()
        value = unit @ g @ unit
        assert torch.allclose(g @ unit, value * unit, atol=1e-9 * float(largest))
        bound = 0.01 if preset == "released" else 1e-12 * float(largest)
        nonzero = values[values > bound]
        if goal == "leave" and len(nonzero):
            assert (nonzero / value - 1).abs().min() < 1e-6
        elif preset != "released":
            assert value <= bound
        else:  # the rounded index may take the first that is not null
            assert value <= max(bound, float(values[values > bound].amin())) * (1 + 1e-9)
