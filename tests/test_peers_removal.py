"""The same masks give the same numbers as in the authors' libraries, where they are installed."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pellucid.methods._regression import fit
from pellucid.methods.kernel_shap import _Pairs, _values

# ---- lime ----------------------------------------------------------------------------------------


def masks(samples, features, seed=0):
    """Masks of a text, the first of which keeps everything, and answers to them."""
    generator = np.random.default_rng(seed)
    data = np.ones((samples, features))
    for row in data[1:]:
        row[generator.choice(features, generator.integers(1, features + 1), replace=False)] = 0
    answers = data @ generator.normal(size=features) + generator.normal(size=samples) / 3
    return data, answers


@pytest.mark.parametrize("features", [3, 6, 10, 15])
def test_the_coefficients_are_those_of_lime(features):
    lime_base = pytest.importorskip("lime.lime_base", reason="lime is an optional peer")
    pairwise = pytest.importorskip("sklearn.metrics").pairwise_distances
    data, answers = masks(300, 15)
    distances = pairwise(data, data[:1], metric="cosine").ravel() * 100

    def kernel(d, width=25):
        return np.sqrt(np.exp(-(d**2) / width**2))

    base = lime_base.LimeBase(kernel, random_state=0)
    labels = np.stack([1 - answers, answers], axis=1)
    intercept, found, r2, _ = base.explain_instance_with_data(
        data, labels, distances, 1, features, feature_selection="auto"
    )
    x, y = torch.from_numpy(data), torch.from_numpy(answers)
    ours = 1 - x.mean(dim=1).sqrt()
    np.testing.assert_allclose(ours, distances / 100, atol=1e-12)
    pi = (-((ours / 0.25) ** 2) / 2).exp()
    mine = fit(x, y, pi, 1.0, features)
    expected = np.zeros(15)
    for index, weight in found:
        expected[index] = weight
    np.testing.assert_allclose(mine.coefficients, expected, atol=1e-9)
    assert float(mine.intercept) == pytest.approx(float(intercept))
    assert float(mine.r2) == pytest.approx(float(r2))


# ---- shap ----------------------------------------------------------------------------------------


def value(z):
    """A game with interactions, for arrays of 0 and 1 (m n)."""
    n = z.shape[1]
    pair = np.random.default_rng(n).normal(size=(n, n)) / 4
    return z @ np.linspace(-1, 2, n) + np.tanh(np.einsum("mi,ij,mj->m", z, pair, z))


@pytest.mark.filterwarnings("ignore")  # theirs
@pytest.mark.parametrize(("players", "samples"), [(6, 2000), (10, 2000), (13, 600), (19, 1500)])
def test_the_values_are_those_of_shap_for_the_same_coalitions(players, samples):
    """For odd numbers, or all coalitions: shap leaves coalitions of a half without complement."""
    shap = pytest.importorskip("shap", reason="shap is an optional peer")
    explainer = shap.KernelExplainer(value, np.zeros((1, players)), seed=0)
    theirs = explainer.shap_values(
        np.ones((1, players)), nsamples=samples, l1_reg=False, silent=True
    )[0]
    used = explainer.nsamplesAdded
    z = explainer.maskMatrix[:used].astype(bool)
    weights = explainer.kernelWeights[:used]
    number = {row.tobytes(): i for i, row in enumerate(z)}
    firsts = [i for i, row in enumerate(z) if number[(~row).tobytes()] > i]
    seconds = [number[(~z[i]).tobytes()] for i in firsts]
    np.testing.assert_allclose(weights[firsts], weights[seconds])
    pairs = _Pairs(torch.from_numpy(z[firsts]), torch.from_numpy(weights[firsts]), complete=False)
    empty, whole = value(np.zeros((1, players)))[0], value(np.ones((1, players)))[0]
    asked = pairs.in_turn().double().numpy()
    answers = torch.from_numpy(np.concatenate([[empty], value(asked[1:])]))
    ours, _ = _values(pairs, answers, torch.tensor(whole, dtype=torch.float64))
    np.testing.assert_allclose(ours, theirs, atol=1e-8)
