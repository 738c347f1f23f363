"""Quantus through pellucid equals Quantus by hand; our methods under its metrics."""

import numpy as np
import pytest
import torch

import pellucid
from pellucid import ArgumentError, UnsupportedCombination, compat
from pellucid.testing.contract import check_no_trace
from pellucid.testing.tiny import build, sample_inputs

quantus = pytest.importorskip("quantus", reason="quantus is not installed")

QUIET = {"disable_warnings": True, "display_progressbar": False}


def explained(model, method="gradient_x_input", target=1, **params):
    return pellucid.explain(model, sample_inputs(model), method=method, target=target, **params)


def arrays(model, explanations):
    """Pixels, classes and attributions, built here from what is stored."""
    x, _ = compat.encoded(model, [one.item.view for one in explanations])
    shares = np.stack([one.scores.numpy() for one in explanations])[:, None]
    return x.numpy(), np.array([one.index for one in explanations]), shares


def test_a_metric_of_attributions_alone(tiny):
    """Gini sparseness, computed here from its definition as well."""
    model = tiny("vit")
    found = explained(model)
    scores = compat.quantus_call(quantus.Sparseness(**QUIET), model, found)
    x, y, a = arrays(model, found)
    module = compat.logits_module(model)
    by_hand = quantus.Sparseness(**QUIET)(model=module, x_batch=x, y_batch=y, a_batch=a)
    np.testing.assert_allclose(scores, by_hand, rtol=1e-6)
    for score, one in zip(scores, found, strict=True):
        sizes = one.scores.abs().double().flatten().sort().values.numpy()
        n = len(sizes)
        rank = np.arange(1, n + 1)
        gini = (2 * rank - n - 1) @ sizes / (n * sizes.sum())
        assert score == pytest.approx(gini, abs=1e-5)


def test_a_metric_that_runs_the_model(tiny):
    model = tiny("vit")
    found = explained(model)
    settings = {"features_in_step": 64, "perturb_baseline": "black", "normalise": False} | QUIET
    curves = compat.quantus_call(quantus.PixelFlipping(**settings), model, found)
    x, y, a = arrays(model, found)
    by_hand = quantus.PixelFlipping(**settings)(
        model=compat.logits_module(model), x_batch=x, y_batch=y, a_batch=a
    )
    np.testing.assert_allclose(curves, by_hand, rtol=1e-5)
    assert len(curves) == len(found)


def test_a_metric_that_explains_again(tiny):
    """What it is handed back for the unchanged image are the scores of the explanation."""
    model, seen = tiny("vit"), []

    class Watching(quantus.LocalLipschitzEstimate):
        def evaluate_batch(self, *args, **keywords):
            explain_again = self.explain_func
            keep = keywords["model"].get_model(), keywords["x_batch"], keywords["y_batch"]
            seen.append(explain_again(*keep))
            return super().evaluate_batch(*args, **keywords)

    found = explained(model, "integrated_gradients", steps=3, seed=5)
    metric = Watching(nr_samples=2, normalise=False, abs=False, **QUIET)
    scores = compat.quantus_call(metric, model, found)
    assert np.isfinite(scores).all()
    expected = np.stack([one.scores.numpy() for one in found])[:, None]
    np.testing.assert_allclose(seen[0], expected, rtol=1e-4, atol=1e-6)


def test_the_quantity_that_was_explained_is_explained_again(tiny):
    model = tiny("vit")
    found = explained(model, target=pellucid.Target.probability(1))
    seen = {}

    def metric(**keywords):
        given = keywords["model"], keywords["x_batch"], keywords["y_batch"]
        seen["again"], seen["stored"] = keywords["explain_func"](*given), keywords["a_batch"]

    compat.quantus_call(metric, model, found)
    np.testing.assert_allclose(seen["again"], seen["stored"], rtol=1e-4, atol=1e-8)


def test_explanations_that_differ_cannot_be_made_again(tiny):
    model, seen = tiny("vit"), {}
    one, *_ = explained(model)
    other, *_ = explained(model, "gradient")
    compat.quantus_call(lambda **keywords: seen.update(keywords), model, [one, other])
    assert seen["explain_func"] is None


@pytest.mark.parametrize("method", ["gradient_x_input", "rollout", "gradient"])
def test_our_methods_are_explain_functions(method, tiny):
    """Quantus asks for the attributions itself, per sample, for the class of each."""
    model = tiny("vit")
    x, _ = compat.encoded(model, sample_inputs(model))
    metric = quantus.Complexity(normalise=False, abs=True, **QUIET)
    y = np.array([0, 2, 1])
    scores = metric(
        model=compat.logits_module(model),
        x_batch=x.numpy(),
        y_batch=y,
        explain_func=compat.quantus_explain_func(method=method),
    )
    found = [
        pellucid.explain(model, raw, method=method, target=int(c))
        for raw, c in zip(sample_inputs(model), y, strict=True)
    ]
    np.testing.assert_allclose(scores, compat.quantus_call(metric, model, found), rtol=1e-4)


def test_weights_are_randomised_in_a_copy():
    model = build("vit")
    x, _ = compat.encoded(model, sample_inputs(model))
    before = compat.attribute(model, method="gradient_x_input").attribute(x, target=1)
    metric = quantus.MPRT(
        similarity_func=quantus.similarity_func.correlation_spearman,
        return_last_correlation=True,
        **QUIET,
    )

    def run():
        return metric(
            model=compat.logits_module(model),
            x_batch=x.numpy(),
            y_batch=np.array([1, 1, 1]),
            explain_func=compat.quantus_explain_func(method="gradient_x_input"),
        )

    scores = run()
    assert len(scores) == len(x)
    assert np.abs(scores).max() < 0.9, "the copy has other weights"
    after = compat.attribute(model, method="gradient_x_input").attribute(x, target=1)
    assert torch.equal(before, after)


def test_no_trace():
    model = build("vit")
    found = explained(model)
    metric = quantus.PixelFlipping(features_in_step=256, perturb_baseline="black", **QUIET)
    check_no_trace(model, lambda: compat.quantus_call(metric, model, found))


def test_what_is_drawn_follows_from_the_seed(tiny):
    model = tiny("vit")
    found = explained(model)
    metric = quantus.PixelFlipping(features_in_step=256, perturb_baseline="uniform", **QUIET)
    runs = [compat.quantus_call(metric, model, found, seed=seed) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])


def test_wrong_uses_are_refused(tiny):
    image, text = tiny("vit"), tiny("bert")
    with pytest.raises(ArgumentError, match="a logits_module"):
        compat.quantus_explain_func()(image.module, np.zeros((1, 3, 32, 48)), np.array([0]))
    words = pellucid.explain(text, "the film is fine")
    with pytest.raises(UnsupportedCombination, match="explanations of images"):
        compat.quantus_call(quantus.Sparseness(**QUIET), text, words)
    with pytest.raises(ArgumentError, match="nothing to measure"):
        compat.quantus_call(quantus.Sparseness(**QUIET), image, [])
    with pytest.raises(ArgumentError, match="of another model"):
        compat.quantus_call(quantus.Sparseness(**QUIET), build("deit"), explained(image))
