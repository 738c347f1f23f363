"""Metrics of walks against closed forms, literal versions of their definitions, and their traps."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import pellucid
from pellucid import ArgumentError, NumericalError, Rectangle
from pellucid._decoded import Decoded, Prompt
from pellucid._references import REFERENCES
from pellucid.metrics.walks import WALK_METRICS, Evidence, WalkMeasured
from pellucid.metrics.walks.mean_curve import mean_curve
from pellucid.metrics.walks.table import walk_row, walk_table
from pellucid.metrics.walks.wasserstein import distance
from pellucid.testing.contract import assert_unchanged, fingerprint
from pellucid.testing.tiny import build, sample_inputs

F64 = torch.float64


def walk(adapter, raw=None, **options):
    raw = sample_inputs(adapter)[0] if raw is None else raw
    return pellucid.explore(adapter, raw, **{"steps": 4, "save_every": 2} | options)


@pytest.fixture(scope="module")
def toy():
    """A walk in a text to put predictions of one's own into."""
    return walk(build("bert", dtype=F64))


@pytest.fixture(scope="module")
def picture():
    """A walk in four patches of an image."""
    return walk(build("vit", dtype=F64), tokens=Rectangle(0, 0, 2, 2))


def predicting(walk, rows, stride=10, points=None):
    """The walk with these probabilities at points that many iterations apart."""
    p = torch.as_tensor(rows, dtype=F64)
    labels = tuple("abcdefghijklmnop"[: p.shape[1]])
    return replace(
        walk,
        iterations=torch.arange(len(p)) * stride,
        points=walk.points[:1].repeat(len(p), 1, 1) if points is None else points,
        probabilities=p,
        labels=labels,
        classes=tuple(range(len(labels))),
        predicted=tuple(labels[i] for i in p.argmax(dim=1).tolist()),
    )


def decoding(walk, rows, **fields):
    """What such a walk was decoded to."""
    told = predicting(walk, rows)
    return Decoded(
        using="nearest",
        iterations=walk.iterations,
        labels=walk.labels,
        probabilities=told.probabilities,
        agrees=torch.tensor([p == q for p, q in zip(told.predicted, walk.predicted, strict=True)]),
        predicted=told.predicted,
        expected=walk.predicted,
        **fields,
    )


def number(walk, metric, **options):
    found = pellucid.measure_walk(walk, metric=metric, **options)
    assert not found.skipped
    return found.value


def reason(walk, metric, **options):
    found = pellucid.measure_walk(walk, metric=metric, **options)
    assert found.value is None
    return found.skipped


def peaks(order, n=3):
    """Distributions whose likeliest classes are these."""
    p = torch.full((len(order), n), 0.2 / (n - 1), dtype=F64)
    p[torch.arange(len(order)), torch.tensor(order)] = 0.8
    return p


# ---- changes of predictions and rankings ---------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 7])
def test_a_full_reversal_inverts_every_pair(toy, n):
    p = torch.arange(1, n + 1, dtype=F64) / (n * (n + 1) / 2)
    one = predicting(toy, torch.stack([p, p.flip(0)]))
    assert number(one, "ranking_changes", per=10) == n * (n - 1) // 2
    assert number(one, "ranking_changes", per=10, count="points") == 1
    assert number(one, "prediction_changes", per=10) == 1


def test_one_swap_at_the_top_is_one_change_of_both_kinds(toy):
    one = predicting(toy, [[0.5, 0.3, 0.2], [0.3, 0.5, 0.2], [0.3, 0.5, 0.2]])
    found = pellucid.measure_walk(one, metric="ranking_changes")
    assert found.value == 1000 / 20
    assert found.curve == (1, 0)
    assert found.iterations == (10, 20)
    assert found.more == {"events": 1, "comparisons": 2}
    assert number(one, "prediction_changes") == 1000 / 20
    assert number(one, "ranking_correlation") == pytest.approx((0.5 + 1) / 2, abs=1e-12)


def test_changes_since_the_start_are_another_number(toy):
    one = predicting(toy, peaks([0, 1, 1, 0]))
    assert number(one, "prediction_changes", per=30) == 2
    assert number(one, "prediction_changes", per=30, against="start") == 2
    later = predicting(toy, peaks([0, 1, 1, 2]))
    assert number(later, "prediction_changes", per=30, against="start") == 3


def test_a_change_of_temperature_changes_no_ranking(toy):
    logits = torch.randn(6, generator=torch.Generator().manual_seed(0), dtype=F64)
    one = predicting(toy, torch.stack([(logits / t).softmax(0) for t in (0.01, 1.0, 4.0)]))
    assert number(one, "ranking_changes") == 0
    assert number(one, "ranking_correlation") == pytest.approx(1, abs=1e-12)


