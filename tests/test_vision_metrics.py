"""The metrics of images against closed forms and literal slow versions of their papers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import pellucid
from pellucid._baselines import blurred
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
