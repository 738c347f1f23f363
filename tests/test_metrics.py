"""Metrics against hand-counted oracles: models whose curve is known in closed form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import pellucid
from pellucid import ArgumentError
from pellucid._baselines import blurred
from pellucid.metrics._ranking import ranks, tie_fraction
from pellucid.testing.tiny import build, sample_inputs

SIDE = 8


def logits_of(probability):
    p = np.clip(np.asarray(probability, dtype=float), 1e-12, 1 - 1e-12)
    return np.stack([np.log(p), np.log1p(-p)], axis=1)


def white_model(read):
    """A black box on white 8 x 8 pictures whose first class has probability `read(present)`."""

    def function(images):
        present = np.stack([(image[..., 0] > 127) for image in images])  # b h w
        return logits_of([read(one) for one in present])

    return pellucid.blackbox(function, kind="image", labels=["seen", "not"], size=(SIDE, SIDE))


def explained(model, scores):
    picture = np.full((SIDE, SIDE, 3), 255, dtype=np.uint8)
    found = pellucid.explain(model, picture, method="random", target="seen")
    return replace(found, scores=torch.as_tensor(scores, dtype=torch.float64).view(SIDE, SIDE))


DISTINCT = torch.randperm(SIDE * SIDE, generator=torch.Generator().manual_seed(0)).double()


def deletion(model, scores, **params):
    return pellucid.measure(model, explained(model, scores), metric="deletion", **params)


@pytest.mark.parametrize("steps", [4, 16, 64])
def test_deletion_of_a_counting_model_is_one_half(steps):
    model = white_model(lambda present: present.mean())
    assert deletion(model, DISTINCT, steps=steps).value == pytest.approx(0.5, abs=1e-9)
    tis = deletion(model, DISTINCT, steps=steps, auc="tis").value
    assert tis == pytest.approx((steps - 1) / (2 * steps), abs=1e-9)


@pytest.mark.parametrize("step", [1, 5, 16])
def test_deletion_of_a_detector_falls_when_its_pixel_goes(step):
    steps = 16  # four pixels a step
    model = white_model(lambda present: float(present[2, 3]))
    scores = DISTINCT.clone()
    order = scores.argsort(descending=True)
    position = 4 * (step - 1)  # the first pixel that goes in this step
    pixel = 2 * SIDE + 3
    place = int((order == pixel).nonzero())
    scores[order[position]], scores[pixel] = scores[pixel].clone(), scores[order[position]].clone()
    assert place >= 0
    found = deletion(model, scores, steps=steps)
    assert found.value == pytest.approx((step - 0.5) / steps, abs=1e-9)
    tis = deletion(model, scores, steps=steps, auc="tis").value
    assert tis == pytest.approx((step - 1) / steps, abs=1e-9)
    assert len(found.curve) == steps + 1
    assert found.curve[0] == pytest.approx(1.0)
    assert found.curve[-1] == pytest.approx(0.0, abs=1e-9)


def test_deletion_ranks_and_nothing_else():
    weights = np.random.default_rng(0).random((SIDE, SIDE))
    model = white_model(lambda present: (present * weights).sum() / weights.sum())
    truth = torch.from_numpy(weights).flatten()
    best, worst = (deletion(model, s, steps=16).value for s in (truth, -truth))
    assert best < 0.5 < worst
    assert deletion(model, truth.exp(), steps=16).value == pytest.approx(best, abs=1e-12)
    assert best + worst == pytest.approx(1.0, abs=1e-9)  # deleting from the other end


def test_deletion_counts_its_evaluations_and_its_ties():
    model = white_model(lambda present: present.mean())
    found = deletion(model, torch.zeros(64), steps=16)
    assert found.evaluations == 17  # the picture itself, and sixteen changed ones
    assert found.ties == pytest.approx(1 - 1 / 64)
    assert found.better == "lower"


@pytest.mark.parametrize(("schedule", "evaluations"), [("linspace", 61), ("ceil", 33)])
def test_a_step_that_changes_nothing_costs_nothing(schedule, evaluations):
    model = white_model(lambda present: present.mean())
    found = deletion(model, DISTINCT, steps=60, schedule=schedule)  # ceil: 2 pixels, 32 times
    assert found.evaluations == evaluations
    assert len(found.curve) == 61


def test_steps_beyond_the_pixels_change_nothing():
    model = white_model(lambda present: present.mean())
    assert deletion(model, DISTINCT, steps=640).value == pytest.approx(0.5, abs=0.01)


def test_schedules_agree_where_the_steps_divide_the_pixels():
    model = white_model(lambda present: present.mean())
    one, other = (deletion(model, DISTINCT, steps=16, schedule=s) for s in ("linspace", "ceil"))
    assert one.curve == other.curve


@pytest.mark.parametrize("space", ["pixel", "normalized"])
@pytest.mark.parametrize("baseline", ["black", "mean", "random", "blur"])
def test_curves_end_at_the_baseline(baseline, space):
    model = build("vit", dtype=torch.float64)
    image = sample_inputs(model)[0]
    found = pellucid.explain(model, image, method="random", target=1)
    measured = pellucid.measure(
        model, found, metric="deletion", steps=4, baseline=baseline, space=space
    )
    x = model.encode([image], pellucid.Target()).inputs["pixel_values"]
    mean, std = x.new_tensor([0.4, 0.5, 0.6]).view(1, 3, 1, 1), 0.5
    replaced = {
        ("black", "pixel"): lambda: (-mean / std).expand_as(x),
        ("black", "normalized"): lambda: torch.zeros_like(x),
        ("mean", "pixel"): lambda: x.mean((2, 3), keepdim=True).expand_as(x),
        ("mean", "normalized"): lambda: x.mean().expand_as(x),
        ("blur", "pixel"): lambda: blurred(x),
        ("blur", "normalized"): lambda: blurred(x),
    }.get((baseline, space))
    if replaced is None:
        assert 0 <= measured.curve[-1] <= 1
        return
    with torch.no_grad():
        p = model.module(pixel_values=replaced()).logits.softmax(-1)[0, 1]
    assert measured.curve[-1] == pytest.approx(p.item(), abs=1e-9)


def test_blur_is_the_two_dimensional_gaussian():
    image = torch.rand(1, 1, 15, 17, generator=torch.Generator().manual_seed(0)).double()
    offsets = torch.arange(11) - 5
    kernel = torch.exp(-(offsets[:, None] ** 2 + offsets[None] ** 2) / (2 * 25.0)).double()
    kernel = kernel / kernel.sum()
    padded = torch.nn.functional.pad(image, (5, 5, 5, 5), mode="reflect")
    expected = sum(
        kernel[i, j] * padded[:, :, i : i + 15, j : j + 17] for i in range(11) for j in range(11)
    )
    torch.testing.assert_close(blurred(image), expected)


@pytest.mark.parametrize(("ties", "expected"), [("stable", [0, 2, 3, 1]), ("legacy", [1, 3, 2, 0])])
def test_ranks_of_equal_scores(ties, expected):
    found = ranks(torch.tensor([2.0, 1.0, 1.0, 2.0]), ties, torch.Generator())
    assert found.tolist() == expected


def test_random_ties_are_seeded_and_fair():
    scores = torch.tensor([1.0, 1.0, 0.0])
    firsts = [
        ranks(scores, "random", torch.Generator().manual_seed(s))[0].item() for s in range(200)
    ]
    assert set(firsts) == {0, 1}
    assert 60 < sum(firsts) < 140
    assert tie_fraction(scores) == pytest.approx(1 / 3)


# ---- texts ---------------------------------------------------------------------------------------

TEN = "zero one two three four five six seven eight nine"


def text_model(read):
    def function(texts):
        return logits_of([read(text.split()) for text in texts])

    return pellucid.blackbox(function, kind="text", labels=["seen", "not"])


def text_deletion(model, scores, text=TEN, **params):
    found = pellucid.explain(model, text, method="random", target="seen")
    found = replace(found, scores=torch.as_tensor(scores, dtype=torch.float64))
    return pellucid.measure(model, found, metric="text_deletion", **params)


def test_text_deletion_of_a_detector():
    """The word is kept only when all ten are: 1 - (0 + 1) / 2."""
    model = text_model(lambda words: float("seven" in words))
    scores = [float(i == 7) for i in range(10)]
    found = text_deletion(model, scores)
    assert found.value == pytest.approx(0.5)
    assert found.curve == pytest.approx((0.0, 1.0), abs=1e-9)
    wrong = text_deletion(model, [-s for s in scores])
    assert wrong.value == pytest.approx(0.0, abs=1e-9)
    assert found.better == "higher"


def test_text_deletion_of_a_constant_model():
    model = text_model(lambda words: 0.25)
    assert text_deletion(model, torch.arange(10.0)).value == pytest.approx(0.75)


def test_text_deletion_keeps_the_order_of_the_words():
    seen = []
    model = text_model(lambda words: seen.append(words) or 0.5)
    text_deletion(model, torch.arange(10.0))
    assert TEN.split()[:5] in seen  # the five lowest, as they stand in the text


def test_short_texts_are_skipped_with_a_reason():
    model = text_model(lambda words: 0.5)
    found = text_deletion(model, [1.0, 2.0, 3.0], text="only three words")
    assert found.value is None
    assert found.skipped == "fewer than 5 tokens"


def test_special_tokens_are_neither_ranked_nor_removed():
    model = build("bert", dtype=torch.float64)
    found = pellucid.explain(model, "the film is not very good at all", method="random")
    special = torch.tensor([segment.role == "special" for segment in found.segments])
    changed = replace(found, scores=found.scores.masked_fill(special, 99.0))
    one, other = (
        pellucid.measure(model, e, metric="text_deletion", grid="tokens:2")
        for e in (found, changed)
    )
    assert one.value == other.value


def test_the_measured_class_is_the_explained_one():
    model = build("bert", dtype=torch.float64)
    found = pellucid.explain(model, "the film is not very good at all", target=2)
    measured = pellucid.measure(model, found, metric="text_deletion")
    assert measured.label == found.label == "LABEL_2"
    other = pellucid.measure(model, found, metric="text_deletion", target=0)
    assert other.label == "LABEL_0"
    assert other.value != measured.value


def test_a_list_of_different_classes_is_measured_each_by_its_own():
    model = build("bert", dtype=torch.float64)
    text = "the film is not very good at all"
    found = [pellucid.explain(model, text, target=c) for c in (2, 0, 1)]
    together = pellucid.measure(model, found, metric="text_deletion")
    alone = [pellucid.measure(model, one, metric="text_deletion") for one in found]
    assert [m.label for m in together] == ["LABEL_2", "LABEL_0", "LABEL_1"]
    np.testing.assert_allclose([m.value for m in together], [m.value for m in alone])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"metric": "deltion"}, "did you mean 'deletion'"),
        ({"metric": "deletion", "steps": 0}, "steps=0"),
        ({"metric": "deletion", "auc": "sum"}, "auc='sum'"),
        ({"metric": "deletion", "ties": "fair"}, "ties='fair'"),
        ({"metric": "deletion", "baseline": "grey"}, "baseline='grey'"),
        ({"metric": "deletion", "step": 3}, "did you mean 'steps'"),
    ],
)
def test_wrong_arguments_say_what_to_type(change, words):
    model = build("vit")
    found = pellucid.explain(model, sample_inputs(model)[0], method="random")
    with pytest.raises(ArgumentError, match=words):
        pellucid.measure(model, found, **change)


def test_explanations_of_functions_need_a_class_to_be_measured():
    model = build("bert")
    found = pellucid.explain(model, "the film is fine", target=lambda output: output.logits[:, 0])
    with pytest.raises(ArgumentError, match="target="):
        pellucid.measure(model, found, metric="text_deletion")


def test_a_loaded_explanation_is_measured_as_the_fresh_one(tmp_path):
    model = build("vit", dtype=torch.float64)
    found = pellucid.explain(model, sample_inputs(model)[0], method="rollout")
    loaded = pellucid.Explanation.load(found.save(tmp_path / "x.pellucid"))
    fresh, again = (pellucid.measure(model, e, metric="deletion", steps=8) for e in (found, loaded))
    assert fresh.curve == again.curve
