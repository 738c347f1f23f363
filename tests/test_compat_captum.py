"""Captum through pellucid equals Captum by hand, and both equal our own where they must."""

import pytest
import torch

import pellucid
from pellucid import ArgumentError, Target, UnsupportedCombination, compat
from pellucid.testing.contract import check_no_trace
from pellucid.testing.tiny import build, sample_inputs

captum = pytest.importorskip("captum.attr", reason="captum is not installed")

pytestmark = pytest.mark.filterwarnings(
    "ignore:Setting forward, backward hooks:UserWarning",
    "ignore:Setting backward hooks on ReLU:UserWarning",
    "ignore:Input Tensor:UserWarning",
    "ignore:Required Gradients:UserWarning",
)


def by_hand(model, raw, target, attribution, **settings):
    """What Captum says of one input, as its own documentation has it: (tokens or h w) features."""
    x, rest = compat.encoded(model, [raw])
    tool = attribution(compat.logits_module(model))
    found = tool.attribute(x, target=target, additional_forward_args=rest or None, **settings)
    return found.detach()[0]


def summed(found):
    return found.sum(dim=0 if found.dim() == 3 else -1)


def explained(model, raw, attribution, target=None, seed=0, batch_size=8, **settings):
    return pellucid.explain(
        model,
        raw,
        method=compat.captum(attribution, **settings),
        target=target,
        seed=seed,
        batch_size=batch_size,
    )


# ---- Captum by hand ------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["bert", "gpt2", "bert-mlm", "llama-lm", "vit", "plain-image"])
@pytest.mark.parametrize(
    ("attribution", "settings"),
    [
        (captum.Saliency, {}),
        (captum.InputXGradient, {}),
        (captum.IntegratedGradients, {"n_steps": 4}),
        (captum.IntegratedGradients, {"n_steps": 6, "internal_batch_size": 7}),
    ],
)
def test_a_padded_batch_equals_captum_by_hand(family, attribution, settings, tiny):
    """Every input of a batch of different lengths, with the class that was predicted for it."""
    model = tiny(family)
    raw = sample_inputs(model)
    found = explained(model, raw, attribution, **settings)
    assert len({len(ex.segments) for ex in found}) == (3 if model.kind == "text" else 1)
    for one, ex in zip(raw, found, strict=True):
        expected = summed(by_hand(model, one, ex.index, attribution, **settings))
        torch.testing.assert_close(ex.scores, expected.to(ex.scores), rtol=1e-3, atol=1e-6)


def test_classes_of_a_batch_are_predicted_one_by_one():
    """The inputs above would say nothing of it if one class were predicted for all."""
    model = build("bert", dtype=torch.float64)
    raw = ["a", "the film is bad", "very very good !", "not at all", "waste of time", "we", "you"]
    found = explained(model, raw, captum.Saliency)
    assert len({ex.index for ex in found}) > 1
    for one, ex in zip(raw, found, strict=True):
        expected = summed(by_hand(model, one, ex.index, captum.Saliency))
        torch.testing.assert_close(ex.scores, expected)


@pytest.mark.parametrize("family", ["bert", "bert-mlm", "vit", "plain-text"])
@pytest.mark.parametrize("attribution", [captum.DeepLift, captum.GuidedBackprop])
def test_methods_that_hook_the_model(family, attribution):
    """They stand on the parts of the user's module, and only while Captum runs."""
    model = build(family)
    raw = sample_inputs(model)
    found = explained(model, raw, attribution, target=1)
    for one, ex in zip(raw, found, strict=True):
        expected = summed(by_hand(model, one, 1, attribution))
        torch.testing.assert_close(ex.scores, expected.to(ex.scores), rtol=1e-3, atol=1e-5)
    check_no_trace(model, lambda: explained(model, raw, attribution, target=1))


