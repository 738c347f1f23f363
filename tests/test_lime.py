"""LIME against a literal version, models that are linear, and its own definitions."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch

import pellucid
from pellucid import ArgumentError, Target
from pellucid._case import Case
from pellucid._kept import score_kept
from pellucid.methods import METHODS
from pellucid.methods._regression import fit
from pellucid.methods.lime import _images, _texts
from pellucid.testing.tiny import build, sample_inputs

WEIGHTS = {"good": 2.0, "fine": 1.0, "bad": -3.0, "not": -1.0}


def judge(texts):
    return [[0.0, 0.5 + sum(WEIGHTS.get(word, 0.0) for word in t.split())] for t in texts]


@pytest.fixture
def box():
    return pellucid.blackbox(judge, kind="text", labels=["negative", "positive"], gives="logits")


def slow_ridge(x, y, weights, ridge):
    """Coefficients and intercept by the normal equations, with a column of ones."""
    x, y, w = np.asarray(x, float), np.asarray(y, float), np.asarray(weights, float)
    full = np.column_stack([x, np.ones(len(x))])
    penalty = np.diag([ridge] * x.shape[1] + [0.0])
    found = np.linalg.solve(full.T @ (w[:, None] * full) + penalty, full.T @ (w * y))
    return found[:-1], found[-1]


def slow_r2(x, y, weights, coefficients, intercept):
    y, w = np.asarray(y), np.asarray(weights)
    error = (w * (y - np.asarray(x) @ coefficients - intercept) ** 2).sum()
    return 1 - error / (w * (y - (w * y).sum() / w.sum()) ** 2).sum()


def problem(seed=0, samples=50, features=8):
    generator = torch.Generator().manual_seed(seed)
    x = (torch.rand(samples, features, generator=generator) < 0.6).double()
    y = (
        torch.randn(samples, generator=generator).double()
        + x @ torch.randn(features, generator=generator).double()
    )
    return x, y, torch.rand(samples, generator=generator).double()


# ---- the regression ------------------------------------------------------------------------------


@pytest.mark.parametrize("ridge", [0.0, 1.0, 30.0])
def test_the_fit_is_the_slow_one(ridge):
    x, y, weights = problem()
    found = fit(x, y, weights, ridge)
    coefficients, intercept = slow_ridge(x, y, weights, ridge)
    np.testing.assert_allclose(found.coefficients, coefficients, atol=1e-12)
    assert float(found.intercept) == pytest.approx(intercept)
    assert float(found.r2) == pytest.approx(slow_r2(x, y, weights, coefficients, intercept))


@pytest.mark.parametrize("features", [1, 3, 6])
def test_few_features_are_chosen_one_after_the_other(features):
    x, y, weights = problem(1)
    used = []
    for _ in range(features):
        scores = {}
        for new in set(range(8)) - set(used):
            part = x[:, [*used, new]]
            scores[new] = slow_r2(part, y, weights, *slow_ridge(part, y, weights, 0.0))
        used.append(max(scores, key=scores.get))
    found = fit(x, y, weights, 1.0, features)
    assert set(found.coefficients.nonzero()[:, 0].tolist()) == set(used)
    expected, _ = slow_ridge(x[:, used], y, weights, 1.0)
    np.testing.assert_allclose(found.coefficients[used], expected, atol=1e-12)


def test_more_features_are_those_of_the_largest_coefficients():
    x, y, weights = problem(2)
    largest = np.argsort(-np.abs(slow_ridge(x, y, weights, 0.01)[0]))[:7]
    found = fit(x, y, weights, 1.0, 7)
    assert set(found.coefficients.nonzero()[:, 0].tolist()) == set(largest.tolist())
    assert fit(x, y, weights, 1.0, 8).coefficients.ne(0).all()


def test_features_that_never_differ_and_answers_that_never_do():
    x, y, weights = problem()
    x[:, 3] = 1.0
    assert fit(x, y, weights, 0.0).coefficients[3].abs() < 1e-12
    flat = fit(x, torch.full_like(y, 2.0), weights, 0.0)
    assert flat.coefficients.abs().max() < 1e-12
    assert (float(flat.intercept), float(flat.r2)) == (2.0, 1.0)


# ---- the samples ---------------------------------------------------------------------------------


def test_texts_lose_each_number_of_words_as_often():
    z = _texts(12_000, 4, torch.Generator().manual_seed(0))
    gone = torch.bincount(4 - z.sum(dim=1), minlength=5)
    assert gone[0] == 0
    assert (gone[1:] - 3000).abs().max() < 4 * (12_000 * 3 / 16) ** 0.5
    pairs = torch.tensor([float(z[z.sum(dim=1) == 2][:, pair].all(1).sum()) for pair in _pairs(4)])
    assert (pairs / pairs.sum() - 1 / 6).abs().max() < 0.03


def _pairs(n):
    return [list(pair) for pair in combinations(range(n), 2)]


def test_images_lose_every_piece_by_a_coin():
    z = _images(8000, 5, torch.Generator().manual_seed(0)).double()
    assert (z.mean(dim=0) - 0.5).abs().max() < 0.03
    assert (torch.cov(z.T) - torch.eye(5) / 4).abs().max() < 0.02


def literal(model, raw, samples, seed, by="delete"):
    """Every version by itself, the kernel as the authors' code has it, for texts of tokens."""
    target = Target.predicted("log_odds")
    case = Case(model, model.encode([raw], target), target, seed=seed, spec=METHODS["lime"])
    own = case.content[0].nonzero()[:, 0]
    draw = _texts if model.kind == "text" else _images
    z = draw(samples - 1, len(own), case.generators[0])
    x, y, weights = [], [], []
    for row in [torch.ones(len(own), dtype=torch.bool), *z]:
        keep = torch.ones_like(case.mask)
        keep[0, own] = row
        y.append(float(score_kept(case, keep, by)))
        x.append(row.double().numpy())
        distance = 100 * (1 - np.sqrt(x[-1].sum() / len(own)))
        weights.append(np.sqrt(np.exp(-(distance**2) / 25**2)))
    coefficients, intercept = slow_ridge(x, y, weights, 1.0)
    scores = torch.zeros(case.mask.shape[1], dtype=torch.float64)
    scores[own] = torch.from_numpy(coefficients)
    return scores, intercept, slow_r2(x, y, weights, coefficients, intercept)