def test_classes_that_are_next_to_impossible_are_no_ties(toy):
    """A softmax in float32 rounds these to zeros and ones, and sees no change."""
    logits = torch.tensor([[120.0, 0, 1, 2], [120, 2, 1, 0]], dtype=F64)
    assert number(predicting(toy, logits.softmax(1)), "ranking_changes", per=10) == 3


def test_changes_do_not_depend_on_how_long_a_walk_is(toy):
    short = predicting(toy, peaks([0, 1] * 3))
    long = predicting(toy, peaks([0, 1] * 30))
    assert number(short, "prediction_changes") == number(long, "prediction_changes") == 100


def test_the_stride_decides_what_is_seen(toy):
    one = predicting(toy, peaks([0, 1] * 4 + [0]))
    assert number(one, "prediction_changes", stride=10) == 100
    assert number(one, "prediction_changes", stride=20) == 0
    assert number(one, "ranking_correlation", stride=20) == pytest.approx(1)


def test_only_the_likeliest_classes_at_the_start_are_ranked(toy):
    one = predicting(toy, [[0.4, 0.3, 0.2, 0.1], [0.3, 0.4, 0.1, 0.2]])
    assert number(one, "ranking_changes", per=10) == 2
    assert number(one, "ranking_changes", per=10, top=2) == 1
    assert number(one, "ranking_changes", per=10, top=3) == 1
    assert number(one, "ranking_correlation", top=2) == pytest.approx(-1)
    with pytest.raises(ArgumentError, match="top=1"):
        number(one, "ranking_changes", top=1)


@given(st.integers(2, 6), st.integers(2, 5), st.integers(0, 10**6))
def test_rankings_by_the_letter_of_their_definition(toy, n, points, seed):
    generator = torch.Generator().manual_seed(seed)
    p = torch.randint(1, 6, (points, n), generator=generator).double()  # ties happen
    p = p / p.sum(dim=1, keepdim=True)
    one = predicting(toy, p)
    inverted = sum(
        1
        for k in range(1, points)
        for a, b in itertools.permutations(range(n), 2)
        if p[k - 1, a] > p[k - 1, b] and p[k, a] < p[k, b]
    )
    assert number(one, "ranking_changes", per=10 * (points - 1)) == pytest.approx(inverted)
    changed = sum(int(p[k].argmax() != p[k - 1].argmax()) for k in range(1, points))
    assert number(one, "prediction_changes", per=10 * (points - 1)) == pytest.approx(changed)


@pytest.mark.parametrize(
    ("n", "changes", "rho"), [(10, 29.633, 0.996), (3, 6.026, 0.970), (5, 3.25, 0.997)]
)
def test_the_published_tables_compare_points_ten_iterations_apart(n, changes, rho):
    """One swap of neighbours costs 12 / (n (n^2 - 1)); 99 comparisons make their other column."""
    cost = 12 / (n * (n * n - 1))
    assert 1 - changes * cost / 99 == pytest.approx(rho, abs=6e-4)


def test_a_ranking_of_equal_classes_is_none(toy):
    level = [[0.25] * 4, [0.25] * 4]
    assert reason(predicting(toy, level), "ranking_correlation") == "all classes are equally likely"
    one = pellucid.measure_walk(
        predicting(toy, [*level, [0.4, 0.3, 0.2, 0.1], [0.3, 0.4, 0.2, 0.1]]),
        metric="ranking_correlation",
    )
    assert one.value == pytest.approx(0.8)
    assert [math.isnan(value) for value in one.curve] == [True, True, False]


def test_the_first_change(toy):
    assert number(predicting(toy, peaks([0, 0, 2, 0])), "first_change") == 20
    assert reason(predicting(toy, peaks([1, 1])), "first_change") == "the prediction never changed"


# ---- probabilities -------------------------------------------------------------------------------


def test_what_becomes_of_the_first_class(toy):
    rows = [[0.7, 0.2, 0.1], [0.5, 0.4, 0.1], [0.3, 0.6, 0.1]]
    one = predicting(toy, rows)
    found = pellucid.measure_walk(one, metric="original_probability")
    assert found.curve == pytest.approx((0.7, 0.5, 0.3))
    assert found.value == pytest.approx(0.3)
    assert number(one, "top_probability") == pytest.approx(0.6)
    gap = pellucid.measure_walk(one, metric="probability_gap").curve
    assert gap == pytest.approx((0, 0, 0.3))
    assert [value > 1e-12 for value in gap] == [name != "a" for name in one.predicted]


def test_the_drift_is_that_of_all_steps_and_classes():
    one = pellucid.explore(
        build("bert", dtype=F64), "the film", steps=5, save_every=5, goal="leave", step=0.5
    )
    found = pellucid.measure_walk(one, metric="probability_drift")
    assert found.value == float(one.series["drift"].max())
    assert len(found.curve) == 6
    changes = (one.probabilities - one.probabilities[0]).abs().amax(dim=1)
    assert found.curve[-1] == pytest.approx(float(changes[-1]), abs=1e-12)