def test_one_at_a_time_what_is_drawn_does_not_depend_on_the_others(tiny):
    model = tiny("bert")
    raw = sample_inputs(model)

    def noisy(texts):
        make = lambda module: captum.NoiseTunnel(captum.Saliency(module))  # noqa: E731
        return explained(model, texts, make, target=1, batch_size=1, nt_samples=3)

    for one, other in zip(noisy(raw), noisy(raw[::-1])[::-1], strict=True):
        assert torch.equal(one.scores, other.scores)


def test_occlusion_of_an_image(tiny):
    model = tiny("vit")
    windows = {"sliding_window_shapes": (3, 8, 8), "strides": (3, 8, 8)}
    found = explained(model, sample_inputs(model), captum.Occlusion, target=1, **windows)
    for one, ex in zip(sample_inputs(model), found, strict=True):
        expected = summed(by_hand(model, one, 1, captum.Occlusion, **windows))
        torch.testing.assert_close(ex.scores, expected.to(ex.scores), rtol=1e-4, atol=1e-5)


def test_occlusion_of_tokens_with_settings_made_for_the_batch(tiny):
    model = tiny("bert")
    method = compat.captum(
        captum.Occlusion, also=lambda case: {"sliding_window_shapes": (1, case.input().shape[-1])}
    )
    ex = pellucid.explain(model, "the film is fine", method=method, target=1)
    width = {"sliding_window_shapes": (1, 32)}
    expected = summed(by_hand(model, "the film is fine", 1, captum.Occlusion, **width))
    torch.testing.assert_close(ex.scores, expected.to(ex.scores), rtol=1e-4, atol=1e-5)


def test_other_targets_than_logits(tiny):
    """The gradient of a probability, which no target of Captum's own names."""
    model = tiny("vit")
    raw = sample_inputs(model)[0]
    ex = explained(model, raw, captum.Saliency, Target.probability(2), abs=False)
    x, _ = compat.encoded(model, raw)
    leaf = x.double().float().requires_grad_()
    score = compat.logits_module(model)(leaf).double().softmax(dim=-1)[0, 2]
    (slope,) = torch.autograd.grad(score, leaf)
    torch.testing.assert_close(ex.scores, slope[0].sum(dim=0), rtol=1e-3, atol=1e-7)


def test_a_configured_object_and_its_delta(tiny):
    model = tiny("vit")
    ex = explained(
        model, sample_inputs(model)[0], captum.IntegratedGradients, return_convergence_delta=True
    )
    gap = ex.scores.double().sum() - (ex.value - by_zero(model, ex.index))
    assert ex.extras["convergence_delta"].item() == pytest.approx(gap.item(), abs=1e-4)
    noisy = pellucid.explain(
        model,
        sample_inputs(model)[0],
        method=compat.captum(lambda module: captum.NoiseTunnel(captum.Saliency(module))),
    )
    assert noisy.scores.shape == ex.scores.shape


def by_zero(model, index):
    x, _ = compat.encoded(model, sample_inputs(model)[0])
    return compat.logits_module(model)(torch.zeros_like(x))[0, index].item()


# ---- both doors ----------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["vit", "bert"])
def test_our_gradient_is_captums_saliency_through_both_doors(family, tiny):
    model = tiny(family)
    raw = sample_inputs(model)
    ours = pellucid.explain(model, raw, method="gradient")
    theirs = pellucid.explain(
        model, raw, method=compat.captum(captum.Saliency, reduce="max", signed=False)
    )
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one.scores, other.scores)
        assert not other.signed
    if family == "bert":
        return
    x, _ = compat.encoded(model, raw)
    targets = [ex.index for ex in ours]
    tool = captum.Saliency(compat.logits_module(model))
    by_captum = tool.attribute(x, target=torch.tensor(targets)).amax(dim=1)
    by_us = compat.attribute(model, method="gradient").attribute(x, target=targets).sum(dim=1)
    torch.testing.assert_close(by_us, by_captum)


def test_our_integrated_gradients_are_captums(tiny):
    model = build("vit", dtype=torch.float64)
    x, _ = compat.encoded(model, sample_inputs(model))
    ours = compat.attribute(model, method="integrated_gradients", steps=20).attribute(x, target=1)
    tool = captum.IntegratedGradients(compat.logits_module(model))
    theirs = tool.attribute(x, target=1, n_steps=20, method="gausslegendre")
    torch.testing.assert_close(ours.sum(dim=1), theirs.sum(dim=1), rtol=1e-6, atol=1e-9)


