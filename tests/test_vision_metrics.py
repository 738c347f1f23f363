"""The metrics of images against closed forms and literal slow versions of their papers."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

import pellucid
from pellucid._baselines import blurred
from pellucid._case import Case
from pellucid._truth import _moved
from pellucid.metrics import METRICS
from pellucid.metrics.mean_average_precision import average_precision
from pellucid.metrics.sparseness import gini
from pellucid.testing.tiny import build, sample_inputs

SIDE = 8
SIZE = SIDE * SIDE
DISTINCT = torch.randperm(SIZE, generator=torch.Generator().manual_seed(0)).double()


def white_model(read):
    """A black box on white 8 x 8 pictures whose first class has probability `read(present)`."""

    def function(images):
        p = [read(one[..., 0] > 127) for one in images]
        p = np.clip(np.asarray(p, dtype=float), 1e-12, 1 - 1e-12)
        return np.stack([np.log(p), np.log1p(-p)], axis=1)

    return pellucid.blackbox(function, kind="image", labels=["seen", "not"], size=(SIDE, SIDE))


def explained(model, scores):
    picture = np.full((SIDE, SIDE, 3), 255, dtype=np.uint8)
    found = pellucid.explain(model, picture, method="random", target="seen")
    return replace(found, scores=torch.as_tensor(scores, dtype=torch.float64).view(SIDE, SIDE))


def measured(metric, model, scores, **params):
    return pellucid.measure(model, explained(model, scores), metric=metric, **params)


def counting(present):
    return present.mean()


def vit_explained(count=2):
    model = build("vit", dtype=torch.float64)
    images = sample_inputs(model)[:count]
    return model, pellucid.explain(model, images, method="gradient_x_input", target=1)


def test_all_metrics_of_a_batch_are_those_of_its_members():
    model, found = vit_explained()
    for metric in ("insertion", "insertion_minus_deletion"):
        together = pellucid.measure(model, found, metric=metric, steps=4, batch_size=3)
        for one, alone in zip(together, found, strict=True):
            again = pellucid.measure(model, alone, metric=metric, steps=4)
            assert one.value == pytest.approx(again.value, abs=1e-12)


# ---- insertion -----------------------------------------------------------------------------------

BLACK = {"baseline": "black", "steps": 16}


def test_insertion_of_a_counting_model_is_one_half():
    model = white_model(counting)
    assert measured("insertion", model, DISTINCT, **BLACK).value == pytest.approx(0.5, abs=1e-9)
    tis = measured("insertion", model, DISTINCT, auc="tis", **BLACK)
    assert tis.value == pytest.approx(17 / 32, abs=1e-9)
    assert tis.better == "higher"


@pytest.mark.parametrize("step", [1, 5, 16])
def test_insertion_of_a_detector_rises_when_its_pixel_comes(step):
    model = white_model(lambda present: float(present[2, 3]))
    scores = DISTINCT.clone()
    pixel, other = 2 * SIDE + 3, int(scores.argsort(descending=True)[4 * (step - 1)])
    scores[pixel], scores[other] = scores[other].clone(), scores[pixel].clone()
    found = measured("insertion", model, scores, **BLACK)
    assert found.value == pytest.approx((16 - step + 0.5) / 16, abs=1e-9)
    tis = measured("insertion", model, scores, auc="tis", **BLACK)
    assert tis.value == pytest.approx((16 - step + 1) / 16, abs=1e-9)
    both = measured("insertion_minus_deletion", model, scores, **BLACK)
    assert both.value == pytest.approx((16 - 2 * step + 1) / 16, abs=1e-9)


def test_deleting_from_one_end_is_inserting_from_the_other():
    weights = np.random.default_rng(0).random((SIDE, SIDE))
    model = white_model(lambda present: (present * weights).sum() / weights.sum())
    deletion = measured("deletion", model, DISTINCT, **BLACK).value
    assert measured("insertion", model, -DISTINCT, **BLACK).value == pytest.approx(deletion)
    both, turned = (
        measured("insertion_minus_deletion", model, s, **BLACK).value for s in (DISTINCT, -DISTINCT)
    )
    assert both == pytest.approx(-turned)
    truth = torch.from_numpy(weights).flatten()
    best, worst = (measured("insertion", model, s, **BLACK).value for s in (truth, -truth))
    assert worst < 0.5 < best


def test_insertion_minus_deletion_shares_its_ends():
    found = measured("insertion_minus_deletion", white_model(counting), DISTINCT, **BLACK)
    assert found.evaluations == 2 * 16  # 15 inside steps each, the image and the baseline
    assert len(found.curve) == 17
    assert measured("insertion", white_model(counting), DISTINCT, **BLACK).evaluations == 17
    with pytest.raises(pellucid.ArgumentError, match="insertion needs a step"):
        measured("insertion", white_model(counting), DISTINCT, steps=0)


@pytest.mark.parametrize("schedule", ["linspace", "ceil"])
@pytest.mark.parametrize("baseline", ["black", "blur", "mean"])
def test_insertion_and_deletion_as_the_paper_writes_them(baseline, schedule):
    """Pixel by pixel in a loop, in float64, with steps that do not divide the image."""
    model, (found, _) = vit_explained()
    steps = 7
    params = {"steps": steps, "baseline": baseline, "schedule": schedule, "space": "normalized"}
    x = model.encode([found.item.view], pellucid.Target()).inputs["pixel_values"]
    base = {"black": x * 0, "blur": blurred(x), "mean": x * 0 + x.mean()}[baseline]
    order = (-found.map().flatten()).argsort(stable=True)
    size = order.numel()
    curves = {"deletion": [], "insertion": []}
    for s in range(steps + 1):
        k = s * size // steps if schedule == "linspace" else min(size, s * -(-size // steps))
        without, only = x.clone().flatten(2), base.clone().flatten(2)
        for pixel in order[:k].tolist():
            without[:, :, pixel] = base.flatten(2)[:, :, pixel]
            only[:, :, pixel] = x.flatten(2)[:, :, pixel]
        for name, changed in (("deletion", without), ("insertion", only)):
            with torch.no_grad():
                logits = model.module(pixel_values=changed.view_as(x)).logits
            curves[name].append(logits.softmax(-1)[0, 1].item())
    areas = {name: np.trapezoid(curve) / steps for name, curve in curves.items()}
    for name, curve in curves.items():
        got = pellucid.measure(model, found, metric=name, **params)
        assert got.curve == pytest.approx(curve, abs=1e-10)
        assert got.value == pytest.approx(areas[name], abs=1e-10)
    both = pellucid.measure(model, found, metric="insertion_minus_deletion", **params)
    assert both.value == pytest.approx(areas["insertion"] - areas["deletion"], abs=1e-10)


# ---- sparseness ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([0, 0, 0, 1], 0.75),
        ([1, 2, 3, 4], 0.25),
        ([0, 1], 0.5),
        ([3, 3, 3], 0.0),
        ([0, 0], 0.0),
        (range(1, 101), 99 / 300),
    ],
)
def test_gini_of_known_maps(scores, expected):
    assert gini(torch.tensor(list(scores), dtype=torch.float64)) == pytest.approx(
        expected, abs=1e-6
    )


def test_sparseness_is_half_the_mean_difference_of_two_scores():
    """The definition by all pairs, of a map that is shifted because it has negative scores."""
    model = white_model(counting)
    a = torch.randn(SIZE, generator=torch.Generator().manual_seed(3)).double()
    shifted = a - a.min() + 1e-7
    pairs = (shifted[:, None] - shifted[None]).abs().mean() / (2 * shifted.mean())
    assert measured("sparseness", model, a).value == pytest.approx(pairs.item(), abs=1e-12)
    always = measured("sparseness", model, a + 10, shift="always").value
    assert always == pytest.approx(pairs.item(), abs=1e-7)
    assert measured("sparseness", model, a + 10).value < always
    assert measured("sparseness", model, a, shift="abs").value == pytest.approx(
        measured("sparseness", model, a.abs()).value
    )
    assert measured("sparseness", model, a).evaluations == 0


# ---- localisation --------------------------------------------------------------------------------


def box(*edges):
    """A mask with a box of rows and columns, half-open."""
    top, bottom, left, right = edges
    mask = np.zeros((SIDE, SIDE), dtype=int)
    mask[top:bottom, left:right] = 1
    return mask


def delta(row, column):
    scores = torch.zeros(SIDE, SIDE)
    scores[row, column] = 1
    return scores


def located(metric, scores, mask, **params):
    return measured(metric, white_model(counting), scores, truth=mask, **params)


def test_pointing_game():
    mask = box(2, 5, 3, 6)
    assert located("pointing_game", delta(4, 5), mask).value == 1
    assert located("pointing_game", delta(5, 5), mask).value == 0
    assert located("pointing_game", delta(5, 5), mask, tolerance=1).value == 1
    assert located("pointing_game", delta(5, 6), mask, tolerance=1).value == 0  # sqrt(2) away
    both = delta(0, 0) + delta(3, 3)
    assert located("pointing_game", both, mask).value == 0
    assert located("pointing_game", both, mask, ties="any").value == 1


def test_pointing_game_skips_what_cannot_be_missed():
    half, less = box(0, 4, 0, 8), box(0, 4, 0, 8)
    less[0, 0] = 0
    found = located("pointing_game", delta(1, 1), half)
    assert (found.value, found.skipped) == (None, "the object covers 50% of the image or more")
    assert located("pointing_game", delta(1, 1), less).value == 1
    assert located("pointing_game", delta(1, 1), half, max_coverage=0.6).value == 1
    empty = located("pointing_game", delta(1, 1), box(0, 0, 0, 0))
    assert (empty.value, empty.skipped) == (None, "no object in the mask")


def test_pixels_that_are_not_labelled_are_neither_hit_nor_missed():
    mask = box(2, 5, 3, 6)
    mask[0] = -1
    scores = 2 * delta(0, 0) + delta(4, 4)
    assert located("pointing_game", scores, mask).value == 1
    assert located("energy_pointing_game", scores, mask).value == 1


def test_energy_pointing_game():
    mask = box(2, 5, 3, 6)
    uniform = located("energy_pointing_game", torch.full((SIZE,), -2.0), mask)
    assert uniform.value == pytest.approx(9 / 64)
    scores = torch.randn(SIDE, SIDE, generator=torch.Generator().manual_seed(1)).double()
    inside = sum(abs(scores[r, c]) for r in range(2, 5) for c in range(3, 6)) / scores.abs().sum()
    found = located("energy_pointing_game", scores, mask)
    assert found.value == pytest.approx(inside.item())
    assert located("energy_pointing_game", torch.zeros(SIZE), mask).skipped == "a map of zeros"
    assert located("energy_pointing_game", scores, box(0, 0, 0, 0)).value is None


SEGMENTED = [  # map, accuracy, mean IoU and average precision with the object in the first pixel
    ([1, 0, 0, 0], 1, 1, 1),
    ([0, 1, 1, 1], 0, 0, 0.5),
    ([0.5, 0.5, 0.5, 0.5], 0.75, 0.375, 0.5),
    ([0.1, 0.1, 0.1, 0.1], 0.75, 0.375, 0.5),
    ([1, 0.5, 0, 0], 0.75, 7 / 12, 0.95),
]


@pytest.mark.parametrize(("scores", "accuracy", "iou", "precision"), SEGMENTED)
def test_segmentations_counted_by_hand(scores, accuracy, iou, precision):
    """Four pixels, and sixty that are not labelled but have the mean of the map."""
    mask = np.full((SIDE, SIDE), -1)
    mask[0, :4] = [1, 0, 0, 0]
    whole = torch.full((SIZE,), float(np.mean(scores)), dtype=torch.float64)
    whole[:4] = torch.tensor(scores, dtype=torch.float64)
    assert located("pixel_accuracy", whole, mask).value == pytest.approx(accuracy)
    assert located("mean_iou", whole, mask).value == pytest.approx(iou)
    assert located("mean_average_precision", whole, mask).value == pytest.approx(precision)


def test_average_precision_by_every_threshold():
    """Precision and recall counted anew at every distinct score, with ties."""
    generator = torch.Generator().manual_seed(5)
    scores = torch.randint(0, 9, (200,), generator=generator).double() / 8
    positive = torch.rand(200, generator=generator) < 0.3
    expected, before = 0.0, 0.0
    for threshold in sorted(set(scores.tolist()), reverse=True):
        chosen = scores >= threshold
        recall = (chosen & positive).sum().item() / positive.sum().item()
        expected += (recall - before) * (chosen & positive).sum().item() / chosen.sum().item()
        before = recall
    assert average_precision(scores, positive) == pytest.approx(expected, abs=1e-12)
    assert average_precision(
        torch.tensor([0.25, 0.5, 0.75, 1, 0.75, 0.5, 0.25, 0]).double(),
        torch.tensor([1, 0, 0, 0, 0, 1, 1, 1]).bool(),
    ) == pytest.approx(0.389286, abs=1e-6)


def test_counts_of_two_halves_are_those_of_the_whole():
    model = white_model(counting)
    maps = [torch.randn(SIZE, generator=torch.Generator().manual_seed(i)) for i in range(4)]
    masks = [box(i, i + 4, 1, 6 + (i % 2)) for i in range(4)]
    found = [explained(model, one) for one in maps]
    for name in ("pixel_accuracy", "mean_iou"):
        each = pellucid.measure(model, found, metric=name, truth=masks)
        pooled = METRICS[name].pool(sum((Counter(one.counts) for one in each), Counter()))
        above = np.stack([(m > m.double().mean()).view(SIDE, SIDE).numpy() for m in maps])
        inside = np.stack(masks) == 1
        ious = [(a & b).sum() / (a | b).sum() for a, b in ((above, inside), (~above, ~inside))]
        truth = {"pixel_accuracy": (above == inside).mean(), "mean_iou": np.mean(ious)}[name]
        assert pooled == pytest.approx(truth)


@pytest.mark.parametrize(
    "metric",
    ["energy_pointing_game", "pixel_accuracy", "mean_iou", "mean_average_precision"],
)
def test_a_map_of_the_object_beats_its_opposite(metric):
    mask = box(2, 5, 3, 6)
    noise = torch.rand(SIDE, SIDE, generator=torch.Generator().manual_seed(2)).double()
    good = torch.from_numpy(mask) + 0.5 * noise
    best, chance, worst = (located(metric, s, mask).value for s in (good, noise, 2 - good))
    assert worst < chance < best


def test_masks_move_with_their_images():
    """Half the size, and cropped, as the picture is; what is not counted stays so."""
    mask = np.zeros((16, 24), dtype=int)
    (
        mask[4:8, 8:12],
        mask[12:],
    ) = 1, -1
    crop = pellucid.Resize((8, 8), fit="crop")
    seen = _moved(mask, crop).numpy()
    expected = np.zeros((8, 8), dtype=int)
    expected[2:4, 2:4], expected[6:] = 1, -1
    np.testing.assert_array_equal(seen, expected)
    np.testing.assert_array_equal(_moved(mask, pellucid.Resize((16, 24))).numpy(), mask)


@pytest.mark.parametrize(
    ("metric", "truth", "fragment"),
    [
        ("pointing_game", None, "truth="),
        ("sparseness", np.zeros((8, 8)), "leave truth= out"),
        ("pointing_game", np.full((8, 8), 3), "mask of an object"),
        ("pointing_game", np.zeros((8, 8, 3)), "mask of an object"),
        ("pointing_game", "cat", "mask of an object"),
    ],
)
def test_truths_that_do_not_fit_are_refused(metric, truth, fragment):
    with pytest.raises(pellucid.ArgumentError, match=fragment):
        located(metric, DISTINCT, truth)


def test_a_list_of_explanations_has_a_list_of_truths():
    model = white_model(counting)
    found = [explained(model, DISTINCT)] * 2
    with pytest.raises(pellucid.ArgumentError, match="1 for 2 explanations"):
        pellucid.measure(model, found, metric="mean_iou", truth=[box(0, 4, 0, 4)])


# ---- perturbation, AOPC and log-odds -------------------------------------------------------------

LINE = torch.arange(100, 0, -1).double()  # ten by ten pixels, the first of which goes first


def line_model(read):
    """A black box on white 10 x 10 pictures, by the fraction of its pixels that is left."""

    def function(images):
        p = np.array([read((one[..., 0] > 127).mean()) for one in images])
        return np.stack([np.log(p), np.log1p(-p)], axis=1)

    return pellucid.blackbox(function, kind="image", labels=["seen", "not"], size=(10, 10))


def on_line(metric, read, scores=LINE, **params):
    model = line_model(read)
    picture = np.full((10, 10, 3), 255, dtype=np.uint8)
    found = pellucid.explain(model, picture, method="random", target="seen")
    found = replace(found, scores=scores.view(10, 10))
    return pellucid.measure(model, found, metric=metric, **params)


@pytest.mark.parametrize("metric", ["positive_perturbation", "negative_perturbation"])
@pytest.mark.parametrize(("last", "truth"), [(0.1, "seen"), (0.9, "seen"), (0.1, "not")])
def test_a_classifier_that_only_an_empty_picture_changes(metric, last, truth):
    """Right at all levels but the last: 0.975 + 0.025 a; wrong at those where it was right."""
    found = on_line(metric, lambda left: 0.9 if left > 0 else last, truth=truth)
    at_last = float(last > 0.5)
    seen = 0.975 + 0.025 * at_last
    assert found.value == pytest.approx(seen if truth == "seen" else 1 - seen)
    assert found.evaluations == 21
    assert len(found.curve) == 21


def test_perturbations_of_a_planted_model():
    """The class is seen while more than half of a weighted picture is left."""
    weights = torch.rand(SIZE, generator=torch.Generator().manual_seed(4)).double() ** 4
    share = (weights / weights.sum()).view(SIDE, SIDE).numpy()
    model = white_model(lambda present: 0.05 + 0.9 * (present * share).sum())
    positive, random, reversed_ = (
        measured("positive_perturbation", model, s, truth="seen").value
        for s in (weights, DISTINCT, -weights)
    )
    assert positive < random < reversed_
    negative = measured("negative_perturbation", model, weights, truth=0).value
    assert negative == pytest.approx(reversed_)  # the lowest first is the opposite's highest first
    for name, sign in (("aopc", 1), ("log_odds", -1)):
        best, chance, worst = (
            sign * measured(name, model, s).value for s in (weights, DISTINCT, -weights)
        )
        assert worst < chance < best


def test_perturbation_as_the_paper_writes_it():
    """Level by level and pixel by pixel, the right class once as predicted and once as another."""
    model, (found, _) = vit_explained()
    x = model.encode([found.item.view], pellucid.Target()).inputs["pixel_values"]
    black = (-x.new_tensor([0.4, 0.5, 0.6]) / 0.5).view(1, 3, 1)
    size = found.map().numel()
    runs = {}
    for sign in (1, -1):
        order = (-sign * found.map().flatten()).argsort(stable=True)
        runs[sign] = []
        for percent in range(0, 101, 5):
            changed = x.clone().flatten(2)
            changed[:, :, order[: size * percent // 100]] = black
            with torch.no_grad():
                runs[sign].append(model.module(pixel_values=changed.view_as(x)).logits[0])
    for name, sign in (("positive_perturbation", 1), ("negative_perturbation", -1)):
        for label in range(len(model.labels)):
            accuracy = [float(logits.argmax() == label) for logits in runs[sign]]
            got = pellucid.measure(model, found, metric=name, truth=label)
            assert got.curve == pytest.approx(accuracy)
            assert got.value == pytest.approx(np.trapezoid(accuracy, dx=0.05))
    p = torch.stack(runs[1]).softmax(dim=-1)[:, 1]
    aopc = pellucid.measure(model, found, metric="aopc").value
    assert aopc == pytest.approx((p[0] - p).mean().item(), abs=1e-10)
    ratio = -(p[0] / p).log().mean().item()
    assert pellucid.measure(model, found, metric="log_odds").value == pytest.approx(ratio, abs=1e-9)


def test_aopc_and_log_odds_of_known_curves():
    def linear(left):
        return 0.2 + 0.6 * left

    def falling(left):
        return 0.8 * np.exp(-2 * (1 - left))

    assert on_line("aopc", linear).value == pytest.approx(0.3, abs=1e-9)
    assert on_line("aopc", falling).value == pytest.approx(0.448704, abs=1e-6)
    assert on_line("aopc", lambda left: 0.3).value == pytest.approx(0.0, abs=1e-12)
    assert on_line("log_odds", falling).value == pytest.approx(-1.0, abs=1e-9)
    assert on_line("log_odds", linear).value == pytest.approx(-0.545741, abs=1e-6)
    assert on_line("log_odds", lambda left: 0.3).value == pytest.approx(0.0, abs=1e-12)
    assert (METRICS["aopc"].better, METRICS["log_odds"].better) == ("higher", "lower")


def test_log_odds_of_a_class_that_vanishes_are_finite():
    """A probability that float64 writes as zero still has a logarithm."""

    def function(images):
        left = np.array([(one[..., 0] > 127).mean() for one in images])
        return np.stack([2000 * left - 2000, 0 * left], axis=1)

    model = pellucid.blackbox(function, kind="image", labels=["seen", "not"], size=(SIDE, SIDE))
    left = 1 - np.arange(21) * 64 // 20 / 64
    expected = np.mean(-np.logaddexp(0, 2000 - 2000 * left) + np.log(2))
    assert measured("log_odds", model, DISTINCT).value == pytest.approx(expected)


def test_an_unknown_label_is_refused():
    with pytest.raises(pellucid.ArgumentError, match="truth"):
        located("positive_perturbation", DISTINCT, "cat")
    assert located("positive_perturbation", DISTINCT, np.int64(0)).value is not None


# ---- sensitivity ---------------------------------------------------------------------------------


def sensitivity(method, size=32, value=127, **params):
    """Of a function of a case, on a flat image of a black box that reads one channel."""

    def function(images):
        return np.zeros((len(images), 2))

    box_ = pellucid.blackbox(function, kind="image", labels=["a", "b"], size=(size, size))
    picture = np.full((size, size, 3), value, dtype=np.uint8)
    found = pellucid.explain(box_, picture, method=method, target="a")
    return pellucid.measure(box_, found, metric="max_sensitivity", method=method, **params).value


def itself(case):
    return case.pixels[:, 0]


def constant(case):
    return torch.ones_like(case.pixels[:, 0])


def nothing(case):
    return torch.zeros_like(case.pixels[:, 0])


def random_again(case):
    return torch.stack([torch.rand(case.pixels.shape[2:], generator=g) for g in case.generators])


def test_sensitivity_of_known_explainers():
    expected = 0.02 / np.sqrt(3)  # of noise that is uniform, over an image of ones
    found = sensitivity(itself, value=255)
    assert found == pytest.approx(expected, rel=0.05)
    assert found > expected  # the largest of ten
    assert sensitivity(lambda case: 3 * case.pixels[:, 0], value=255) == pytest.approx(found)
    assert sensitivity(itself, value=255, radius=0.0) == 0
    assert sensitivity(constant) == 0
    assert sensitivity(nothing) == 0
    assert sensitivity(random_again) == 0  # the same draws for all
    few, many = (sensitivity(itself, value=255, samples=j) for j in (2, 20))
    assert few <= found <= many


def test_sensitivity_is_that_of_explaining_the_noisy_images_one_by_one():
    """A method of gradients, with the class frozen, against the model's own gradients."""
    model, found = vit_explained()
    measured_ = pellucid.measure(model, found, metric="max_sensitivity", samples=3, radius=0.5)
    for one, got in zip(found, measured_, strict=True):
        x = model.encode([one.item.view], pellucid.Target()).inputs["pixel_values"]
        target = pellucid.Target(one.index, "probability")
        batch = model.batch([one.item], target)
        case = Case(model, batch, target, spec=METRICS["max_sensitivity"])
        maps = []
        for j in (None, 0, 1, 2):
            noise = torch.zeros(x.shape[1:])
            if j is not None:
                noise = torch.rand(x.shape[1:], generator=case.generator(0, j)) - 0.5
            y = (x + noise.to(x)).requires_grad_()
            (slope,) = torch.autograd.grad(model.module(pixel_values=y).logits[0, 1], y)
            maps.append((slope * y).sum(dim=1)[0].detach())
        clean, *others = maps
        expected = max((clean - other).norm() / clean.norm() for other in others)
        assert got.value == pytest.approx(expected.item(), rel=1e-6)
        assert got.evaluations == 4


def test_sensitivity_of_patch_maps_does_not_depend_on_the_batch():
    model = build("vit", dtype=torch.float64)
    found = pellucid.explain(model, sample_inputs(model), method="rollout")
    wide, narrow = (
        pellucid.measure(model, found, metric="max_sensitivity", batch_size=n) for n in (32, 2)
    )
    for one, other in zip(wide, narrow, strict=True):
        assert one.value == pytest.approx(other.value, abs=1e-12)
        assert one.value > 0


@pytest.mark.parametrize("params", [{"samples": 0}, {"radius": -0.1}])
def test_noise_that_cannot_be_drawn_is_refused(params):
    with pytest.raises(pellucid.ArgumentError, match=next(iter(params))):
        measured("max_sensitivity", white_model(counting), DISTINCT, **params)


def test_what_cannot_be_explained_again_is_refused():
    model, (found, _) = vit_explained()
    nameless = replace(found, target=None)
    with pytest.raises(pellucid.ArgumentError, match="function of the output"):
        pellucid.measure(model, nameless, metric="max_sensitivity")