def test_a_class_that_was_not_kept_has_no_probability(toy):
    one = replace(predicting(toy, [[0.5, 0.3], [0.4, 0.3]]), predicted=("a", "z"))
    assert "not among those" in reason(one, "top_probability")
    assert number(one, "original_probability") == pytest.approx(0.4)


# ---- what the points look like -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "q", "index", "nominal", "l1"),
    [
        ([1, 0, 0], [0, 0, 1], 2, 1, 2),
        ([0.5, 0.5, 0], [0, 0.5, 0.5], 1, 0.5, 1),
        ([0.2, 0.3, 0.5], [0.2, 0.3, 0.5], 0, 0, 0),
        ([0.2, 0.3, 0.5], [0.5, 0.3, 0.2], 0.6, 0.3, 0.6),  # the same numbers, permuted
    ],
)
def test_distances_of_known_distributions(toy, p, q, index, nominal, l1):
    one = predicting(toy, [p, p])
    for ground, expected in (("index", index), ("nominal", nominal), ("l1", l1)):
        found = number(one, "wasserstein", decoded=decoding(one, [q, q]), ground=ground)
        assert found == pytest.approx(expected, abs=1e-12)


DISTRIBUTIONS = st.integers(0, 10**6).map(
    lambda seed: torch.rand(3, 4, generator=torch.Generator().manual_seed(seed), dtype=F64)
)


@given(DISTRIBUTIONS, st.sampled_from(["index", "nominal", "l1"]))
def test_the_distance_is_a_metric(raw, ground):
    p, q, r = (raw / raw.sum(dim=1, keepdim=True))[:, None]

    def apart(a, b):
        return float(distance(a, b, ground))

    assert apart(p, q) == apart(q, p) >= 0
    assert apart(p, p) == 0
    assert apart(p, r) <= apart(p, q) + apart(q, r) + 1e-12
    assert apart(p, q) <= {"index": 3, "nominal": 1, "l1": 2}[ground]


@given(DISTRIBUTIONS)
def test_the_distance_is_the_cheapest_transport(raw):
    """By its dual over functions with slopes of at most one, whose corners are counted out."""
    p, q, _ = raw / raw.sum(dim=1, keepdim=True)
    corners = [
        torch.tensor([0, *itertools.accumulate(slopes)], dtype=F64)
        for slopes in itertools.product((-1, 1), repeat=3)
    ]
    line = max(float(f @ (p - q)) for f in corners)
    assert float(distance(p[None], q[None], "index")) == pytest.approx(line, abs=1e-12)
    apart = max(
        float(torch.tensor(f, dtype=F64) @ (p - q)) for f in itertools.product((0, 1), repeat=4)
    )
    assert float(distance(p[None], q[None], "nominal")) == pytest.approx(apart, abs=1e-12)


def test_the_line_of_classes_is_scipys():
    stats = pytest.importorskip("scipy.stats")
    p, q = torch.rand(2, 6, generator=torch.Generator().manual_seed(0), dtype=F64)
    p, q = p / p.sum(), q / q.sum()
    places = list(range(6))
    expected = stats.wasserstein_distance(places, places, p.tolist(), q.tolist())
    assert float(distance(p[None], q[None], "index")) == pytest.approx(expected, abs=1e-12)


def test_classes_that_were_not_kept_are_one_more(toy):
    one = replace(predicting(toy, [[0.5, 0.2], [0.5, 0.2]]), classes=(40, 7))
    decoded = decoding(one, [[0.2, 0.2], [0.2, 0.2]])
    assert number(one, "wasserstein", decoded=decoded) == pytest.approx(0.3)
    assert number(one, "wasserstein", decoded=decoded, ground="l1") == pytest.approx(0.6)
    assert "no place on a line" in reason(one, "wasserstein", decoded=decoded, ground="index")
    independent = predicting(toy, [[0.9, 0.8], [0.9, 0.8]])
    why = reason(independent, "wasserstein", decoded=decoding(independent, [[0.9, 0.8]] * 2))
    assert "exclude each other" in why


def test_decoded_inputs_that_follow_three_points_later(toy):
    order = [0, 0, 1, 1, 1, 2, 2, 2, 2, 0, 0, 0, 0]
    one = predicting(toy, peaks(order))
    decoded = decoding(one, peaks([0] * 3 + order[:-3]))
    assert number(one, "catch_up", decoded=decoded) == 1
    assert number(one, "catch_up_delay", decoded=decoded) == 30