def test_captum_on_ids_through_the_word_table(tiny):
    """Layer integrated gradients at the embedding are integrated gradients of embeddings."""
    model = tiny("bert")
    module = compat.logits_module(model)
    ids, rest = compat.encoded(model, "the film is fine", at="ids")
    x, also = compat.encoded(model, "the film is fine")
    table = module.module.get_input_embeddings()
    layer = captum.LayerIntegratedGradients(module, table)
    blank = torch.zeros_like(ids)
    found = layer.attribute(
        ids, blank, target=1, additional_forward_args=(rest[0], rest[1]), n_steps=5
    )
    plain = captum.IntegratedGradients(module)
    expected = plain.attribute(
        x, table(blank).detach(), target=1, additional_forward_args=also, n_steps=5
    )
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)


# ---- promises ------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["bert", "vit"])
@pytest.mark.parametrize(
    "make",
    [captum.Saliency, captum.GradientShap, lambda m: captum.NoiseTunnel(captum.InputXGradient(m))],
    ids=["saliency", "gradient-shap", "noise"],
)
def test_no_trace_and_the_same_twice(family, make):
    model = build(family)
    raw = sample_inputs(model)

    def zeros(case):
        if make is not captum.GradientShap:
            return {}
        return {"baselines": torch.zeros_like(case.input()), "n_samples": 3}

    def run(seed=0):
        return pellucid.explain(model, raw, method=compat.captum(make, also=zeros), seed=seed)

    first = run()
    check_no_trace(model, run)
    for one, again in zip(first, run(), strict=True):
        assert torch.equal(one.scores, again.scores)
        assert torch.isfinite(one.scores).all()
    if make is not captum.Saliency:
        assert any(
            not torch.equal(one.scores, other.scores)
            for one, other in zip(first, run(seed=1), strict=True)
        )


def test_names_settings_and_numbers_are_kept(tiny, tmp_path):
    ex = explained(tiny("bert"), "the film is fine", captum.IntegratedGradients, n_steps=3)
    assert (ex.method, ex.params) == ("captum.IntegratedGradients", {"n_steps": 3})
    assert ex.provenance.forwards >= 3
    again = pellucid.Explanation.load(ex.save(tmp_path / "theirs.safetensors"))
    assert torch.equal(again.scores, ex.scores)
    measured = pellucid.measure(tiny("bert"), ex, metric="comprehensiveness")
    assert measured.value is not None


def test_a_method_of_captum_in_a_table_beside_ours(tiny):
    model = tiny("vit")
    theirs = compat.captum(captum.Saliency, reduce="max", signed=False)
    table = pellucid.evaluate(
        model, sample_inputs(model), methods=["gradient", theirs], metrics=["deletion"]
    )
    ours, other = table.rows
    assert other.method.startswith("captum.Saliency")
    assert other.mean == pytest.approx(ours.mean, abs=1e-6)


def test_wrong_uses_are_refused(tiny):
    model = tiny("vit")
    with pytest.raises(ArgumentError, match="this makes no attribution"):
        compat.captum(captum.Saliency(compat.logits_module(model)))
    with pytest.raises(ArgumentError, match="reduce='mean'"):
        compat.captum(captum.Saliency, reduce="mean")
    layer = model.module.get_submodule("vit.layernorm")
    deep = compat.captum(lambda module: captum.LayerActivation(module, layer))
    with pytest.raises(ArgumentError, match="not about the input"):
        pellucid.explain(model, sample_inputs(model)[0], method=deep)
    box = pellucid.blackbox(
        lambda texts: torch.zeros(len(texts), 2), kind="text", labels=["a", "b"], gives="logits"
    )
    with pytest.raises(UnsupportedCombination):
        pellucid.explain(box, "the film is fine", method=compat.captum(captum.Saliency))
