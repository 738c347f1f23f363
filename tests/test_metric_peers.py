"""The same numbers from other libraries, where they are installed."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch

import pellucid
from pellucid import Target
from pellucid._case import Case
from pellucid._kept import score_kept
from pellucid._rank_statistics import auroc, kendall
from pellucid._statistics import spearman
from pellucid.metrics import METRICS
from pellucid.metrics._imputing import imputed
from pellucid.metrics._likeness import ssim
from pellucid.metrics.infidelity import _removals, _square
from pellucid.metrics.mean_average_precision import average_precision
from pellucid.testing.tiny import build, sample_inputs

GENERATOR = np.random.default_rng(0)


@pytest.fixture
def scipy_stats():
    return pytest.importorskip("scipy.stats", reason="scipy is not installed")


@pytest.fixture
def sklearn_metrics():
    return pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")


@pytest.fixture
def captum_metrics():
    return pytest.importorskip("captum.metrics", reason="captum is not installed")


@pytest.fixture
def quantus():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of theirs, while it is imported
        return pytest.importorskip("quantus", reason="quantus is not installed")


@pytest.mark.parametrize("distinct", [3, 10, 10**6])
def test_correlations_are_those_of_scipy(distinct, scipy_stats):
    for _ in range(5):
        a, b = torch.from_numpy(GENERATOR.integers(0, distinct, (2, 50))).double()
        b = b + a * 0.5
        assert spearman(a, b) == pytest.approx(scipy_stats.spearmanr(a, b).statistic, abs=1e-12)
        assert kendall(a, b) == pytest.approx(scipy_stats.kendalltau(a, b).statistic, abs=1e-12)


@pytest.mark.parametrize("distinct", [3, 10, 10**6])
def test_ranking_metrics_are_those_of_scikit_learn(distinct, sklearn_metrics):
    for _ in range(5):
        scores = torch.from_numpy(GENERATOR.integers(0, distinct, 60)).double()
        truth = torch.from_numpy(GENERATOR.random(60) < 0.3)
        expected = sklearn_metrics.roc_auc_score(truth, scores)
        assert auroc(scores, truth) == pytest.approx(expected, abs=1e-12)
        expected = sklearn_metrics.average_precision_score(truth, scores)
        assert average_precision(scores, truth) == pytest.approx(expected, abs=1e-12)


def test_rationales_are_measured_as_by_scikit_learn(sklearn_metrics):
    model = build("bert", dtype=torch.float64)
    text = "the film is not very good at all"
    found = pellucid.explain(model, text, method="gradient_x_input")
    truth = [0, 0, 0, 1, 1, 1, 0, 0]
    scores = found.scores[1:-1]
    for metric, function in (
        ("rationale_auroc", sklearn_metrics.roc_auc_score),
        ("rationale_auprc", sklearn_metrics.average_precision_score),
    ):
        measured = pellucid.measure(model, found, metric=metric, truth=truth)
        assert measured.value == pytest.approx(function(truth, scores), abs=1e-12)


# ---- captum --------------------------------------------------------------------------------------


def infidelity_of_captum(metrics, forward, x, changes, changed, scores, scale):
    """Theirs, with our perturbations: what is said to change (n ...), and the changed inputs."""
    value = metrics.infidelity(
        forward,
        lambda _: (changes, changed),
        x,
        scores,
        n_perturb_samples=len(changes),
        normalize=scale,
    )
    return float(value[0])


def case_of(model, found, target):
    spec = METRICS["infidelity"]
    return Case(model, model.batch([found.item], target), target, spec=spec)


@pytest.mark.parametrize("scale", [False, True])
def test_infidelity_of_a_text_is_that_of_captum(scale, captum_metrics):
    """Their input says which tokens are there, so a removal is its own perturbation."""
    model = build("bert", dtype=torch.float64)
    target = Target.log_odds(1)
    text = "the film is not very good at all"
    found = pellucid.explain(model, text, method="occlusion", target=target)
    ours = pellucid.measure(model, found, metric="infidelity", samples=12, scale=scale)
    case = case_of(model, found, target)
    kept = _removals(case, 0, case.content[0], 12)
    whole = torch.ones(1, kept.shape[1], dtype=torch.float64)

    def forward(stays):
        return score_kept(case, stays.bool()[None])[0]

    scores = found.scores.double()[None]
    theirs = infidelity_of_captum(
        captum_metrics, forward, whole, (~kept).double(), kept.double(), scores, scale
    )
    assert ours.value == pytest.approx(theirs, rel=1e-6)


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("by", ["removal", "noise"])
def test_infidelity_of_an_image_is_that_of_captum(by, scale, captum_metrics):
    model = build("vit", dtype=torch.float64)
    target = Target.logit(1)
    image = sample_inputs(model)[0]
    found = pellucid.explain(model, image, method="gradient", reduce="sum", target=target)
    settings = {"by": by, "samples": 8, "scale": scale, "side": 11, "sigma": 0.3}
    ours = pellucid.measure(model, found, metric="infidelity", **settings)
    case = case_of(model, found, target)
    x = case.pixels
    height, width = x.shape[-2:]
    generators = [case.generator(0, number) for number in range(8)]
    if by == "noise":
        drawn = [0.3 * torch.randn(height, width, generator=g) for g in generators]
        changes = torch.stack(drawn).double()[:, None].expand(-1, 3, -1, -1)
        changed = x - changes
    else:
        drawn = [_square(height, width, 11, g) for g in generators]
        changes = torch.stack(drawn)[:, None].expand(-1, 3, -1, -1).double()
        changed = x * (1 - changes)
    scores = torch.zeros_like(x)
    scores[:, 0] = found.scores.double()  # one channel has it all, since all change alike
    theirs = infidelity_of_captum(
        captum_metrics,
        lambda pixels: model.module(pixel_values=pixels).logits[:, 1],
        x,
        changes,
        changed,
        scores,
        scale,
    )
    assert ours.value == pytest.approx(theirs, rel=1e-6)


def test_max_sensitivity_is_that_of_captum(captum_metrics):
    model = build("vit", dtype=torch.float64)
    target = Target.logit(1)
    found = pellucid.explain(
        model, sample_inputs(model)[0], method="gradient", reduce="sum", target=target
    )
    ours = pellucid.measure(model, found, metric="max_sensitivity", samples=6, radius=0.3)
    case = Case(model, model.batch([found.item], target), target, spec=METRICS["max_sensitivity"])
    noise = torch.stack([torch.rand(case.pixels.shape[1:], generator=case.generator(0, j))
                         for j in range(6)]).double()  # fmt: skip

    def explained(inputs):
        pixels = inputs[0] if isinstance(inputs, tuple) else inputs  # it gives either
        pixels = pixels.detach().requires_grad_()
        with torch.enable_grad():
            total = model.module(pixel_values=pixels).logits[:, 1].sum()
        (slope,) = torch.autograd.grad(total, pixels)
        return (slope.sum(dim=1),)

    theirs = captum_metrics.sensitivity_max(
        explained,
        case.pixels,
        perturb_func=lambda pixels: pixels + 0.3 * (2 * noise - 1),
        n_perturb_samples=6,
    )
    assert ours.value == pytest.approx(float(theirs), rel=1e-6)


# ---- quantus and scikit-image --------------------------------------------------------------------


def test_imputed_images_are_those_of_quantus(quantus):
    from quantus.functions.perturb_func import noisy_linear_imputation

    images = torch.from_numpy(GENERATOR.random((3, 3, 20, 22)))
    removed = torch.from_numpy(GENERATOR.random((3, 20, 22)) < [[[0.2]], [[0.6]], [[0.95]]])
    found = imputed(images, removed)
    for image, gone, ours in zip(images, removed, found, strict=True):
        theirs = noisy_linear_imputation(
            arr=image.numpy(), indices=gone.flatten().nonzero()[:, 0].numpy(), noise=0.0
        )
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_the_accuracy_of_road_is_that_of_quantus(quantus):
    """Predictions on their imputed images, level by level, in the order of our ranks."""
    from quantus.functions.perturb_func import noisy_linear_imputation

    model = build("vit", dtype=torch.float64)
    image = sample_inputs(model)[1]
    found = pellucid.explain(model, image, method="gradient")
    levels = (10, 30, 50, 70, 90)
    ours = pellucid.measure(
        model, found, metric="road", truth=found.index, percent=levels, noise=0.0
    )
    x = case_of(model, found, Target.logit(1)).pixels[0].numpy()
    order = (-found.map().flatten()).argsort(stable=True).numpy()
    correct = []
    for level in levels:
        gone = order[: int(len(order) * level / 100)]
        changed = torch.from_numpy(noisy_linear_imputation(arr=x, indices=gone, noise=0.0))
        with torch.no_grad():
            logits = model.module(pixel_values=changed[None]).logits[0]
        correct.append(float(logits.argmax() == found.index))
    assert list(ours.curve) == correct


class Pixels(torch.nn.Module):
    """Two logits of an image: a weighted sum of its pixels, and nothing."""

    def __init__(self):
        super().__init__()
        weights = torch.arange(64, dtype=torch.float32).roll(17).view(8, 8) / 64
        self.weights = torch.nn.Parameter(weights - 0.4)

    def forward(self, pixels):
        seen = (pixels[:, 0] * self.weights).flatten(1).sum(dim=1)
        return torch.stack([seen, torch.zeros_like(seen)], dim=1)


def grey_explained(scores):
    """A model of one channel, a picture, and these scores of its pixels."""
    model = pellucid.adapt(
        Pixels().eval(), pellucid.Resize((8, 8), mean=(0.0,), std=(1.0,)), labels=["a", "b"]
    )
    picture = GENERATOR.integers(40, 255, (8, 8), dtype=np.uint8)
    found = pellucid.explain(model, picture, method="random", target=0)
    return model, replace(found, scores=torch.as_tensor(scores, dtype=torch.float32))


def test_pixel_flipping_is_that_of_quantus(quantus):
    """Its curve begins after the first flip and is not normalised, as its definition says."""
    model, found = grey_explained(GENERATOR.permutation(64).reshape(8, 8))
    ours = pellucid.measure(
        model, found, metric="deletion", steps=16, baseline="black", target="a"
    ).curve
    (x,) = (one.numpy() for one in model.batch([found.item], Target.logit(0)).inputs.values())
    flipping = quantus.PixelFlipping(
        features_in_step=4, perturb_baseline=0.0, normalise=False, abs=False,
        disable_warnings=True, display_progressbar=False,
    )  # fmt: skip
    (theirs,) = flipping(
        model=model.module, x_batch=x, y_batch=np.array([0]),
        a_batch=found.scores.numpy()[None, None], softmax=True, device="cpu",
    )  # fmt: skip
    np.testing.assert_allclose(ours[1:], theirs, atol=1e-6)


def test_sparseness_is_that_of_quantus(quantus):
    model, found = grey_explained(GENERATOR.random((8, 8)))
    ours = pellucid.measure(model, found, metric="sparseness").value
    measure = quantus.Sparseness(
        abs=False, normalise=False, disable_warnings=True, display_progressbar=False
    )
    one = np.zeros((1, 1, 8, 8), dtype=np.float32)
    (theirs,) = measure(
        model=model.module, x_batch=one, y_batch=np.array([0]),
        a_batch=found.scores.double().numpy()[None, None], device="cpu",
    )  # fmt: skip
    assert ours == pytest.approx(theirs, abs=1e-6)


@pytest.mark.parametrize("hit", [True, False])
def test_the_pointing_game_is_that_of_quantus(hit, quantus):
    scores = GENERATOR.random((8, 8))
    scores[2, 3] = 2.0
    mask = np.zeros((8, 8), dtype=int)
    mask[(slice(1, 4), slice(2, 5)) if hit else (slice(5, 8), slice(5, 8))] = 1
    model, found = grey_explained(scores)
    ours = pellucid.measure(model, found, metric="pointing_game", truth=mask).value
    game = quantus.PointingGame(
        abs=False, normalise=False, disable_warnings=True, display_progressbar=False
    )
    (theirs,) = game(
        model=model.module, x_batch=np.zeros((1, 1, 8, 8), np.float32), y_batch=np.array([0]),
        a_batch=scores[None, None], s_batch=mask[None, None].astype(bool), device="cpu",
    )  # fmt: skip
    assert ours == float(theirs) == float(hit)


def test_structural_similarity_is_that_of_scikit_image():
    theirs = pytest.importorskip("skimage.metrics", reason="scikit-image is not installed")
    one, other = GENERATOR.random((2, 40, 30))
    _, index = theirs.structural_similarity(
        one,
        other,
        gaussian_weights=True,
        sigma=1.5,
        use_sample_covariance=False,
        data_range=1.0,
        full=True,
    )
    inside = index[5:-5, 5:-5]  # where their window lies within the image
    ours = ssim(*(torch.from_numpy(image) for image in (one, other)))
    assert ours == pytest.approx(inside.mean(), abs=1e-6)