def test_every_change_of_a_decoded_input_is_used_once(toy):
    one = predicting(toy, peaks([0, 1, 0, 1, 1, 1]))
    decoded = decoding(one, peaks([0, 0, 0, 0, 1, 1]))
    found = pellucid.measure_walk(one, metric="catch_up", decoded=decoded)
    assert found.more == {"events": 3, "matched": 1}
    assert found.value == pytest.approx(1 / 3)
    assert number(one, "catch_up_delay", decoded=decoded) == 30
    before = decoding(one, peaks([0, 0, 0, 0, 0, 0]))
    assert number(one, "catch_up", decoded=before) == 0
    assert "no change of class was followed" in reason(one, "catch_up_delay", decoded=before)
    early = predicting(toy, peaks([0, 0, 1]))
    assert number(early, "catch_up", decoded=decoding(early, peaks([0, 1, 1]))) == 0
    still = predicting(toy, peaks([0, 0]))
    why = reason(still, "catch_up", decoded=decoding(still, peaks([0, 1])))
    assert why == "the prediction never changed"


def test_certainty_is_compared_class_by_class(toy):
    p = [[0.6, 0.4], [0.7, 0.3], [0.1, 0.9]]
    one = predicting(toy, p)
    found = pellucid.measure_walk(one, metric="decoded_correlation", decoded=decoding(one, p))
    assert found.value == pytest.approx(1)
    q = [[0.9, 0.1], [0.8, 0.2], [0.4, 0.6]]  # 0.6 0.7 0.9 against 0.9 0.8 0.6
    opposite = number(one, "decoded_correlation", decoded=decoding(one, q))
    assert opposite == pytest.approx(-1)
    level = predicting(toy, [[0.6, 0.4]] * 3)
    why = reason(level, "decoded_correlation", decoded=decoding(level, p))
    assert why == "a constant series"


def test_metrics_of_predictions_read_the_decoded_ones_where_asked(toy):
    one = predicting(toy, peaks([0, 0, 0]))
    decoded = decoding(one, peaks([0, 1, 0]))
    assert number(one, "prediction_changes", decoded=decoded) == 0
    assert number(one, "prediction_changes", decoded=decoded, of="decoded") == 100
    assert number(one, "first_change", decoded=decoded, of="decoded") == 10
    assert number(one, "original_probability", decoded=decoded, of="decoded") == pytest.approx(0.8)


# ---- pictures and texts --------------------------------------------------------------------------


def framed(walk, frames):
    count = len(frames)
    one = predicting(walk, peaks([0] * count))
    return one, decoding(one, peaks([0] * count), frames=np.stack(frames))


def test_one_of_four_patches_changes(picture):
    """By 102 of 255, which is 0.4: a mean of 0.1 over the four."""
    view = np.full_like(picture.item.view, 50)
    other = view.copy()
    top, left, bottom, right = picture.segments[picture.tokens[0]].box
    other[top:bottom, left:right] += 102
    other[-1, -1] = 255  # a pixel that does not move counts for nothing
    one, decoded = framed(picture, [view, other, view])
    assert number(one, "pixel_change", decoded=decoded) == pytest.approx(0.1, abs=1e-12)
    assert number(one, "pixel_change", decoded=decoded, against="start") == pytest.approx(0.05)


def test_a_picture_without_patches_changes_as_a_whole(tiny):
    one = walk(tiny("swin"), space="pixels", goal="leave", steps=2, save_every=1)
    decoded = one.decode()
    expected = np.abs(np.diff(decoded.frames.astype(float), axis=0)).mean() / 255
    assert number(one, "pixel_change", decoded=decoded, stride=1) == pytest.approx(expected)


def test_one_of_five_tokens_changes():
    one = walk(build("bert", dtype=F64), "the film is fine and", tokens="all")
    own = [t for t in one.tokens if one.segments[t].role == "content"]
    assert len(own) == 5
    ids = torch.tensor([one.item.rows["input_ids"]] * 3)
    ids[1, own[2]] += 1
    told = predicting(one, peaks([0, 0, 0]))
    decoded = decoding(told, peaks([0, 0, 0]), token_ids=ids)
    assert number(told, "token_change", decoded=decoded) == pytest.approx(0.2)
    assert number(told, "token_change", decoded=decoded, scale="count") == 1
    assert number(told, "token_change", decoded=decoded, against="start") == pytest.approx(0.1)


def test_metrics_of_the_other_kind_are_skipped(toy, picture):
    one = predicting(toy, peaks([0, 0]))
    decoded = decoding(one, peaks([0, 0]))
    assert reason(one, "pixel_change", decoded=decoded) == "only pictures have pixels"
    assert "variance" in reason(one, "informative_share", decoded=decoded)
    image, frames = framed(picture, [picture.item.view] * 2)
    assert "tokens of words" in reason(image, "token_change", decoded=frames)


