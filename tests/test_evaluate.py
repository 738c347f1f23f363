"""`evaluate` against `measure`, against counted passes, and against planted truths."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from rich.console import Console

import pellucid
from pellucid import ArgumentError, InputError, UnsupportedCombination
from pellucid._answers import PREDICTED, Answers
from pellucid._configured import configured
from pellucid._evaluate import evaluate_samples
from pellucid._samples import read_sample
from pellucid._spec import as_method, as_metric, bound_parameters
from pellucid._target import QUANTITIES, Objective, Target
from pellucid.methods import METHODS
from pellucid.metrics import METRICS
from pellucid.testing.contract import check_no_trace
from pellucid.testing.tiny import build, sample_inputs
from pellucid.viz.scores import show_table

SIDE = 8


@dataclass(frozen=True)
class Sample:
    input: object
    label: int | str | None = None
    truth: dict = field(default_factory=dict)
    id: str = ""


def noisy(number, side=SIDE):
    return np.random.default_rng(number).integers(128, 256, (side, side, 3), dtype=np.uint8)


def seeing(read, watch=None):
    """A black box on 8 x 8 pictures whose first class has probability `read(one picture)`."""

    def function(images):
        if watch is not None:
            watch.extend(one.tobytes() for one in images)
        p = np.clip([float(read(one)) for one in images], 1e-9, 1 - 1e-9)
        return np.stack([np.log(p), np.log1p(-p)], axis=1)

    return pellucid.blackbox(function, kind="image", labels=["seen", "not"], size=(SIDE, SIDE))


def brightness(image):
    return image.mean() / 255


def column(case):
    """A map without ties, the same for every picture."""
    return torch.arange(SIDE * SIDE).view(1, SIDE, SIDE).repeat(len(case.batch), 1, 1).double()


def row(case):
    return column(case).transpose(1, 2)


def vit_data(count=5):
    """Pictures for the tiny ViT, half of them with a label, all with an object."""
    mask = np.zeros((32, 48), dtype=np.int8)
    mask[8:20, 10:30], mask[20:22] = 1, -1
    return [
        Sample(noisy(i, 40)[:, :36], i % 3, {"mask": np.roll(mask, i, axis=1)[:, :36]}, f"s{i}")
        for i in range(count)
    ]


@pytest.fixture(scope="module")
def vit():
    return build("vit", dtype=torch.float64)


METHODS_USED = ["gradient_x_input", ("integrated_gradients", {"steps": 2})]
METRICS_USED = [
    ("deletion", {"steps": 5, "baseline": "random"}),
    ("insertion_minus_deletion", {"steps": 5}),
    ("positive_perturbation", {"steps": 4}),
    ("log_odds", {"steps": 4, "ties": "random"}),
    ("max_sensitivity", {"samples": 1}),
    "mean_iou",
    "mean_average_precision",
    "pointing_game",
    "sparseness",
]


# ---- the numbers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["label", None, 1])
def test_a_table_has_the_numbers_of_measure(vit, target):
    data = [Sample(one.input, one.label, {"mask": np.ones(one.input.shape[:2]) * (i % 2)}, one.id)
            for i, one in enumerate(vit_data(3))]  # fmt: skip
    table = pellucid.evaluate(
        vit, data, methods=METHODS_USED, metrics=METRICS_USED, target=target, batch_size=2
    )
    for method, params in (("gradient_x_input", {}), ("integrated_gradients", {"steps": 2})):
        explained = [
            pellucid.explain(
                vit, one.input, method=method, target=one.label if target == "label" else target,
                **params,
            )
            for one in data
        ]  # fmt: skip
        for given in METRICS_USED:
            name, settings = given if isinstance(given, tuple) else (given, {})
            truth = {
                "label": [one.label for one in data],
                "mask": [one.truth["mask"] for one in data],
            }
            kind = METRICS[name].truth
            alone = pellucid.measure(
                vit, explained, metric=name, truth=truth[kind] if kind else None, **settings
            )
            found = table.measurements(
                table.methods[0 if not params else 1].label,
                next(m.label for m in table.metrics if m.spec.name == name),
            )
            for one, other in zip(found, alone, strict=True):
                assert one.value == pytest.approx(other.value, abs=1e-9)
                assert (one.skipped, one.label, one.params) == (
                    other.skipped, other.label, other.params,
                )  # fmt: skip


def test_numbers_depend_on_neither_batches_nor_order(vit):
    data = vit_data()
    run = partial(
        pellucid.evaluate, vit, methods=METHODS_USED, metrics=METRICS_USED, target="label", seed=3
    )
    whole = run(data, batch_size=5)
    order = [3, 0, 4, 2, 1]
    for other in (run([data[i] for i in order], batch_size=2), run(data[::-1], batch_size=1)):
        places = [other.samples.index(name) for name in whole.samples]
        for one in whole.rows:
            again = other.measurements(one.method, one.metric)
            expected = [m.value for m in whole.measurements(one.method, one.metric)]
            assert [again[i].value for i in places] == pytest.approx(expected, abs=1e-9)
            assert other.row(one.method, one.metric).se == pytest.approx(one.se, abs=1e-9)
            assert other.row(one.method, one.metric).skipped == one.skipped


def test_a_row_says_what_its_samples_say(vit):
    table = pellucid.evaluate(
        vit, vit_data(), methods=["random"], metrics=["aopc", "mean_iou", "pixel_accuracy"]
    )
    values = np.array([m.value for m in table.measurements("random", "aopc")])
    aopc = table.row("random", "aopc")
    assert aopc.mean == pytest.approx(values.mean())
    assert aopc.std == pytest.approx(values.std())
    assert aopc.se == pytest.approx(values.std(ddof=1) / np.sqrt(len(values)))
    assert aopc.median == pytest.approx(np.median(values))
    assert (aopc.n, aopc.skipped, aopc.pooled, aopc.counts) == (5, {}, False, {})
    counts = [m.counts for m in table.measurements("random", "mean_iou")]
    total = {name: sum(one[name] for one in counts) for name in counts[0]}
    pooled = table.row("random", "mean_iou")
    parts = [total[f"both_{c}"] / total[f"either_{c}"] for c in ("object", "background")]
    assert pooled.mean == pytest.approx(sum(parts) / 2)
    assert (pooled.pooled, pooled.counts) == (True, total)


# ---- shared forwards -----------------------------------------------------------------------------

SHARED = [
    ("deletion", {"steps": 16}),
    ("insertion", {"steps": 16, "baseline": "black"}),
    ("insertion_minus_deletion", {"steps": 16}),
    ("aopc", {"steps": 8}),
    ("log_odds", {"steps": 8}),
    ("positive_perturbation", {"steps": 4}),
    "sparseness",
]


@pytest.mark.parametrize("batch_size", [1, 3, 8])
def test_no_version_is_put_to_the_model_twice(batch_size):
    seen: list[bytes] = []
    model = seeing(brightness, seen)
    data = [Sample(noisy(i), "seen", id=str(i)) for i in range(3)]
    del seen[:]
    table = pellucid.evaluate(
        model, data, methods=[column, row], metrics=SHARED, target="seen", batch_size=batch_size
    )
    explaining = 2 * len(data)  # each method asks for the prediction
    assert table.evaluations == len(seen)
    versions = [one for one in seen if one not in {sample.input.tobytes() for sample in data}]
    black = bytes(SIDE * SIDE * 3)
    assert versions.count(black) == len(data), "black pictures of several inputs are theirs alone"
    others = [one for one in versions if one != black]
    assert len(others) == len(set(others))
    inside = 2 * 15  # of deletion, and of insertion
    assert len(seen) == explaining + len(data) * (2 * inside + 2)
    evaluations = {r.metric: r.evaluations for r in table.rows if r.method == "row"}
    assert evaluations["deletion(steps=16)"] == len(data) * 15, "the ends are known"
    assert [evaluations[m.label] for m in table.metrics[2:]] == [0] * 5


def test_replacing_a_pixel_by_its_equal_is_doing_nothing():
    """Half of the picture is black already; what is left is put to the model once."""
    picture = noisy(0)
    picture[:4] = 0
    seen: list[bytes] = []
    model = seeing(lambda image: (image[..., 0] > 100).mean(), seen)
    for method, steps in ((column, 64), (row, 64), (row, 16)):
        found = pellucid.explain(model, picture, method=method, target="seen")
        rank = (-found.scores.numpy()).argsort(axis=None).argsort().reshape(SIDE, SIDE)
        curve = []
        for step in range(steps + 1):
            gone = np.where((rank < step * SIDE * SIDE // steps)[..., None], 0, picture)
            curve.append((gone[..., 0] > 100).mean())
        del seen[:]
        measured = pellucid.measure(
            model, found, metric="insertion_minus_deletion", steps=steps, baseline="black"
        )
        assert len(seen) == len(set(seen)) == measured.evaluations
        deletion = pellucid.measure(model, found, metric="deletion", steps=steps)
        assert deletion.curve == pytest.approx(np.clip(curve, 1e-9, 1), abs=1e-9)


def test_a_picture_that_is_its_own_baseline_is_asked_about_once():
    seen: list[bytes] = []
    model = seeing(brightness, seen)
    flat = np.full((SIDE, SIDE, 3), 77, dtype=np.uint8)
    found = pellucid.explain(model, flat, method=column, target="seen")
    measured = pellucid.measure(model, found, metric="deletion", baseline="black", steps=4)
    assert measured.evaluations == 5
    black = pellucid.explain(model, np.zeros_like(flat), method=column, target="seen")
    assert pellucid.measure(model, black, metric="deletion", steps=4).evaluations == 1


def test_a_curve_is_the_same_with_and_without_what_is_remembered():
    model = seeing(lambda image: (image[2:4] > 100).mean())
    found = pellucid.explain(model, [noisy(0), noisy(1)], method=column, target="seen")
    plain = pellucid.measure(model, found, metric="insertion", steps=16, batch_size=5)
    table = pellucid.evaluate(
        model,
        [noisy(0), noisy(1)],
        methods=[column],
        metrics=[("deletion", {"steps": 16, "baseline": "blur"}), ("insertion", {"steps": 16})],
        target="seen",
    )
    found = table.measurements("column", "insertion(steps=16)")
    assert [m.value for m in found] == pytest.approx([m.value for m in plain], abs=1e-12)


@pytest.mark.parametrize("baseline", ["black", "mean", "random", "blur"])
def test_the_difference_of_two_metrics_is_the_metric_of_their_difference(vit, baseline):
    """Also where the baseline is drawn: an image has one for all metrics."""
    settings = {"steps": 5, "baseline": baseline}
    names = ("insertion", "deletion", "insertion_minus_deletion")
    table = pellucid.evaluate(
        vit, vit_data(2), methods=["random"], metrics=[(name, settings) for name in names]
    )
    insertion, deletion, both = (row.mean for row in table.rows)
    assert both == pytest.approx(insertion - deletion, abs=1e-12)
    assert table.rows[2].evaluations == 0


def test_answers_forget_the_one_that_was_not_asked_for_longest():
    answers = Answers(most=2)
    answers.keep("a", [1.0])
    answers.keep("b", [2.0])
    assert answers.recall("a") == [1.0]
    answers.keep("c", [3.0])
    assert [answers.recall(name) for name in "abc"] == [[1.0], None, [3.0]]


def test_an_answer_has_every_quantity(vit):
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(4, 1, 5, generator=generator, dtype=torch.float64)
    classes = torch.tensor([[0], [4], [2], [1]])
    for independent in (False, True):
        every = Objective(Target(), classes, independent=independent).all_of_rows(rows)
        assert every.shape == (4, PREDICTED)
        for place, quantity in enumerate(QUANTITIES):
            one = Objective(Target(quantity=quantity), classes, independent=independent)
            torch.testing.assert_close(every[:, place], one.of_rows(rows), rtol=0, atol=0)


# ---- truths --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("boxes", "value"),
    [
        ([(6, 6, 8, 8)], 1.0),  # the highest score of `column` is the last pixel
        ([(0, 0, 2, 2)], 0.0),
        ([(0, 0, 8, 4)], None),  # just half of the image
        ([(0, 0, 8, 3), (0, 5, 8, 7)], None),  # two thirds of it, together
        ([(0, 0, 7, 3), (0, 0, 8, 3)], 0.0),  # the same pixels twice
        ([(3, 3, 3, 5)], None),  # no pixel at all
    ],
)
def test_the_pointing_game_on_boxes(boxes, value):
    data = [Sample(noisy(0), truth={"boxes": boxes})]
    table = pellucid.evaluate(seeing(brightness), data, methods=[column], metrics=["pointing_game"])
    (found,) = table.measurements("column", "pointing_game")
    assert found.value == value
    assert bool(found.skipped) == (value is None)


# ---- what fails ----------------------------------------------------------------------------------


def test_what_cannot_be_read_explained_or_measured_is_counted():
    def choosy(case):
        if any(item.view[0, 0, 0] == 200 for item in case.batch.items):
            raise pellucid.NumericalError("too bright\n  got:      200")
        return column(case)

    bright = noisy(1)
    bright[0, 0, 0] = 200
    mask = {"mask": np.eye(SIDE)}
    data = [
        Sample(noisy(0), "seen", mask, "good"),
        Sample(bright, "seen", mask, "bright"),
        Sample("nowhere.png", "seen", mask, "gone"),
        Sample(noisy(2), None, mask, "no label"),
        Sample(noisy(3), "unheard of", mask, "bad label"),
        Sample(noisy(4), "not", {}, "no mask"),
    ]
    metrics = ["sparseness", "mean_iou", "positive_perturbation"]
    table = pellucid.evaluate(seeing(brightness), data, methods=[choosy, column], metrics=metrics)
    skipped = {(r.method, r.metric): dict(r.skipped) for r in table.rows}
    gone = {"there is no such image file": 1}
    assert skipped["column", "sparseness"] == gone
    assert skipped["choosy", "sparseness"] == gone | {"too bright": 1}
    assert skipped["column", "mean_iou"] == gone | {"no mask is given": 1}
    labels = skipped["column", "positive_perturbation"]
    assert labels.pop("no label is given") == 1
    assert sum(n for why, n in labels.items() if "unheard of" in why) == 1
    assert table.row("choosy", "sparseness").n == 4
    by_label = pellucid.evaluate(
        seeing(brightness), data, methods=[column], metrics=["sparseness"], target="label"
    )
    assert by_label.row("column", "sparseness").n == 3


def refused(match, **changes):
    given = {
        "model": seeing(brightness),
        "data": [noisy(0)],
        "methods": [column],
        "metrics": ["aopc"],
    } | changes
    with pytest.raises((ArgumentError, InputError, UnsupportedCombination), match=match):
        pellucid.evaluate(given.pop("model"), given.pop("data"), **given)


def test_what_cannot_work_is_refused():
    refused("'mean_iou' needs the mask", metrics=["aopc", "mean_iou"])
    refused("'positive_perturbation' needs the label", metrics=["positive_perturbation"])
    refused("target='label' needs the label", target="label")
    refused("unknown method 'rolout'", methods=["rolout"])
    refused("unknown metric 'aopk'", metrics=["aopk"])
    refused("no parameter|unknown parameter", metrics=[("aopc", {"stepz": 3})])
    refused("two metrics have one name", metrics=["aopc", "aopc"])
    refused("which methods", methods=[])
    refused("which methods", methods="rollout")
    refused("nothing to evaluate", data=[])
    refused("unknown class", target="unheard of")
    refused("probability of a class", target=lambda output: output[:, 0])
    refused("none of the 2 samples can be read", data=["a.png", "b.png"])
    refused("cannot run on this model", methods=["rollout"])
    refused("cannot run on this model", metrics=["text_deletion"])
    regression = pellucid.blackbox(
        lambda images: np.zeros((len(images), 1)), kind="image", labels=["value"], size=(8, 8)
    )
    regression.task = "regression"
    refused("has none", model=regression)


def test_nothing_is_refused_late():
    """A metric without its truth stops everything before the first pass."""
    seen: list[bytes] = []
    model = seeing(brightness, seen)
    del seen[:]
    refused("'mean_iou' needs the mask", model=model, metrics=["aopc", "mean_iou"])
    assert seen == []


def test_data_are_fetched_one_at_a_time():
    class Lazy:
        fetched: list[int] = []

        def __len__(self):
            return 7

        def __getitem__(self, index):
            if not 0 <= index < 7:
                raise IndexError
            self.fetched.append(index)
            return Sample(noisy(index), "seen", id=str(index))

    table = pellucid.evaluate(
        seeing(brightness), Lazy(), methods=[column], metrics=["aopc"], target="label", batch_size=2
    )
    assert table.samples == tuple("0123456")
    assert sorted(set(Lazy.fetched)) == list(range(7))
    assert len(Lazy.fetched) <= 7 + 2, "the first, to see what it is and whether it has a label"


def test_evaluating_leaves_no_trace(vit):
    data = sample_inputs(vit)[:2]
    work = partial(
        pellucid.evaluate, vit, data, methods=["gradient_x_input"], metrics=[("aopc", {"steps": 3})]
    )
    check_no_trace(vit, work, True)


def test_texts_are_evaluated_too(tiny):
    texts = ["the film is fine and the cast is bad", "a bad film", ("a film", "is fine")]
    model = tiny("bert")
    table = pellucid.evaluate(
        model,
        texts,
        methods=["random", "rollout"],
        metrics=[("text_deletion", {"grid": "tokens:1"})],
    )
    explained = pellucid.explain(model, texts, method="random")
    alone = pellucid.measure(model, explained, metric="text_deletion", grid="tokens:1")
    found = table.measurements("random", "text_deletion(grid='tokens:1')")
    assert [m.value for m in found] == pytest.approx([m.value for m in alone], abs=1e-6)


# ---- parts and cost ------------------------------------------------------------------------------


def test_a_part_of_the_samples_can_be_evaluated_alone(vit):
    data = vit_data(4)
    method = configured(("integrated_gradients", {"steps": 2}), METHODS, as_method)
    metrics = [configured(one, METRICS, as_metric) for one in (("aopc", {"steps": 4}), "mean_iou")]
    read = [read_sample(vit, sample, Target()) for sample in data]
    found = [
        one
        for some in (read[:3], read[3:])
        for one in evaluate_samples(vit, some, method, metrics, target="label")
    ]
    whole = pellucid.evaluate(
        vit,
        data,
        methods=[("integrated_gradients", {"steps": 2})],
        metrics=[("aopc", {"steps": 4}), "mean_iou"],
        target="label",
    )
    for one, other in zip(found, whole.scored[method.label], strict=True):
        assert one.sample == other.sample
        for ours, theirs in zip(one.measurements, other.measurements, strict=True):
            assert ours.value == pytest.approx(theirs.value, abs=1e-9)
        assert one.cost.forwards == other.cost.forwards
    assert len(found[0].measurements[0].curve) == 5
    assert whole.scored[method.label][0].measurements[0].curve == ()


def test_runtime_is_that_of_the_explanation(vit):
    found = pellucid.explain(vit, sample_inputs(vit)[:2], method="integrated_gradients", steps=3)
    for of in ("seconds", "forwards", "backwards"):
        measured = pellucid.measure(vit, found, metric="runtime", of=of)
        assert [m.value for m in measured] == [getattr(e.provenance, of) for e in found]
    table = pellucid.evaluate(
        vit, sample_inputs(vit)[:2], methods=["gradient"], metrics=["runtime"]
    )
    made = pellucid.explain(vit, sample_inputs(vit)[:2], method="gradient")
    row = table.row("gradient", "runtime")
    assert row.counts["forwards"] == sum(e.provenance.forwards for e in made)
    assert row.counts["backwards"] == sum(e.provenance.backwards for e in made)
    assert row.evaluations == 0


# ---- planted truths ------------------------------------------------------------------------------

WEIGHTS = np.random.default_rng(7).permutation(SIDE * SIDE).reshape(SIDE, SIDE).astype(float)
PATCH = np.zeros((SIDE, SIDE))
PATCH[2:5, 3:6] = 1  # with the smallest of differences, so that there are no ties
PLANTED = {
    "linear": (WEIGHTS**2, lambda image: (WEIGHTS**2 * (image[..., 0] > 100)).sum()
               / (WEIGHTS**2).sum()),
    "detector": (PATCH + 1e-6 * WEIGHTS, lambda image: 0.02 + 0.96 * (
        (PATCH * (image[..., 0] > 100)).sum() / PATCH.sum())),
}  # fmt: skip
SANE = sorted(
    name
    for name, spec in METRICS.items()
    if "image" in spec.kinds
    and spec.family in ("faithfulness", "localisation")
    and name not in ("infidelity", "road")  # of the size of scores, and of imputed pixels: they
)  # have planted truths of their own in test_metric_sanity


@pytest.mark.parametrize("metric", SANE)
@pytest.mark.parametrize("planted", PLANTED)
def test_the_truth_is_above_chance_and_its_opposite_below(planted, metric):
    truth, read = PLANTED[planted]

    def true(case):
        return torch.from_numpy(truth).repeat(len(case.batch), 1, 1)

    def opposite(case):
        return truth.max() - true(case)

    many = truth > np.quantile(truth, 0.8)
    data = [Sample(noisy(i), "seen", {"mask": many}, str(i)) for i in range(24)]
    known = bound_parameters(METRICS[metric], {})
    settings = {k: v for k, v in {"baseline": "black", "steps": 16}.items() if k in known}
    table = pellucid.evaluate(
        seeing(read), data, methods=[true, "random", opposite], metrics=[(metric, settings)],
        target="seen",
    )  # fmt: skip
    best, chance, worst = (row.mean for row in table.rows)
    sign = 1 if METRICS[metric].better == "higher" else -1
    assert sign * best > sign * chance > sign * worst


# ---- comparing and showing -----------------------------------------------------------------------


def two_methods(vit):
    return pellucid.evaluate(
        vit,
        vit_data(),
        methods=["random", "gradient_x_input"],
        metrics=[("aopc", {"steps": 4}), "mean_iou", "pointing_game"],
    )


def test_a_comparison_is_of_pairs(vit):
    table = two_methods(vit)
    found = table.compare("gradient_x_input", "random", metric="aopc(steps=4)", resamples=500)
    ours, theirs = (
        [m.value for m in table.measurements(name, "aopc(steps=4)")]
        for name in ("gradient_x_input", "random")
    )
    assert found.difference == pytest.approx(np.mean(ours) - np.mean(theirs))
    assert found.low <= found.difference <= found.high
    assert (found.n, found.level, found.better) == (5, 0.95, "higher")
    turned = table.compare("random", "gradient_x_input", metric="aopc(steps=4)", resamples=500)
    assert (turned.low, turned.high) == pytest.approx((-found.high, -found.low))
    assert "gradient_x_input less random" in str(found)
    pooled = table.compare("gradient_x_input", "random", metric="mean_iou", resamples=200)
    expected = table.row("gradient_x_input", "mean_iou").mean - table.row("random", "mean_iou").mean
    assert pooled.difference == pytest.approx(expected)
    same = table.compare("random", "random", metric="mean_iou", resamples=100)
    assert (same.difference, same.low, same.high) == (0, 0, 0)
    with pytest.raises(ArgumentError, match="unknown metric of this table 'aopc'"):
        table.compare("random", "gradient_x_input", metric="aopc")
    with pytest.raises(ArgumentError, match="unknown method of this table 'rollout'"):
        table.compare("random", "rollout", metric="mean_iou")
    with pytest.raises(ArgumentError, match="cannot be compared"):
        table.compare("random", "gradient_x_input", metric="mean_iou", level=95)


def test_what_is_shown_says_what_it_means(vit, tmp_path, capsys):
    def weird(case):
        return torch.zeros_like(case.randn())

    weird.__name__ = "<b>|weird"
    data = [*vit_data(3), Sample("gone.png", 1, {}, "gone")]
    table = pellucid.evaluate(
        vit, data, methods=["random", weird], metrics=[("aopc", {"steps": 4}), "mean_iou"]
    )
    shown = table.to_markdown()
    assert "aopc(steps=4) ↑" in shown
    assert "Mean loss of class probability" in shown
    assert "baseline='black'" in shown
    assert "jackknife" in shown
    assert "1 of 4 samples skipped by every metric for every method: there is no such" in shown
    assert "100% of the scores equal another; ties='stable' orders them" in shown
    assert "\\<b>\\|weird" in shown
    assert f"{table.evaluations:,} forward passes" in shown
    html = table.to_html(tmp_path / "table.html")
    assert (tmp_path / "table.html").read_text(encoding="utf-8") == html
    assert "&lt;b&gt;|weird" in html
    assert "<b>" not in html
    assert "Content-Security-Policy" in html
    assert "<table" in table._repr_html_()
    console = Console(width=120, force_terminal=False)
    with console.capture() as capture:
        show_table(table, console)
    assert "(n=3)" in capture.get()
    table.show()
    assert "random" in capsys.readouterr().out
    assert repr(table) == "<2 methods by 2 metrics on 4 samples of " + f"{vit.name}>"


def test_rows_become_a_data_frame(vit, monkeypatch):
    table = two_methods(vit)
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=list))
    frame = table.to_pandas()
    assert [one["metric"] for one in frame[:3]] == [m.label for m in table.metrics]
    assert {"mean", "se", "std", "n", "skipped", "ties", "evaluations", "seconds"} <= set(frame[0])
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ArgumentError, match=r"pip install 'pellucid\[pandas\]'"):
        table.to_pandas()


def test_progress_is_told_to_its_end(vit):
    told: list[tuple[int, int]] = []
    pellucid.evaluate(
        vit,
        vit_data(3),
        methods=["random", "gradient"],
        metrics=["sparseness"],
        batch_size=2,
        progress=lambda done, total: told.append((done, total)),
    )
    assert told[-1] == (6, 6)
    assert [done for done, _ in told] == sorted(done for done, _ in told)
