"""Gradient, integrated gradients and SmoothGrad against closed forms and loops over the formula."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pellucid
from pellucid import ArgumentError, Explanation, Resize, Target
from pellucid._baselines import reference_pixels
from pellucid._case import Case
from pellucid.methods import METHODS
from pellucid.testing.tiny import build, sample_inputs


class Polynomial(nn.Module):
    """The sum of w x^power for three classes."""

    def __init__(self, power):
        super().__init__()
        self.power = power
        self.weights = nn.Parameter(torch.randn(3, 3, 6, 8))

    def forward(self, pixels):
        return torch.einsum("bchw,kchw->bk", pixels**self.power, self.weights)


def polynomial(power):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = Polynomial(power).eval().double()
    model = pellucid.adapt(module, Resize((6, 8)), labels=["x", "y", "z"])
    images = list(torch.rand(2, 6, 8, 3, generator=torch.Generator().manual_seed(1)).numpy())
    weights = module.weights.detach()
    return model, images, weights, model.encode(images, Target()).inputs["pixel_values"]


def embedded(model, text):
    """The word embeddings of one text, and the logits as a function of them."""
    ids = model.reader.tokenizer(text, return_tensors="pt")["input_ids"]
    table = model.module.get_input_embeddings()
    start = table(ids).detach()
    return start, lambda x: model.module(inputs_embeds=x).logits


def slope(function, x, label):
    leaf = x.clone().requires_grad_()
    (found,) = torch.autograd.grad(function(leaf)[0, label], leaf)
    return found[0]


# ---- gradient ------------------------------------------------------------------------------------


def test_the_gradient_of_a_linear_model_is_its_weights():
    model, images, weights, _ = polynomial(1)
    expected = {
        "max": weights[1].abs().amax(0),
        "norm": weights[1].square().sum(0).sqrt(),
        "sum": weights[1].sum(0),
    }
    for reduce, scores in expected.items():
        for found in pellucid.explain(model, images, method="gradient", target=1, reduce=reduce):
            torch.testing.assert_close(found.scores, scores)
            assert found.signed == (reduce == "sum")


def test_the_gradient_of_a_text_is_by_its_word_embeddings():
    model = build("bert", dtype=torch.float64)
    x, logits = embedded(model, "the film is fine")
    expected = slope(logits, x, 2)  # t d
    for reduce, scores in {"max": expected.abs().amax(1), "norm": expected.norm(dim=1)}.items():
        found = pellucid.explain(
            model, "the film is fine", method="gradient", target=2, reduce=reduce
        )
        torch.testing.assert_close(found.scores, scores, rtol=1e-9, atol=1e-12)


# ---- integrated gradients ------------------------------------------------------------------------


@pytest.mark.parametrize("baseline", ["zero", "black", "mean", "blur", "random"])
def test_integrated_gradients_of_a_linear_model_are_exact(baseline):
    model, images, weights, pixels = polynomial(1)
    found = pellucid.explain(
        model, images, method="integrated_gradients", target=1, baseline=baseline, steps=1
    )
    case = Case(
        model, model.encode(images, Target()), Target.logit(1), spec=METHODS["integrated_gradients"]
    )
    start = reference_pixels(case, baseline)
    expected = (weights[1] * (pixels - start)).sum(1)
    torch.testing.assert_close(torch.stack([f.scores for f in found]), expected)
    for one in found:
        assert one.extras["completeness_gap"].abs() < 1e-12
        assert one.notes == ()


@pytest.mark.parametrize(("power", "enough"), [(2, 1), (3, 2), (4, 2), (5, 3)])
def test_the_rule_is_exact_for_gradients_below_twice_the_steps(power, enough):
    model, images, weights, pixels = polynomial(power)
    expected = (weights[1] * pixels**power).sum(1)

    def scores(steps):
        found = pellucid.explain(
            model, images, method="integrated_gradients", target=1, steps=steps
        )
        return torch.stack([one.scores for one in found])

    torch.testing.assert_close(scores(enough), expected)
    if power > 2:
        assert not torch.allclose(scores(enough - 1), expected) if enough > 1 else True


def test_integrated_gradients_are_the_mean_over_a_fine_grid():
    model = build("bert", dtype=torch.float64)
    x, logits = embedded(model, "the film is fine")
    start = torch.zeros_like(x)
    start[:, 0], start[:, -1] = x[:, 0], x[:, -1]  # [CLS] and [SEP] stay
    total, points = torch.zeros_like(x[0]), 400
    for k in range(points):
        total += slope(logits, start + (k + 0.5) / points * (x - start), 1)
    expected = ((x - start)[0] * total / points).sum(-1)
    found = pellucid.explain(
        model, "the film is fine", method="integrated_gradients", target=1, steps=100
    )
    torch.testing.assert_close(found.scores, expected, rtol=1e-3, atol=1e-4)
    change = (logits(x) - logits(start))[0, 1].item()
    assert found.scores.sum().item() == pytest.approx(change, abs=1e-3)


@pytest.mark.parametrize("family", ["vit", "deit-distilled", "gpt2", "bert"])
def test_scores_sum_to_what_changed(family):
    model = build(family, dtype=torch.float64)
    for found in pellucid.explain(
        model, sample_inputs(model), method="integrated_gradients", steps=100
    ):
        gap = found.extras["completeness_gap"].item()
        assert abs(gap) < 0.02 * max(1.0, found.scores.abs().sum().item())


def test_more_steps_close_the_gap():
    """Behind an RMS norm the gradient has a pole near the zero embedding, which takes many."""
    model = build("llama", dtype=torch.float64)
    gaps = [
        pellucid.explain(
            model, "the film is fine", method="integrated_gradients", steps=steps
        ).extras["completeness_gap"]
        for steps in (10, 100, 1000)
    ]
    assert gaps[0].abs() > gaps[1].abs() > gaps[2].abs()
    assert gaps[2].abs() < 1e-3


def test_a_gap_is_told_and_kept(tmp_path):
    model = build("vit", dtype=torch.float64)
    image = sample_inputs(model)[0]
    found = pellucid.explain(model, image, method="integrated_gradients", steps=1)
    gap = found.extras["completeness_gap"].item()
    target = Target.logit(found.index)
    case = Case(model, model.encode([image], target), target)
    with torch.no_grad():
        change = case.value - case.score_from(torch.zeros_like(case.input()))
    assert gap == pytest.approx(found.scores.sum().item() - change.item())
    (note,) = found.notes
    assert f"{change.item():.4g}" in note
    assert "more steps than 1" in note
    loaded = Explanation.load(found.save(tmp_path / "gap.safetensors"))
    assert loaded.extras["completeness_gap"].item() == gap


@pytest.mark.parametrize("token", ["mask", "unk", "pad"])
def test_a_text_can_begin_at_a_token(token):
    model = build("bert", dtype=torch.float64)
    ids = model.reader.tokenizer("the film is fine", return_tensors="pt")["input_ids"]
    other = ids.clone()
    other[:, 1:-1] = getattr(model.reader.tokenizer, f"{token}_token_id")
    with torch.no_grad():
        change = (model.module(ids).logits - model.module(other).logits)[0, 1].item()
    found = pellucid.explain(
        model, "the film is fine", method="integrated_gradients", target=1, baseline=token, steps=80
    )
    assert found.scores.sum().item() == pytest.approx(change, rel=1e-2, abs=1e-2)
    assert found.scores[[0, -1]].eq(0).all()


@pytest.mark.parametrize(
    ("family", "baseline"), [("bert", "black"), ("vit", "mask"), ("gpt2", "mask")]
)
def test_a_baseline_that_does_not_fit_is_refused(family, baseline):
    model = build(family)
    with pytest.raises(ArgumentError, match=baseline):
        pellucid.explain(
            model, sample_inputs(model)[0], method="integrated_gradients", baseline=baseline
        )


# ---- SmoothGrad ----------------------------------------------------------------------------------


def test_smoothgrad_of_a_linear_model_is_its_gradient():
    model, images, weights, _ = polynomial(1)
    expected = {
        "signed": weights[1].sum(0),
        "abs": weights[1].abs().sum(0),
        "squared": weights[1].square().sum(0),
    }
    for variant, scores in expected.items():
        found = pellucid.explain(
            model, images, method="smoothgrad", target=1, variant=variant, samples=3
        )
        for one in found:
            torch.testing.assert_close(one.scores, scores)
            assert one.signed == (variant == "signed")


@pytest.mark.parametrize("family", ["vit", "bert"])
@pytest.mark.parametrize("variant", ["signed", "abs", "squared"])
@pytest.mark.parametrize("unit", ["range", "absolute"])
def test_smoothgrad_is_the_mean_of_noisy_gradients(family, variant, unit):
    model = build(family, dtype=torch.float64)
    raw = sample_inputs(model)[0]
    target = Target.logit(1)
    case = Case(model, model.encode([raw], target), target, spec=METHODS["smoothgrad"])
    x = case.input()
    sigma = 0.2 * float(x.max() - x.min()) if unit == "range" else 0.2
    total = torch.zeros_like(x)
    for k in range(5):
        drawn = torch.randn(x.shape[1:], generator=case.generator(0, k))
        found = case.gradient(x + sigma * drawn.to(x))
        total += {"signed": found, "abs": found.abs(), "squared": found**2}[variant]
    mean = total[0] / 5
    if family == "bert":
        expected = mean.norm(dim=-1) if variant == "signed" else mean.sum(-1)
    else:
        expected = mean.sum(0)
    found = pellucid.explain(
        model, raw, method="smoothgrad", target=1, samples=5, spread=0.2, variant=variant, unit=unit
    )
    torch.testing.assert_close(found.scores, expected, rtol=1e-9, atol=1e-12)


def test_the_noise_is_as_wide_as_it_says():
    """The gradient of the sum of x^2 / 2 is x itself, so what is added to it is the mean noise."""
    model, images, _, pixels = polynomial(2)
    with torch.no_grad():
        model.module.weights.fill_(0.5)
    found = pellucid.explain(model, images, method="smoothgrad", samples=40, spread=0.1)
    for one, x in zip(found, pixels, strict=True):
        added = one.scores - x.sum(0)
        expected = 0.1 * float(x.max() - x.min()) * (3 / 40) ** 0.5  # three channels, 40 samples
        assert added.std().item() == pytest.approx(expected, rel=0.35)  # 48 pixels


def test_the_preset_of_tis_is_the_mean_absolute_gradient():
    model = build("vit")
    found = pellucid.explain(
        model, sample_inputs(model)[0], method="smoothgrad", preset="tis", samples=2
    )
    assert found.params == {"samples": 2, "spread": 1.0, "unit": "absolute", "variant": "abs"}
    assert (found.scores >= 0).all()