def shades(view, name):
    """Pictures with a known variance on the scale from -1 to 1."""
    rows, columns = np.indices(view.shape[:2])
    checkered = ((rows + columns) % 2)[..., None] * np.ones(view.shape[2])
    uniform = np.random.default_rng(0).integers(0, 256, view.shape)
    found = {
        "black": np.zeros(view.shape),
        "grey": np.full(view.shape, 128),
        "checkered": 255 * checkered,
        "noise": uniform,
        "faint": 110 + 26 * checkered,  # 0.0104 from -1 to 1, and 0.0026 from 0 to 1
        "fainter": 110 + 24 * checkered,  # 0.0089
    }
    return found[name].astype(np.uint8)


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("black", False),
        ("grey", False),
        ("checkered", True),
        ("noise", True),
        ("faint", True),
        ("fainter", False),
    ],
)
def test_pictures_of_one_colour_say_nothing(picture, name, kept):
    view = picture.item.view
    one, decoded = framed(picture, [view, shades(view, name)])
    assert number(one, "informative_share", decoded=decoded) == float(kept)


def test_the_least_variance_is_on_the_scale_from_minus_one_to_one(picture):
    view = picture.item.view
    for name, variance in (("checkered", 1.0), ("noise", 1 / 3)):
        one, decoded = framed(picture, [view, shades(view, name)])
        assert number(one, "informative_share", decoded=decoded, least=0.97 * variance) == 1
        assert number(one, "informative_share", decoded=decoded, least=1.03 * variance) == 0


def test_pictures_per_second(picture):
    view = picture.item.view
    frames = [view, *(shades(view, name) for name in ("noise", "black", "checkered", "noise"))]
    one = predicting(picture, peaks([0] * 5))
    one = replace(one, provenance=replace(one.provenance, seconds=2.0))
    decoded = decoding(one, peaks([0, 0, 0, 0, 1]), frames=np.stack(frames))
    assert number(one, "pictures_per_second", decoded=decoded) == 2
    assert number(one, "informative_per_second", decoded=decoded) == 1  # the last has another class
    assert number(one, "informative_share", decoded=decoded) == pytest.approx(2 / 3)


def test_the_price_of_a_step(toy):
    one = replace(toy, provenance=replace(toy.provenance, seconds=6.0))
    found = pellucid.measure_walk(one, metric="seconds_per_token")
    assert found.value == pytest.approx(6 / (one.steps * len(one.tokens)))
    assert found.more["seconds_per_iteration"] == pytest.approx(6 / one.steps)


# ---- volumes -------------------------------------------------------------------------------------


