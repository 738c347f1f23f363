"""Rules of walks besides the papers' main ones, against closed forms and literal versions."""

import math

import pytest
import torch
from torch import nn

import pellucid
from pellucid import ArgumentError, Target
from pellucid.explorer.perturbation import Trial
from pellucid.explorer.state import State
from pellucid.geometry.pullback import Pullback
from pellucid.models import sample_images
from pellucid.testing.tiny import build, sample_inputs, word_piece

F64 = torch.float64
TEXT = "the film is fine"


class LinearText(nn.Module):
    """A head that is linear in the embeddings, behind a block that adds nothing."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(300, 8)
        self.block = nn.ModuleList([LinearBlock()])
        self.head = nn.Linear(8, 4)

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
    return pellucid.adapt(LinearText().eval().double(), word_piece(), labels=list("wxyz"))


@pytest.fixture(scope="module")
def digits():
    return pellucid.load("pellucid/digits-vit", dtype="float64")


def walk(adapter, raw=None, **options):
    raw = sample_inputs(adapter)[0] if raw is None else raw
    return pellucid.explore(adapter, raw, **{"steps": 6, "save_every": 1} | options)


# ---- signs of blocks -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_aligned_blocks_of_a_linear_model_add_up(linear, seed):
    """All blocks are the same there, so T tokens move the output T times as far as one."""
    rules = {"goal": "leave", "metric": "blocks", "direction": "max", "step": 0.01, "seed": seed}
    tr = walk(linear, TEXT, sign="align", **rules)
    largest = pellucid.metric_at(linear, TEXT).token_values()[:, 0]
    expected = 0.01 * largest.sqrt().sum() * torch.arange(7, dtype=F64)
    assert torch.allclose(tr.series["output_drift"], expected, rtol=1e-9)
    crossed = walk(linear, TEXT, sign="random", steps=40, **rules)
    assert crossed.series["output_drift"][-1] < 0.9 * 40 * expected[1]


@pytest.mark.parametrize("direction", ["uniform", "max", "weighted"])
@pytest.mark.parametrize("family", ["bert", "vit"])
def test_aligned_blocks_move_the_output_to_one_side(family, direction):
    adapter = build(family, dtype=F64)
    raw = sample_inputs(adapter)[1]
    rules = {"goal": "leave", "metric": "blocks", "direction": direction, "step": 0.01}
    rows = pellucid.metric_at(adapter, raw).rows  # q m d
    common = torch.linalg.svd(rows.flatten(1))[0][:, 0]
    sides = set()
    for seed in range(4):
        tr = walk(adapter, raw, sign="align", steps=1, seed=seed, **rules)
        along = torch.einsum("q,qmd,md->m", common, rows, tr.points[1] - tr.points[0])
        assert (along > 0).all() or (along < 0).all()
        sides.add(bool(along[0] > 0))
    assert sides == {True, False}, "a coin decides which side"


def test_aligned_blocks_go_on_to_the_side_they_began_with():
    rules = {
        "goal": "leave",
        "metric": "blocks",
        "direction": "max",
        "step": 0.01,
        "output": "logits",
    }
    tr = walk(build("bert", dtype=F64), sign="align", steps=10, **rules)
    assert (tr.series["output_drift"].diff() > 0).all()


# ---- classes that may grow -----------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["joint", "blocks"])
@pytest.mark.parametrize("output", ["logits", "centred_logits", "probabilities", "fisher"])
def test_the_predicted_output_of_a_linear_model_never_falls(linear, metric, output):
    rules = {"allow": "nondecreasing", "metric": metric, "output": output}
    tr = walk(linear, TEXT, step=0.01, steps=12, **rules)
    assert tr.kept_class
    growth = tr.series["growth"]
    assert (growth.diff() >= -1e-6).all()  # to first order: probabilities bend
    assert growth[-1] > 1e-3
    plain = walk(linear, TEXT, step=0.01, correct=False, metric=metric, output=output)
    assert "growth" not in plain.series
    assert plain.series["output_drift"][-1] < 1e-9


@pytest.mark.parametrize("beta", [0.25, 2.0])
def test_growth_is_the_share_of_the_range(linear, beta):
    """v = P0 z + beta w, both of length one, by a dense projection on the range."""
    tr = walk(linear, TEXT, step=0.01, allow="nondecreasing", growth=beta, output="logits")
    rows = pellucid.metric_at(linear, TEXT, output="logits").rows.flatten(1)
    onto = torch.linalg.pinv(rows) @ rows
    own = tr.labels.index(tr.predicted[0])
    for k, move in enumerate(tr.points.diff(dim=0).flatten(1), 1):
        inside = (onto @ move).norm()
        outside = (move - onto @ move).norm()
        assert (inside / outside).item() == pytest.approx(beta, rel=1e-9)
        gain = (rows @ move)[own]
        grown = tr.series["growth"][k] - tr.series["growth"][k - 1]
        assert grown.item() == pytest.approx(gain.item(), abs=1e-12)
        assert gain >= 0


@pytest.mark.parametrize("family", ["bert", "vit", "bert-mlm"])
def test_growth_is_of_the_class_that_was_predicted(family):
    adapter = build(family, dtype=F64)
    raw = sample_inputs(adapter)[0]
    tr = walk(adapter, raw, allow="nondecreasing", growth=1, step=1e-3, output="logits", top_k=3)
    batch = adapter.encode([raw], Target.predicted())
    x0 = adapter.value_at(batch, "embedding")
    places = [i for i in range(x0.shape[1]) if (x0[0, i] == tr.points[0]).all(dim=1).any()]
    values = []
    for point in tr.points:
        x = x0.clone()
        x[0, places] = point
        values.append(adapter.rows(adapter.output_from(batch, "embedding", x), batch)[0, 0])
    own = int(values[0].argmax())
    expected = torch.stack([z[own] - values[0][own] for z in values])
    assert torch.allclose(tr.series["growth"], expected, atol=1e-12)
    assert (tr.series["growth"].diff() > -1e-7).all()


# ---- as the released code does it ----------------------------------------------------------------


def test_degrowth_is_what_the_released_code_does():
    """Eigenvalues of directions along which the class gains are zeroed; the step grows by that."""
    adapter = build("bert", dtype=F64)
    raw = sample_inputs(adapter)[1]
    rows = pellucid.metric_at(adapter, raw, output="logits").rows  # q m d
    batch = adapter.encode([raw], Target.predicted())
    own = int(adapter.rows(adapter.output(batch), batch)[0, 0].argmax())
    plain = walk(adapter, raw, preset="released", steps=1)
    tr = walk(adapter, raw, preset="released", allow="degrowth", steps=1)
    moved = [(one.points[1] - one.points[0]).norm(dim=1) for one in (plain, tr)]
    longer = 0
    for t in range(rows.shape[1]):
        b, block = rows[:, t], Pullback(rows[:, t])
        values = torch.linalg.eigvalsh(b.T @ b)
        assert moved[0][t].item() == pytest.approx(math.sqrt(1e-6 / values[-1]), rel=1e-6)
        gains = (b @ block.vectors.T)[own]  # by the signs that the vectors happen to have
        left = [v for v, a in zip(values.flip(0).tolist(), gains, strict=False) if a < 0]
        expected = math.sqrt(1e-6 / left[0]) if left else 0.0
        assert moved[1][t].item() == pytest.approx(expected, rel=1e-6)
        longer += not left or left[0] < values[-1]
    assert longer, "of some token the largest was zeroed"
    assert plain.settings["allow"] == "class"
    assert "growth" in tr.series


# ---- embeddings of images ------------------------------------------------------------------------


def pixels_of(adapter, raw, points, tokens):
    """The pixels of every point by a pseudo-inverse, and what is left of the points (s m p)."""
    batch = adapter.encode([raw], Target.predicted())
    conv = next(m for m in adapter.module.modules() if isinstance(m, nn.Conv2d))
    matrix = conv.weight.detach().flatten(1)
    image = adapter.value_at(batch, "input")
    cut = nn.functional.unfold(image, conv.kernel_size, stride=conv.stride)[0].T  # t p
    moves = points - points[:1]
    changes = moves @ torch.linalg.pinv(matrix).T
    rest = (moves - changes @ matrix.T).abs().max()
    ends = adapter.reader.normalise(torch.tensor([0.0, 1.0], dtype=F64).view(2, 1, 1, 1))
    return (
        cut[[t - adapter.anatomy.prefix for t in tokens]] + changes,
        rest,
        float(ends.min()),
        float(ends.max()),
    )


@pytest.mark.parametrize("options", [{}, {"goal": "leave", "step": 0.3, "steps": 10}])
def test_walks_within_pixels_are_walks_over_images(digits, options):
    raw = sample_images()[0]
    tr = walk(digits, raw, within="pixels", **{"steps": 30} | options)
    pixels, rest, low, high = pixels_of(digits, raw, tr.points, tr.tokens)
    assert rest < 1e-9
    assert pixels.min() >= low - 1e-9
    assert pixels.max() <= high + 1e-9
    assert tr.displacement[-1] > 0.1
    if not options:
        assert tr.drift.max() <= 1e-6
        assert tr.decode().quality["clipped"].max() == 0
    else:
        assert tr.series["clamped"].max() > 0
        free = walk(digits, raw, **{"steps": 30} | options)
        pixels, rest, _, _ = pixels_of(digits, raw, free.points, free.tokens)
        assert pixels.min() < low - 0.1, "it does not stay there by itself"


def test_where_a_token_has_fewer_numbers_than_pixels():
    adapter = build("vit", dtype=F64)
    raw = sample_inputs(adapter)[0]
    tr = walk(adapter, raw, within="pixels", steps=20)
    assert tr.drift.max() <= 1e-6
    hull = walk(adapter, raw, within="bounds", steps=1)
    assert hull.points.shape[1:] == tr.points.shape[1:]
    batch = adapter.encode([raw], Target.predicted())
    start = adapter.value_at(batch, "embedding")[0, 1:]
    assert torch.allclose(tr.points[0], start, atol=1e-12)


def test_images_project_on_themselves(digits):
    """The projection inverts, clamps and embeds: idempotent, and nothing moves that is inside."""
    raw = sample_images()[0]
    inside = walk(digits, raw, within="pixels", steps=5)
    small = {"goal": "leave", "within": "pixels", "step": 1e-9, "tokens": [20, 24]}
    tr = walk(digits, raw, steps=2, **small)
    assert tr.series["projected"].max() < 1e-8
    assert inside.completed


@pytest.mark.parametrize(
    ("family", "options"),
    [("bert", {}), ("vit", {"space": "hidden:1"}), ("bert", {"space": "word"})],
)
def test_states_that_are_not_of_pixels(family, options):
    with pytest.raises(ArgumentError, match="not made of pixels"):
        walk(build(family, dtype=F64), within="pixels", **options)


def test_over_pixels_themselves_it_is_what_holds_anyway():
    adapter = build("vit", dtype=F64)
    one, other = (walk(adapter, space="pixels", within=w) for w in (None, "pixels"))
    assert torch.equal(one.points, other.points)


# ---- asking for what does not fit ----------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"goal": "leave", "sign": "align"},
        {"growth": 0.5},
        {"allow": "everything"},
        {"allow": "degrowth"},
        {"allow": "nondecreasing", "growth": 0},
        {"allow": "nondecreasing", "correct": True},
        {"allow": "nondecreasing", "goal": "leave"},
        {"allow": "nondecreasing", "direction": "isotropic"},
        {"preset": "released", "allow": "nondecreasing"},
        {"preset": "released", "goal": "leave", "allow": "degrowth"},
        {"allow": "nondecreasing", "output": "hidden"},
    ],
)
def test_rules_that_do_not_fit_are_refused(options):
    with pytest.raises(ArgumentError):
        walk(build("vit", dtype=F64), **options)


# ---- continuing ----------------------------------------------------------------------------------


class Stop(Exception):
    pass


def stopping(done, total):
    if done >= 0.6 * total:
        raise Stop


@pytest.mark.parametrize(
    "options",
    [
        {"allow": "nondecreasing", "step": 0.05},
        {"goal": "leave", "metric": "blocks", "sign": "align", "step": 0.05},
        {"preset": "released", "allow": "degrowth"},
        {"within": "pixels"},
    ],
)
def test_killed_walks_continue_bit_for_bit(options, tmp_path):
    adapter = build("vit", dtype=F64)
    rules = {"steps": 9, "save_every": 2} | options
    with pytest.raises(Stop):
        walk(adapter, checkpoint=tmp_path / "walk", progress=stopping, **rules)
    one = walk(adapter, checkpoint=tmp_path / "walk", **rules)
    other = walk(adapter, **rules)
    assert torch.equal(one.points, other.points)
    assert list(one.series) == list(other.series)
    assert all(torch.equal(one.series[name], other.series[name]) for name in one.series)


@pytest.mark.parametrize("rules", [{"direction": "lift"}, {"direction": "max", "sign": "leave"}])
def test_leaving_goes_on_away_from_the_first_class(rules):
    adapter = build("vit", dtype=torch.float64)
    raw = sample_inputs(adapter)[0]
    tr = pellucid.explore(
        adapter, raw, goal="leave", step=0.05, steps=60, save_every=1, output="logits", **rules
    )
    first = tr.classes.index(int(tr.probabilities[0].argmax()))
    own = tr.probabilities[:, first]
    assert tr.predicted[-1] != tr.predicted[0]
    crossed = next(k for k, name in enumerate(tr.predicted) if name != tr.predicted[0])
    assert all(name != tr.predicted[0] for name in tr.predicted[crossed:]), "it does not come back"
    assert own[-1] < own[crossed] < own[0]


def test_trial_and_error_turns_back_and_draws_afresh():
    """Section 4 of the seed paper: v <- a v + eta e with e orthogonal to v; one in five is new."""
    count = 600
    moving = torch.ones(count, 3, dtype=torch.bool)
    same = torch.arange(count) % 2 == 0  # the label of the last step and of the one before
    heading = torch.randn(count, 3, 4, dtype=torch.float64)
    state = State(
        w=torch.zeros(count, 3, 4, dtype=torch.float64),
        y=torch.zeros(count, 1),
        logits=torch.zeros(count, 2),
        heading=heading.clone(),
        stride=torch.zeros(count),
        outcome=torch.zeros(count, dtype=torch.long),
        generators=[torch.Generator().manual_seed(i) for i in range(count)],
        memory={"labels": torch.stack([torch.zeros(count), (~same).double()], dim=1)},
    )
    found = Trial(moving)(state, torch.arange(count))
    size = heading.flatten(1).square().sum(dim=1)
    along = (found * heading).flatten(1).sum(dim=1) / size
    sign = torch.where(same, 1.0, -1.0).double()
    kept = (along - sign).abs() < 1e-12  # what is added is orthogonal
    assert 0.74 < kept.double().mean() < 0.86
    added = (found - sign[:, None, None] * heading)[kept].flatten(1).norm(dim=1)
    assert float(added.square().mean()) == pytest.approx(0.1**2 * 11, rel=0.15)