@pytest.mark.parametrize(
    ("family", "by"), [("bert", "delete"), ("bert", "mask"), ("gpt2", "delete"), ("vit", "delete")]
)
def test_lime_is_the_literal_version(family, by):
    model = build(family, dtype=torch.float64)
    inputs = sample_inputs(model)
    found = pellucid.explain(model, inputs, method="lime", samples=40, seed=5, by=by)
    for raw, one in zip(inputs, found, strict=True):
        scores, intercept, r2 = literal(model, raw, 40, 5, by)
        torch.testing.assert_close(one.scores, scores, rtol=1e-6, atol=1e-7)
        assert float(one.extras["intercept"]) == pytest.approx(intercept, abs=1e-6)
        assert float(one.extras["r2"]) == pytest.approx(r2, abs=1e-6)


# ---- what it finds -------------------------------------------------------------------------------


def test_a_sum_is_found(box):
    text = "a good and fine film , not a bad one"
    found = pellucid.explain(box, text, method="lime", target="positive", samples=200, ridge=0.0)
    expected = [WEIGHTS.get(word, 0.0) for word in text.split()]
    np.testing.assert_allclose(found.scores, expected, atol=1e-10)
    assert float(found.extras["intercept"]) == pytest.approx(0.5)
    assert float(found.extras["r2"]) == pytest.approx(1.0)


def test_all_words_of_a_type_vanish_together(box):
    found = pellucid.explain(
        box, "good film good", method="lime", target="positive", unit="type", ridge=0.0
    )
    np.testing.assert_allclose(found.scores, [2.0, 0.0, 2.0], atol=1e-10)  # a half of 4 each


def test_only_so_many_features_have_a_score(box):
    text = "a good and fine film , not a bad one"
    found = pellucid.explain(box, text, method="lime", target="positive", features=2)
    assert {found.segments[i].text for i in found.scores.nonzero()[:, 0].tolist()} == {
        "good",
        "bad",
    }


def test_the_presets_are_the_published_settings(box):
    found = pellucid.explain(box, "a good film", method="lime", preset="text", samples=50)
    assert (found.params["unit"], found.params["features"]) == ("type", 10)
    assert METHODS["lime"].presets["text"]["samples"] == 5000


def test_a_wider_kernel_weighs_far_samples_more():
    model = build("bert", dtype=torch.float64)
    narrow, wide = (
        pellucid.explain(model, "the film is not very good at all", method="lime", width=width)
        for width in (0.05, 5.0)
    )
    assert not torch.allclose(narrow.scores, wide.scores)


def test_equal_samples_are_asked_once(box):
    found = pellucid.explain(box, "a good film", method="lime")
    assert found.provenance.forwards == 2**3


def test_one_word(box):
    found = pellucid.explain(box, "good", method="lime", target="positive", ridge=0.0)
    assert found.scores.tolist() == pytest.approx([2.0])
    assert found.provenance.forwards == 2


@pytest.mark.parametrize(
    ("name", "value"),
    [("samples", 1), ("width", 0.0), ("ridge", -1.0), ("features", -1), ("unit", "letter")],
)
def test_nonsense_is_refused(box, name, value):
    with pytest.raises(ArgumentError, match=name):
        pellucid.explain(box, "a good film", method="lime", **{name: value})


def test_cells_that_cannot_be_are_refused():
    model = build("swin")
    with pytest.raises(ArgumentError, match="cells"):
        pellucid.explain(model, sample_inputs(model)[0], method="lime", cells=0)