def cloud(n, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(40, 2, n, generator=generator, dtype=F64) * torch.arange(1, n + 1)


def exploring(walk, points):
    return replace(predicting(walk, [[0.6, 0.4]] * len(points), points=points), tokens=(1, 2))


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_path_twice_as_wide_has_two_to_the_n_times_the_volume(toy, n):
    one = exploring(toy, cloud(n))
    other = exploring(toy, one.points[:1] + 2 * (one.points - one.points[:1]))
    assert number(other, "volume_ratio", other=one, share=1.0, scale="plain") == pytest.approx(2**n)
    found = pellucid.measure_walk(other, metric="volume_ratio", other=one, share=1.0)
    assert found.value == pytest.approx(n * math.log10(2))
    both = found.more["log10_volume"] - found.more["log10_volume_other"]
    assert both == pytest.approx(found.value)
    assert number(one, "volume_ratio", other=one) == pytest.approx(0, abs=1e-12)


def test_volumes_do_not_depend_on_the_axes(toy):
    generator = torch.Generator().manual_seed(1)
    turned, _ = torch.linalg.qr(torch.randn(4, 4, generator=generator, dtype=F64))
    a, b = cloud(4), 1.7 * cloud(4, seed=2)
    straight = number(exploring(toy, a), "volume_ratio", other=exploring(toy, b))
    found = number(exploring(toy, a @ turned), "volume_ratio", other=exploring(toy, b @ turned))
    assert found == pytest.approx(straight, rel=1e-9)


def test_along_a_line_it_is_the_ratio_of_extents(toy):
    line = torch.linspace(0, 1, 9, dtype=F64)[:, None, None] * torch.ones(1, 2, 3, dtype=F64)
    found = number(
        exploring(toy, 7 * line), "volume_ratio", other=exploring(toy, line), scale="plain"
    )
    assert found == pytest.approx(7)


def test_along_their_own_axes_volumes_can_have_other_dimensions(toy):
    """A thin walk along two axes of a tenth against one along one of them: 0.01 over 0.1."""
    flat = torch.zeros(4, 2, 2, dtype=F64)
    flat[:, :, 0] = torch.tensor([0.0, 0.1, 0.0, 0.1])[:, None]
    full = flat.clone()
    full[:, :, 1] = torch.tensor([0.0, 0.0, 0.1, 0.1])[:, None]
    one, other = exploring(toy, full), exploring(toy, flat)
    found = pellucid.measure_walk(one, metric="volume_ratio", other=other, axes="own")
    assert found.value == pytest.approx(-1, abs=1e-6)
    assert found.more["log10_volume"] == pytest.approx(-2, abs=1e-6)
    assert found.more["log10_volume_other"] == pytest.approx(-1, abs=1e-6)
    assert number(one, "volume_ratio", other=other, share=1.0) == pytest.approx(0, abs=1e-6)


def test_tokens_that_stood_still_are_left_out_of_the_mean(toy):
    a, b = cloud(3), 2 * cloud(3)
    a[:, 1] = a[:1, 1]
    found = pellucid.measure_walk(
        exploring(toy, b), metric="volume_ratio", other=exploring(toy, a), share=1.0
    )
    assert found.value == pytest.approx(3 * math.log10(2))
    assert (found.more["tokens"], found.more["still"]) == (1, 1)
    still = exploring(toy, torch.ones(4, 2, 3, dtype=F64))
    assert "no token moved" in reason(still, "volume_ratio", other=still)


def test_volumes_of_other_tokens_or_inputs_have_no_ratio(toy, picture):
    adapter = build("vit", dtype=F64)
    first, second, _ = sample_inputs(adapter)
    one, other = (walk(adapter, raw, steps=2) for raw in (first, second))
    other = replace(other, item=replace(other.item, view=other.item.view[::-1].copy()))
    for beside in (other, picture, toy):
        with pytest.raises(ArgumentError, match=r"one input(.|\n)*explore"):
            number(one, "volume_ratio", other=beside)


# ---- what walks suggest --------------------------------------------------------------------------


def prompt(iteration, probability, changed):
    return Prompt(iteration, 1, 0, "x", 0.5, "x", probability, "b" if changed else "a", changed)


def test_inputs_that_are_all_the_same_have_no_changed_set(toy):
    one = predicting(toy, [[0.8, 0.2]] * 3)
    decoded = decoding(one, [[0.8, 0.2]] * 3)
    assert number(one, "flip_rate", decoded=decoded) == 0
    assert number(one, "probability_stayed", decoded=decoded) == pytest.approx(0.8)
    assert "this set" in reason(one, "probability_changed", decoded=decoded)
    for point in pellucid.class_trend([one], decoded=[decoded]):
        assert (point.stayed.count, point.changed.count, point.flip_rate) == (1, 0, 0)
        assert math.isnan(point.changed.mean)
        assert (point.stayed.low, point.stayed.high) == pytest.approx((0.8, 0.8))


def test_the_probability_is_that_of_the_original_class(toy):
    """Not the largest one of the changed prediction: of two classes it is below one half."""
    one = predicting(toy, [[0.8, 0.2]] * 3)
    decoded = decoding(one, [[0.8, 0.2], [0.1, 0.9], [0.3, 0.7]])
    assert number(one, "probability_changed", decoded=decoded) == pytest.approx(0.2)
    found = pellucid.measure_walk(one, metric="flip_rate", decoded=decoded)
    assert found.curve == (0, 1, 1)
    assert found.value == pytest.approx(2 / 3)


def test_a_trend_over_several_walks(toy):
    one = predicting(toy, [[0.8, 0.2]] * 2)
    first = [prompt(0, 0.9, False), prompt(0, 0.2, True), prompt(10, 0.7, False)]
    second = [prompt(0, 0.5, False), prompt(0, 0.4, True), prompt(10, 0.5, False)]
    found = pellucid.class_trend([one, one], prompts=[first, second])
    assert [point.iteration for point in found] == [0, 10]
    assert found[0].stayed.mean == pytest.approx(0.7)
    assert found[0].changed.mean == pytest.approx(0.3)
    assert found[0].flip_rate == 0.5
    assert (found[0].changed.low, found[0].changed.high) == pytest.approx((0.2, 0.4))
    assert found[1].changed.count == 0
    again = pellucid.class_trend([one, one], prompts=[first, second])
    assert repr(again) == repr(found)
    by_walk = pellucid.class_trend([one, one], prompts=[first, second], draw="walk")
    assert by_walk[0].stayed.mean == found[0].stayed.mean
    assert number(one, "flip_rate", prompts=first) == pytest.approx((0.5 + 0) / 2)


def test_prompts_of_a_walk_that_did_not_move_are_led_by_the_original():
    one = walk(build("bert", dtype=F64))
    prompts = one.alternatives(using="nearest", top=2)
    best = [p for p in prompts if p.iteration == 0 and p.rank == 0]
    assert {p.text for p in best} == {one.item.parts[0]}
    assert not any(p.changed for p in best)
    found = pellucid.measure_walk(one, metric="flip_rate", prompts=prompts)
    at_start = [p.changed for p in prompts if p.iteration == 0]
    assert found.curve[0] == pytest.approx(sum(at_start) / len(at_start))


def test_curves_of_several_walks(toy):
    walks = [predicting(toy, p) for p in ([[0.8, 0.2], [0.6, 0.4]], [[0.8, 0.2]], [[0.6, 0.4]] * 3)]
    found = mean_curve(pellucid.measure_walk(walks, metric="original_probability"))
    assert [(one.iteration, one.over.n) for one in found] == [(0, 2), (10, 2), (20, 1)]
    assert [one.over.mean for one in found] == pytest.approx([0.7, 0.6, 0.6])
    assert found[0].over.std == pytest.approx(0.1)


# ---- lists, tables, and the catalogue ------------------------------------------------------------


def test_a_list_of_walks_is_its_members(toy):
    walks = [predicting(toy, peaks([0, 1, 0])), predicting(toy, peaks([0, 0, 0]))]
    decoded = [decoding(one, peaks([0, 0, 1])) for one in walks]
    together = pellucid.measure_walk(walks, metric="wasserstein", decoded=decoded)
    alone = [
        pellucid.measure_walk(one, metric="wasserstein", decoded=told)
        for one, told in zip(walks, decoded, strict=True)
    ]
    assert together == alone
    assert pellucid.measure_walk([], metric="first_change") == []


def test_directions_are_those_of_the_goal(toy):
    stays = predicting(toy, peaks([0, 0]))
    leaves = replace(stays, goal="leave")
    for one, better in ((stays, "lower"), (leaves, "higher")):
        assert pellucid.measure_walk(one, metric="ranking_changes").better == better
    assert pellucid.measure_walk(stays, metric="top_probability").better is None


def test_rows_count_what_was_skipped():
    row = walk_row("SiMEC", "first_change", [1.0, "never", 2.0, 6.0, "never"])
    assert (row.mean, row.n, row.skipped) == (3.0, 3, {"never": 2})
    assert row.std == pytest.approx(math.sqrt(14 / 3))
    assert row.se == pytest.approx(math.sqrt(14) / 3)
    empty = walk_row("SiMEC", "first_change", ["never"])
    assert (empty.mean, empty.std, empty.se, empty.n) == (None, None, None, 0)


def test_a_table_has_a_row_for_each_name_and_metric():
    table = walk_table({"one": [{"a": 1.0, "b": "no"}, {"a": 3.0}], "two": [{"a": 5.0}]})
    assert [(row.name, row.metric, row.n) for row in table] == [
        ("one", "a", 2),
        ("two", "a", 1),
        ("one", "b", 0),
    ]
    assert table.row("one", "a").mean == 2
    shown = repr(table).splitlines()
    assert shown[0].split() == ["name", "metric", "mean", "std", "se", "n", "skipped"]
    assert shown[1].split() == ["one", "a", "2", "1", "0.7071", "2"]
    assert "1 x no" in shown[3]
    with pytest.raises(KeyError):
        table.row("two", "b")


def test_the_table_of_metrics():
    for name, spec in WALK_METRICS.items():
        assert spec.name == name
        assert spec.summary.endswith(".")
        assert set(spec.cite) <= set(REFERENCES)
        assert spec.cite


def test_they_are_listed_after_those_of_explanations(tiny):
    names = [entry.name for entry in pellucid.list_metrics()]
    assert names[-len(WALK_METRICS) :] == list(WALK_METRICS)
    for family, other in (("bert", "pixel_change"), ("vit", "token_change")):
        fits = {entry.name: entry for entry in pellucid.list_metrics(tiny(family))}
        assert fits["ranking_changes"].fits
        assert not fits[other].fits
        assert "walks from" in fits[other].why_not
    told = {"kind": "text", "labels": ["a", "b"]}
    box = pellucid.blackbox(lambda texts: torch.full((len(texts), 2), 0.5).numpy(), **told)
    entry = {entry.name: entry for entry in pellucid.list_metrics(box)}["ranking_changes"]
    assert "cannot be walked in" in entry.why_not


# ---- bad input -----------------------------------------------------------------------------------

DECODED = ["wasserstein", "decoded_correlation", "catch_up", "token_change"]


@pytest.mark.parametrize("metric", [*DECODED, "flip_rate"])
def test_what_was_not_decoded_is_asked_for(toy, metric):
    one = predicting(toy, peaks([0, 1]))
    with pytest.raises(ArgumentError, match=r"decoded=walk\.decode\("):
        pellucid.measure_walk(one, metric=metric)


def test_pictures_and_other_walks_are_asked_for(toy, picture):
    one = predicting(picture, peaks([0, 1]))
    for metric in ("pixel_change", "informative_share", "pictures_per_second"):
        with pytest.raises(ArgumentError, match=r"walk\.decode\("):
            pellucid.measure_walk(one, metric=metric)
    with pytest.raises(ArgumentError, match=r"walk\.decode\("):
        pellucid.measure_walk(one, metric="ranking_changes", of="decoded")
    with pytest.raises(ArgumentError, match="other="):
        pellucid.measure_walk(toy, metric="volume_ratio")


@pytest.mark.parametrize("metric", WALK_METRICS)
def test_one_recorded_point_is_skipped(toy, picture, metric):
    source = picture if WALK_METRICS[metric].kinds == ("image",) else toy
    one = predicting(source, peaks([0]))
    one = replace(one, series={name: values[:1] for name, values in one.series.items()})
    fields = {"frames": picture.item.view[None], "token_ids": torch.zeros(1, 20, dtype=torch.long)}
    decoded = decoding(one, peaks([0]), **fields)
    found = pellucid.measure_walk(one, metric=metric, decoded=decoded, other=one)
    if metric in ("flip_rate", "probability_stayed"):  # of what a point suggests, which is there
        assert found.value is not None
    else:
        assert found.skipped
        assert found.value is None


def test_walks_shorter_than_a_stride(toy):
    one = predicting(toy, peaks([0, 1, 2]), stride=2)
    assert reason(one, "ranking_changes") == "the walk ended before iteration 10"
    assert number(one, "prediction_changes", stride=2) == 500


def test_strides_that_were_not_kept(toy):
    one = predicting(toy, peaks([0, 1, 2]), stride=20)
    with pytest.raises(ArgumentError, match=r"stride=20, or explore\(..., save_every=10\)"):
        pellucid.measure_walk(one, metric="ranking_changes")
    for stride in (0, 2.5, "10"):
        with pytest.raises(ArgumentError, match="stride"):
            pellucid.measure_walk(one, metric="ranking_changes", stride=stride)


def test_a_walk_that_ended_between_two_saved_points_is_measured_at_strides(toy):
    one = predicting(toy, peaks([0, 1, 2, 0]))
    one = replace(one, iterations=torch.tensor([0, 10, 20, 23]))
    found = pellucid.measure_walk(one, metric="prediction_changes")
    assert found.iterations == (10, 20)


def test_a_model_with_one_output_has_no_classes(toy):
    one = predicting(toy, [[3.1], [2.9]])
    for metric in ("prediction_changes", "ranking_changes", "original_probability"):
        assert reason(one, metric) == "the model has one output, and no classes"


def test_wrong_things_are_named(toy):
    one = predicting(toy, peaks([0, 1]))
    decoded = decoding(one, peaks([0, 1]))
    with pytest.raises(ArgumentError, match="did you mean 'ranking_changes'"):
        pellucid.measure_walk(one, metric="ranking_change")
    with pytest.raises(ArgumentError, match="only walks"):
        pellucid.measure_walk("walk", metric="ranking_changes")
    with pytest.raises(ArgumentError, match="walk is something else"):
        pellucid.measure_walk([decoded], metric="ranking_changes")
    with pytest.raises(ArgumentError, match="unknown parameter of metric of walks"):
        pellucid.measure_walk(one, metric="ranking_changes", strides=3)
    with pytest.raises(ArgumentError, match="no such choice"):
        pellucid.measure_walk(one, metric="wasserstein", ground="nearest", decoded=decoded)
    with pytest.raises(ArgumentError, match="one for each walk"):
        pellucid.measure_walk([one, one], metric="wasserstein", decoded=[decoded])
    with pytest.raises(ArgumentError, match="one for each walk"):
        pellucid.measure_walk([one, one], metric="wasserstein", decoded=decoded)
    later = predicting(toy, peaks([0, 2]))
    with pytest.raises(ArgumentError, match="another walk"):
        pellucid.measure_walk(later, metric="wasserstein", decoded=decoded)
    with pytest.raises(ArgumentError, match="alternative prompts of this walk"):
        pellucid.measure_walk(one, metric="flip_rate", prompts=[prompt(99, 0.1, True)])
    with pytest.raises(ArgumentError, match="alternative prompts of this walk"):
        pellucid.measure_walk(one, metric="flip_rate", prompts=decoded)
    with pytest.raises(ArgumentError, match="one for each walk"):
        pellucid.class_trend([one])
    with pytest.raises(ArgumentError, match="level"):
        pellucid.class_trend([one], decoded=[decoded], level=95)
    assert reason(one, "flip_rate", prompts=[]) == "no alternative prompts"


def test_a_number_that_is_none_is_never_silent(toy):
    one = predicting(toy, [[0.5, 0.5], [math.nan, 0.5]])
    with pytest.raises(NumericalError, match="original_probability"):
        number(one, "original_probability")


def test_a_metric_of_ones_own(toy):
    @pellucid.walk_metric(cite=(), stay="lower", leave=None)
    def points(evidence: Evidence, *, more: int = 0):
        return WalkMeasured(len(evidence.walk.iterations) + more)

    assert number(predicting(toy, peaks([0, 1])), points, more=2) == 4


def test_measuring_leaves_no_trace():
    adapter = build("bert")
    one = walk(adapter)
    decoded, prompts = one.decode(), one.alternatives()
    before = fingerprint(adapter)
    for metric in WALK_METRICS:
        pellucid.measure_walk(one, metric=metric, decoded=decoded, prompts=prompts, other=one)
    pellucid.class_trend([one], prompts=[prompts])
    assert_unchanged(before, fingerprint(adapter), "by measuring a walk")
