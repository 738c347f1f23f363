"""Walks: what stays, what leaves, at which order, and that nothing else moves."""

import itertools
import re

import numpy as np
import pytest
import torch
from torch import nn

import pellucid
from pellucid import ArgumentError, Target
from pellucid.testing.contract import assert_unchanged, fingerprint
from pellucid.testing.tiny import build, sample_inputs, word_piece

CLASSIFIERS = ["vit", "deit-distilled", "dinov2-registers", "clip-vision", "plain-image", "bert"]
CLASSIFIERS += ["roberta", "distilbert", "modernbert", "gpt2", "llama", "qwen2", "plain-text"]
LANGUAGE = ["bert-mlm", "distilbert-mlm", "gpt2-lm", "llama-lm", "qwen3-lm"]
FLOAT32_NORMS = {"modernbert", "llama", "qwen2", "llama-lm", "qwen3-lm"}  # in any dtype


class LinearText(nn.Module):
    """A Transformer block that mixes nothing, and a head that is linear in the embeddings."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(300, 8)
        self.block = nn.ModuleList([LinearBlock()])
        self.head = nn.Linear(8, 3)

    def forward(self, input_ids):
        x = self.table(input_ids)
        for block in self.block:
            x = block(x)
        return self.head(x.mean(dim=1))


class LinearBlock(nn.Module):
    """Attention that is seen but adds nothing."""

    def forward(self, x):
        q = x[:, None] * 0.0
        return x + nn.functional.scaled_dot_product_attention(q, q, q)[:, 0]


@pytest.fixture(scope="module")
def linear():
    torch.manual_seed(0)
    module = LinearText().eval().double()
    return pellucid.adapt(module, word_piece(), labels=["x", "y", "z"])


def walk(adapter, raw=None, **options):
    raw = sample_inputs(adapter)[0] if raw is None else raw
    return pellucid.explore(adapter, raw, **{"steps": 6, "save_every": 2} | options)


# ---- staying -------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", CLASSIFIERS + LANGUAGE)
def test_a_corrected_walk_stays_in_its_class(family):
    adapter = build(family, dtype=torch.float64)
    tolerance = 1e-5 if family in FLOAT32_NORMS else 1e-8
    tr = walk(adapter, steps=12, tolerance=tolerance)
    assert tr.outcome == "All steps were taken."
    assert tr.steps == 12
    held = float(tr.settings["top_k"] or 0) == 0 and family not in LANGUAGE
    assert tr.drift[-1] <= tolerance or not held
    assert tr.kept_class
    assert tr.displacement[-1] > 0.01
    assert tr.length[-1] >= tr.displacement[-1] - 1e-9
    assert tr.points.shape == (7, len(tr.tokens), tr.points.shape[2])


@pytest.mark.parametrize("family", LANGUAGE)
def test_over_a_vocabulary_the_likeliest_and_the_rest_are_held(family):
    adapter = build(family, dtype=torch.float64)
    tolerance = 1e-5 if family in FLOAT32_NORMS else 1e-8
    tr = walk(adapter, steps=8, tolerance=tolerance)
    assert tr.settings["output"] == "fisher of the 10 likeliest and the rest"
    first, last = tr.probabilities[0], tr.probabilities[-1]
    assert (first - last).abs().max() <= tolerance


@pytest.mark.parametrize("output", ["logits", "probabilities", "fisher", "log_odds", "hidden"])
def test_what_is_held_is_what_was_asked_for(output):
    tr = walk(build("vit", dtype=torch.float64), output=output, tolerance=1e-9, steps=8)
    assert tr.series["output_length"][-1] < 1e-6
    if output != "log_odds":
        assert tr.drift[-1] < 1e-8


def test_a_function_of_ones_own_is_held():
    def first_two(logits):
        return logits[:, 0] - logits[:, 1]

    adapter = build("vit", dtype=torch.float64)
    tr = walk(adapter, output=lambda z: first_two(z)[:, None], tolerance=1e-9, steps=8)
    ratio = tr.probabilities[:, 0] / tr.probabilities[:, 1]
    assert (ratio / ratio[0] - 1).abs().max() < 1e-8
    assert tr.drift[-1] > 1e-6, "the third class is free"


@pytest.mark.parametrize("direction", ["persistent", "haar", "fixed", "away"])
def test_every_direction_within_the_class(direction):
    tr = walk(build("bert", dtype=torch.float64), direction=direction, steps=10)
    assert tr.completed
    assert tr.drift.max() <= 1e-6


def test_persistence_gets_further_than_noise():
    adapter = build("bert", dtype=torch.float64)
    reach = {
        rho: float(walk(adapter, persistence=rho, steps=60).displacement[-1])
        for rho in (1.0, 0.5, 1e-9)
    }
    assert reach[1.0] > 1.3 * reach[0.5] > 1.3 * reach[1e-9]


def test_towards_another_input_comes_nearer():
    adapter = build("bert", dtype=torch.float64)
    one, other = "the film is fine", "a plot was slow"
    tr = walk(adapter, one, direction="toward", toward=other, steps=40, tokens="all")
    space = adapter.value_at(adapter.encode([other], Target.predicted()), "embedding")
    gaps = (tr.points - space).flatten(1).norm(dim=1)
    assert gaps[-1] < 0.5 * gaps[0]
    assert tr.drift.max() <= 1e-6


def test_the_tolerance_bounds_the_drift():
    adapter = build("vit", dtype=torch.float64)
    for tolerance in (1e-4, 1e-7, 1e-11):
        assert walk(adapter, tolerance=tolerance, steps=15).drift.max() <= tolerance


def test_float32_models_walk_too():
    tr = walk(build("vit"), steps=15)
    assert tr.completed
    assert tr.drift.max() <= 1e-4
    assert tr.points.dtype == torch.float32


@pytest.mark.parametrize("space", ["word", "hidden:1", "hidden:2"])
def test_classes_of_other_representations(space):
    tr = walk(build("bert", dtype=torch.float64), space=space, steps=8)
    assert tr.drift.max() <= 1e-6
    assert tr.displacement[-1] > 0.01


@pytest.mark.parametrize("family", ["vit", "swin", "beit"])
def test_walks_over_pixels_stay_images(family):
    adapter = build(family, dtype=torch.float64)
    tr = walk(adapter, space="pixels", steps=10)
    assert tr.drift.max() <= 1e-6
    low, high = (
        adapter.reader.normalise(torch.full((1, 3, 1, 1), v, dtype=torch.float64)) for v in (0, 1)
    )
    assert tr.points.min() >= low.min() - 1e-9
    assert tr.points.max() <= high.max() + 1e-9


def test_a_distance_ends_a_walk():
    tr = walk(build("vit", dtype=torch.float64), distance=0.5, steps=500, save_every=50)
    assert tr.outcome.startswith("The walk arrived")
    assert 0.5 <= tr.displacement[-1] < 0.55
    assert tr.iterations[-1] == tr.steps < 500


# ---- what may not move ---------------------------------------------------------------------------


@pytest.mark.parametrize("goal", ["stay", "leave"])
@pytest.mark.parametrize("metric", ["joint", "blocks"])
def test_unselected_tokens_stay_bit_for_bit(goal, metric):
    adapter = build("bert", dtype=torch.float64)
    raw = "not very good , but it was fine"
    seen = []
    batch = adapter.encode([raw], Target.predicted())
    origin = adapter.value_at(batch, "embedding")

    def output_from(batch, at, x, real=adapter.output_from):
        seen.append(x.detach().clone())
        return real(batch, at, x)

    adapter.output_from = output_from
    walk(adapter, raw, goal=goal, metric=metric, tokens=[2, 3])
    still = [i for i in range(origin.shape[1]) if i not in (2, 3)]
    assert len(seen) > 5
    for x in seen:
        assert torch.equal(x[:, still], origin[:, still])
    assert not torch.equal(seen[-1][:, [2, 3]], origin[:, [2, 3]])


def test_a_walk_leaves_no_trace():
    adapter = build("vit", dtype=torch.float64)
    walk(adapter)
    before = fingerprint(adapter)
    for goal in ("stay", "leave"):
        walk(adapter, goal=goal)
    assert_unchanged(before, fingerprint(adapter), "by walks")


# ---- the papers' algorithms ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("solver", "order"), [("euler", 1), ("midpoint", 2), ("heun", 2), ("rk4", 4)]
)
def test_the_order_of_solvers(solver, order):
    """A step of length h drifts by h^(order + 1): the slope of a log-log line, as measured."""
    adapter = build("vit", dtype=torch.float64)
    lengths = np.array([0.4, 0.2, 0.1]) if order == 4 else np.array([0.1, 0.05, 0.025])
    drifts = [
        float(
            walk(
                adapter, steps=1, step=float(h), solver=solver, direction="fixed", correct=False
            ).series["output_length"][-1]
        )
        for h in lengths
    ]
    slope = np.polyfit(np.log(lengths), np.log(drifts), 1)[0]
    assert slope > order + 1 - 0.35, drifts
    assert order == 4 or slope < order + 1 + 0.6


def test_pseudolength_is_the_length_of_the_predictions_path():
    """Proposition 1: the trapezoid sum approaches the polygon of outputs as steps get shorter."""
    adapter = build("plain-image", dtype=torch.float64)
    for space in ("embedding", "hidden:1"):
        gaps = []
        for steps in (4, 16, 64):
            tr = walk(
                adapter, goal="y", direction="lift", step=0.8 / steps, steps=steps, space=space
            )
            gaps.append(abs(float(tr.pseudolength[-1] / tr.series["output_length"][-1]) - 1))
        assert gaps[2] < gaps[1] / 8 < gaps[0] / 8
        assert gaps[2] < 1e-3


def test_a_linear_model_has_flat_classes(linear):
    """Any step inside is exact; a step out moves the output by its length times sqrt(l)."""
    raw = "the film is fine"
    tr = walk(linear, raw, direction="haar", step=50.0, longest=1e9, correct=False, output="logits")
    assert tr.drift.max() < 1e-12
    assert tr.displacement[-1] > 50
    metric = pellucid.metric_at(linear, raw, output="logits")
    for index, value in itertools.islice(enumerate(metric.values), 1):
        out = walk(linear, raw, goal="leave", direction="max", step=0.3, steps=1, output="logits")
        assert out.series["output_length"][-1] == pytest.approx(0.3 * float(value) ** 0.5, rel=1e-9)
        assert index == 0


def test_the_seed_step_moves_the_output_by_its_scale(linear):
    """Along the top eigenvector, s / sqrt(l_max) changes the output by s."""
    options = {"goal": "leave", "direction": "max", "steps": 1, "output": "logits", "longest": 1e9}
    tr = walk(linear, "the film is fine", scale=0.7, **options)
    assert tr.series["output_length"][-1] == pytest.approx(0.7, rel=1e-9)


def test_the_paper_preset_line_by_line():
    """Algorithm 1 with loops and dense matrices: the same steps, for the same random vectors."""
    adapter = build("vit", dtype=torch.float64)
    raw = sample_inputs(adapter)[0]
    tr = walk(adapter, raw, preset="paper", steps=3, save_every=1, tokens="all")
    batch = adapter.encode([raw], Target.predicted())
    x = adapter.value_at(batch, "embedding").clone()
    shape = x.shape[1:]
    generator = torch.Generator().manual_seed(
        pellucid.Case(adapter, batch, Target.predicted()).generators[0].initial_seed()
    )

    def logits(flat):
        from pellucid.record.attention import AttentionWatch

        with AttentionWatch():
            output = adapter.output_from(batch, "embedding", flat.view(1, *shape))
        return adapter.rows(output, batch)[0, 0]

    for k in range(3):
        jacobian = torch.func.jacrev(logits)(x.flatten()).detach()
        metric = jacobian.T @ jacobian  # lines 3 and 4, with M = I
        values, vectors = torch.linalg.eigh(metric)  # line 5
        null = vectors[:, values <= 1e-12 * values[-1]]
        drawn = torch.randn(shape, generator=generator, dtype=torch.float64).flatten()
        direction = null @ (null.T @ drawn)  # line 6
        step = direction / direction.norm() / values[-1].sqrt()  # line 7
        x = (x.flatten() + step).view_as(x)  # line 8
        assert torch.allclose(tr.points[k + 1], x[0], atol=1e-7)


@pytest.mark.parametrize("rule", ["seed", "published", "official", "relative"])
@pytest.mark.parametrize("metric", ["joint", "blocks"])
def test_step_rules(rule, metric):
    """Each rule against its formula on the dense spectrum, for the first step."""
    adapter = build("vit", dtype=torch.float64)
    raw = sample_inputs(adapter)[0]
    tr = walk(
        adapter, raw, direction="haar", step=rule, metric=metric, steps=1, save_every=1, scale=0.5,
        longest=1e9, tokens="all", output="centred_logits",
    )  # fmt: skip
    spectrum = pellucid.metric_at(adapter, raw, tokens="all", output="centred_logits")
    moved = (tr.points[1] - tr.points[0]).norm(dim=-1)
    values = spectrum.values[None, :2] if metric == "joint" else spectrum.token_values()[:, :2]
    found = moved.norm()[None] if metric == "joint" else moved
    typical = tr.points[0].norm(dim=-1).median()
    expected = {
        "seed": 0.5 / values[:, 0].sqrt(),
        "published": 0.5 * (values[:, 1] / values[:, 0]).sqrt(),
        "official": 0.5 * (1e-6 / values[:, 0]).sqrt(),
        "relative": 0.5 * typical.expand(len(values)),
    }[rule]
    assert torch.allclose(found, expected, rtol=1e-6)


def test_adaptive_steps_keep_to_the_tolerance():
    adapter = build("vit", dtype=torch.float64)
    tr = walk(adapter, direction="fixed", step="adaptive", correct=False, tolerance=1e-5, steps=20)
    per_step = tr.series["output_length"].diff()
    assert per_step.max() <= 1.01e-5
    assert tr.series["step"][-1] != tr.series["step"][1]


@pytest.mark.parametrize("preset", ["paper", "published", "released"])
@pytest.mark.parametrize("goal", ["stay", "leave"])
@pytest.mark.parametrize("family", ["vit", "bert"])
def test_presets_run(preset, goal, family):
    tr = walk(build(family, dtype=torch.float64), preset=preset, goal=goal)
    assert tr.steps == 6
    assert torch.isfinite(tr.points).all()
    assert not tr.settings["correct"]


def test_null_eigenvectors_of_a_solver_are_null():
    tr = walk(build("vit", dtype=torch.float64), direction="eigenvector", metric="blocks", steps=2)
    assert tr.pseudolength[-1] < 0.1 * tr.length[-1]


# ---- leaving -------------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["uniform", "max", "weighted", "lift"])
@pytest.mark.parametrize("sign", ["persist", "random", "leave"])
def test_leaving_changes_the_prediction(direction, sign):
    tr = walk(build("vit", dtype=torch.float64), goal="leave", direction=direction, sign=sign)
    assert tr.drift[-1] > 1e-4
    assert tr.pseudolength[-1] > 0.1


def test_the_sign_that_leaves_lowers_the_first_class():
    adapter = build("vit", dtype=torch.float64)
    tr = walk(adapter, goal="leave", direction="max", sign="leave", steps=8, step=0.05)
    own = tr.labels.index(tr.predicted[0])
    assert (tr.probabilities[:, own].diff() < 0).all()


@pytest.mark.parametrize("family", ["vit", "bert", "gpt2"])
def test_walking_to_every_class(family):
    adapter = build(family, dtype=torch.float64)
    raw = sample_inputs(adapter)[0]
    for label in adapter.labels:
        tr = walk(adapter, raw, goal=label, steps=100)
        assert tr.predicted[-1] == label
        assert tr.outcome.startswith("The walk arrived")
        assert tr.goal == label


def test_the_shortest_way_out_is_short():
    adapter = build("vit", dtype=torch.float64)
    out = walk(adapter, goal="leave", direction="boundary", steps=100)
    assert out.predicted[-1] != out.predicted[0]
    other = walk(adapter, goal=out.predicted[-1], steps=100)
    assert out.length[-1] <= other.length[-1] * 1.001


def test_a_linear_boundary_is_reached_in_one_step_of_its_distance(linear):
    raw = "the film is fine"
    tr = walk(linear, raw, goal="leave", direction="boundary", longest=1e9, steps=5)
    z = tr.probabilities[0].log()
    best = int(z.argmax())
    metric = pellucid.metric_at(linear, raw, output="logits")
    jacobian = metric.rows.flatten(1)
    distances = [
        float((z[best] - z[c]) / (jacobian[best] - jacobian[c]).norm())
        for c in range(3)
        if c != best
    ]
    assert tr.steps == 1
    assert float(tr.length[-1]) == pytest.approx(min(distances), rel=0.05)


def test_a_masked_word_and_a_next_token_can_be_walked_to():
    mlm = build("bert-mlm", dtype=torch.float64)
    tr = walk(mlm, goal=Target.at_mask("good"), steps=200)
    assert tr.predicted[-1] == "good"
    lm = build("gpt2-lm", dtype=torch.float64)
    start = walk(lm, steps=1)
    rival = start.labels[1]
    tr = walk(lm, goal=Target.token(rival), steps=200)
    assert tr.predicted[-1] == rival


# ---- what the papers compare with ----------------------------------------------------------------


@pytest.mark.parametrize("direction", ["trial", "gradient", "isotropic"])
def test_perturbations_take_steps_of_one_length(direction):
    tr = walk(build("vit", dtype=torch.float64), direction=direction, step=0.03, steps=8)
    assert torch.allclose(tr.series["step"][1:], torch.tensor(0.03).double())
    assert tr.drift[-1] > 0


def test_the_gradient_baseline_goes_up_to_stay_and_down_to_leave():
    adapter = build("vit", dtype=torch.float64)
    own = {}
    for goal in ("stay", "leave"):
        tr = walk(adapter, goal=goal, direction="gradient", step=0.05, steps=6)
        index = tr.labels.index(tr.predicted[0])
        own[goal] = float(tr.probabilities[-1, index] - tr.probabilities[0, index])
    assert own["leave"] < 0 < own["stay"]


# ---- batches, seeds and files --------------------------------------------------------------------


@pytest.mark.parametrize("family", ["vit", "bert", "gpt2"])
@pytest.mark.parametrize("goal", ["stay", "leave"])
def test_a_batch_walks_as_its_members_do(family, goal):
    """Kernels round otherwise for another batch, so to rounding, over a few steps."""
    adapter = build(family, dtype=torch.float64)
    raw = sample_inputs(adapter)
    several = pellucid.explore(adapter, raw, goal=goal, steps=4, save_every=2)
    for one, alone in zip(several, raw, strict=True):
        single = pellucid.explore(adapter, alone, goal=goal, steps=4, save_every=2)
        assert torch.allclose(one.points, single.points, atol=1e-7)
        assert torch.allclose(one.displacement, single.displacement, atol=1e-7)


@pytest.mark.parametrize("options", [{}, {"goal": "leave"}, {"preset": "released"}, {"goal": 1}])
def test_one_seed_one_walk(options):
    adapter = build("vit", dtype=torch.float64)
    first, again = walk(adapter, **options), walk(adapter, **options)
    assert torch.equal(first.points, again.points)
    assert all(torch.equal(first.series[n], again.series[n]) for n in first.series)
    if "goal" not in options or options["goal"] == "leave":
        assert not torch.equal(first.points, walk(adapter, seed=1, **options).points)


def test_repeats_are_other_walks():
    found = walk(build("vit", dtype=torch.float64), repeats=3)
    assert len(found) == 3
    assert not torch.equal(found[0].points, found[1].points)
    assert [one.settings["repeat"] for one in found] == [0, 1, 2]
    assert torch.equal(found[0].points[0], found[2].points[0])


class Killed(Exception):
    pass


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"direction": "haar"},
        {"direction": "fixed", "step": 0.02, "correct": False},
        {"goal": "leave"},
        {"preset": "released"},
        {"direction": "trial"},
    ],
)
def test_a_killed_walk_continues_bit_for_bit(options, tmp_path):
    adapter = build("bert", dtype=torch.float64)
    raw = sample_inputs(adapter)[:2]
    file = tmp_path / "walk.checkpoint"
    settings = {"steps": 9, "save_every": 3, **options}
    whole = pellucid.explore(adapter, raw, **settings)

    def kill(done, total):
        if done >= 5 * len(raw):
            raise Killed

    with pytest.raises(Killed):
        pellucid.explore(adapter, raw, checkpoint=file, progress=kill, **settings)
    assert file.exists()
    resumed = pellucid.explore(adapter, raw, checkpoint=file, **settings)
    assert not file.exists(), "a finished walk needs no checkpoint"
    for one, other in zip(whole, resumed, strict=True):
        assert torch.equal(one.points, other.points)
        assert torch.equal(one.probabilities, other.probabilities)
        assert all(torch.equal(one.series[n], other.series[n]) for n in one.series)


def test_a_checkpoint_of_another_walk_is_refused(tmp_path):
    adapter = build("bert", dtype=torch.float64)
    file = tmp_path / "walk.checkpoint"

    def kill(done, total):
        if done >= 4:
            raise Killed

    with pytest.raises(Killed):
        walk(adapter, checkpoint=file, progress=kill)
    with pytest.raises(pellucid.StoreError, match="other inputs, model or rules"):
        walk(adapter, checkpoint=file, seed=3)
    file.write_bytes(b"nonsense")
    with pytest.raises(pellucid.StoreError, match="cannot be continued"):
        walk(adapter, checkpoint=file)


def test_progress_and_budget():
    adapter = build("vit", dtype=torch.float64)
    told = []
    walk(adapter, sample_inputs(adapter)[:2], steps=3, progress=lambda *n: told.append(n))
    assert told[0] == (2, 6)
    assert told[-1] == (6, 6)
    with pytest.raises(pellucid.BudgetExceeded):
        walk(adapter, steps=50, budget=10)


# ---- which tokens --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        (None, (1, 2, 3, 4, 5, 6)),
        ("all", (0, 1, 2, 3, 4, 5, 6, 7)),
        (3, (3,)),
        ([4, 2], (2, 4)),
        ("finely", (4, 5)),
        (["the", "good"], (1, 6)),
        (re.compile("fi"), (2, 4)),
    ],
)
def test_tokens_of_texts(tokens, expected):
    adapter = build("bert", dtype=torch.float64)
    tr = walk(adapter, "the film is finely good", tokens=tokens, steps=1)
    words = [s.text for s in tr.segments]
    if tokens == "finely" or isinstance(tokens, re.Pattern):
        assert all(words[i] in "finely film" for i in tr.tokens)
    else:
        assert tr.tokens == expected


def test_tokens_of_images():
    adapter = build("vit", dtype=torch.float64)
    assert walk(adapter, tokens=pellucid.Rectangle(1, 2, 3, 4), steps=1).tokens == (9, 10, 15, 16)
    mask = np.zeros((4, 6), dtype=bool)
    mask[0, 0] = mask[3, 5] = True
    assert walk(adapter, tokens=mask, steps=1).tokens == (1, 24)


def test_tokens_by_importance():
    adapter = build("bert", dtype=torch.float64)
    raw = "not very good , but it was fine"
    scores = pellucid.explain(adapter, raw, method="pullback").scores
    scores[[0, -1]] = -1.0
    top = walk(adapter, raw, tokens=pellucid.Top(2), steps=1).tokens
    assert set(top) == set(scores.topk(2).indices.tolist())
    above = walk(adapter, raw, tokens=pellucid.Above(0.5), steps=1).tokens
    assert len(above) == 4
    assert min(scores[list(above)]) > scores[1:-1].median()


# ---- feasible regions ----------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["vit", "bert", "gpt2"])
def test_a_walk_in_a_box_never_leaves_it(family):
    adapter = build(family, dtype=torch.float64)
    raw = sample_inputs(adapter)
    box = pellucid.feasible(adapter, raw)
    tr = walk(adapter, raw[0], within=box, steps=30)
    low, high = (
        bound[0][list(tr.tokens)] if bound.shape[1] > 1 else bound[0]
        for bound in (box.low, box.high)
    )
    assert (tr.points >= low - 1e-12).all()
    assert (tr.points <= high + 1e-12).all()
    assert tr.drift.max() <= 1e-6
    assert tr.displacement[-1] > 0.05


@pytest.mark.parametrize("family", ["vit", "bert", "gpt2", "distilbert"])
def test_all_that_pixels_or_tokens_can_make(family):
    """The bounds hold the embedding of every input, and a walk that keeps to them its class."""
    adapter = build(family, dtype=torch.float64)
    raw = sample_inputs(adapter)
    tr = walk(adapter, raw[0], within="bounds", steps=10)
    assert tr.drift.max() <= 1e-6
    assert tr.completed


def test_the_range_of_a_normalisation():
    adapter = build("bert", dtype=torch.float64)
    tr = walk(adapter, within="layernorm", steps=20)
    norm = adapter.module.bert.embeddings.LayerNorm
    inner = (tr.points - norm.bias) / norm.weight
    assert inner.mean(dim=-1).abs().max() < 1e-6
    assert (inner.var(dim=-1, unbiased=False) - 1).abs().max() < 1e-6
    assert tr.drift.max() <= 1e-6
    with pytest.raises(ArgumentError, match="do not come out of a layer normalisation"):
        walk(build("vit", dtype=torch.float64), within="layernorm")


def test_uncorrected_walks_are_projected_and_say_what_that_changed():
    adapter = build("vit", dtype=torch.float64)
    raw = sample_inputs(adapter)
    box = pellucid.feasible(adapter, raw)
    tr = walk(adapter, raw[0], within=box, direction="haar", correct=False, step=5.0, longest=9.0)
    low, high = box.low[0][list(tr.tokens)], box.high[0][list(tr.tokens)]
    assert (tr.points >= low).all()
    assert (tr.points <= high).all()
    assert tr.series["projected"].max() > 0


def test_projecting_twice_is_projecting_once():
    adapter = build("bert", dtype=torch.float64)
    rows = torch.arange(1)
    box = pellucid.feasible(adapter, sample_inputs(adapter))
    norm = pellucid.explorer.regions.NormRange(torch.rand(32) + 0.5, torch.randn(32))
    x = 3 * torch.randn(1, 4, 32, dtype=torch.float64)
    for region in (box, norm):
        once = region.project(x, rows)
        assert torch.allclose(region.project(once, rows), once, atol=1e-12)


@pytest.mark.parametrize("rule", ["minmax", "quantile", "gauss"])
def test_boxes_of_data(rule):
    adapter = build("bert", dtype=torch.float64)
    box = pellucid.feasible(adapter, sample_inputs(adapter), rule=rule)
    assert (box.low <= box.high).all()
    assert rule in box.name


# ---- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"goal": "nonsense"}, "unknown class in goal"),
        ({"steps": 0}, "steps is not a number"),
        ({"tokens": [99]}, "there is no such token"),
        ({"tokens": "zebra"}, "nothing of this input is chosen"),
        ({"tokens": []}, "nothing of this input is chosen"),
        ({"tokens": re.compile("zebra")}, "nothing of this input is chosen"),
        ({"space": "embeding"}, "no such space"),
        ({"space": "hidden:9"}, "no such place"),
        ({"direction": "persistant"}, "did you mean 'persistent'"),
        ({"goal": "leave", "direction": "persistent"}, "unknown direction"),
        ({"step": "long"}, "unknown step"),
        ({"step": -1.0}, "a step needs a length"),
        ({"solver": "rk5"}, "unknown solver"),
        ({"metric": "block"}, "did you mean 'blocks'"),
        ({"tolerance": 0}, "tolerance is not a positive number"),
        ({"preset": "papers"}, "did you mean 'paper'"),
        ({"preset": "paper", "goal": 1}, "presets do not walk to a class"),
        ({"correct": True, "goal": "leave"}, "cannot be corrected"),
        ({"correct": True, "step": "seed"}, "length of its steps itself"),
        ({"direction": "toward"}, "needs that input"),
        ({"within": "box"}, "not a feasible region"),
        ({"colour": "red"}, "unknown parameter of explore"),
        ({"within": "bounds", "space": "hidden:1"}, "is not known here"),
    ],
)
def test_bad_arguments(options, message):
    adapter = build("bert", dtype=torch.float64)
    with pytest.raises(ArgumentError, match=message):
        walk(adapter, "the film is fine", **options)


def test_space_of_the_other_kind():
    with pytest.raises(pellucid.UnsupportedCombination, match="made for image models"):
        walk(build("bert", dtype=torch.float64), space="pixels")
    with pytest.raises(pellucid.UnsupportedCombination, match="made for text models"):
        walk(build("vit", dtype=torch.float64), space="word")
    with pytest.raises(pellucid.UnsupportedCombination, match="space='pixels'"):
        walk(build("swin", dtype=torch.float64))


def test_fewer_free_numbers_than_outputs():
    adapter = build("bert", dtype=torch.float64, hidden_size=4, num_labels=6)
    with pytest.raises(ArgumentError, match="no direction that leaves the prediction"):
        walk(adapter, "the film is fine", tokens=[1])


def test_half_precision_has_too_few_digits():
    with pytest.raises(ArgumentError, match="more digits than half precision"):
        walk(build("bert", dtype=torch.bfloat16))


def test_a_start_outside_the_region():
    adapter = build("vit", dtype=torch.float64)
    raw = sample_inputs(adapter)
    box = pellucid.feasible(adapter, raw[1:])
    for correct in (True, False):
        with pytest.raises(ArgumentError, match="lies outside the feasible region"):
            walk(adapter, raw[0], within=box, correct=correct)


def test_a_region_of_another_model():
    box = pellucid.feasible(build("vit", dtype=torch.float64), [sample_inputs(build("vit"))[0]])
    with pytest.raises(ArgumentError, match="is one of other states"):
        walk(build("bert", dtype=torch.float64), within=box)


def test_a_saturated_prediction_ends_by_name():
    """The probabilities of a certain model have no gradient left: an outcome, not NaN."""
    adapter = build("bert", dtype=torch.float64)
    with torch.no_grad():
        adapter.module.classifier.weight.mul_(1e6)
    tr = walk(adapter, goal="leave", output="probabilities")
    assert tr.outcome.startswith("The metric vanished")
    assert not tr.completed
    assert torch.isfinite(tr.points).all()


def test_what_cannot_be_held_ends_by_name():
    tr = walk(build("vit", dtype=torch.float64), output=lambda logits: (logits * 1e14).floor())
    assert tr.outcome.startswith("No step, however short")
    assert not tr.completed
    assert torch.isfinite(tr.points).all()


def test_padding_side_changes_nothing():
    adapter = build("gpt2", dtype=torch.float64)
    left = adapter.padded_on("left")
    raw = sample_inputs(adapter)[:2]
    one = pellucid.explore(adapter, raw, steps=4)
    other = pellucid.explore(left, raw, steps=4)
    for a, b in zip(one, other, strict=True):
        assert torch.allclose(a.points, b.points, atol=1e-7)
        assert a.tokens == b.tokens
