"""Kernel SHAP against brute force, its defining equations, its axioms and the errors it tells."""

from __future__ import annotations

from itertools import product
from math import factorial

import numpy as np
import pytest
import torch

import pellucid
from pellucid import ArgumentError, NumericalError, Target
from pellucid._case import Case
from pellucid.methods import METHODS
from pellucid.methods.kernel_shap import _pairs
from pellucid.testing.tiny import build, sample_inputs

WORDS = [f"w{number}" for number in range(12)]


def game(players, seed=0):
    """A function of sets of players (m n -> m) with interactions of every order."""
    generator = torch.Generator().manual_seed(seed)
    main = torch.randn(players, generator=generator, dtype=torch.float64)
    pair = torch.randn(players, players, generator=generator, dtype=torch.float64) / 3

    def value(z):
        z = z.double()
        return z @ main + torch.tanh(torch.einsum("mi,ij,mj->m", z, pair, z)) + z.prod(dim=1)

    return value


def box_of(value, players):
    """A black box whose log-odds are the game played by these words."""

    def function(texts):
        present = [[word in text.split() for word in WORDS[:players]] for text in texts]
        return [[0.0, float(v)] for v in value(torch.tensor(present).view(-1, players))]

    return pellucid.blackbox(function, kind="text", labels=["no", "yes"], gives="logits")


def explained(value, players, **params):
    params = {"target": "yes", "batch_size": 4096, **params}
    text = " ".join(WORDS[:players])
    return pellucid.explain(box_of(value, players), text, method="kernel_shap", **params)


def shapley(value, players):
    """The sum over all sets of the others, as Shapley wrote it."""
    sets = torch.tensor(list(product([False, True], repeat=players)))
    v = value(sets)
    found = []
    for player in range(players):
        without = sets[:, player].logical_not()
        joined = sets[without].clone()
        joined[:, player] = True
        size = joined.sum(dim=1) - 1
        weight = [
            factorial(k) * factorial(players - k - 1) / factorial(players) for k in size.tolist()
        ]
        gain = value(joined) - v[without]
        found.append((torch.tensor(weight, dtype=torch.float64) * gain).sum())
    return torch.stack(found)


# ---- exact values --------------------------------------------------------------------------------


@pytest.mark.parametrize("players", range(1, 12))
def test_all_coalitions_give_the_shapley_values(players):
    value = game(players)
    found = explained(value, players)
    torch.testing.assert_close(found.scores, shapley(value, players), rtol=1e-10, atol=1e-10)
    assert found.extras["standard_error"].eq(0).all()
    assert found.provenance.forwards == 2**players
    assert found.notes == ()


def test_twelve_players_are_exact_where_it_is_asked_for():
    value = game(12)
    found = explained(value, 12, samples=2**12 - 2)
    torch.testing.assert_close(found.scores, shapley(value, 12), rtol=1e-10, atol=1e-10)
    assert explained(value, 12, samples=2**12 - 3).extras["standard_error"].gt(0).all()


def test_the_axioms():
    """A player that adds nothing gets nothing, and players that add the same get the same."""

    def value(z):
        z = z.double()
        return 3 * z[:, 0] * z[:, 1] + z[:, 2] * (z[:, 0] + z[:, 1]) ** 2

    found = explained(value, 5).scores
    assert found[0] == pytest.approx(float(found[1]), abs=1e-12)
    assert found[3:].abs().max() < 1e-12
    both = explained(lambda z: value(z) + game(5)(z), 5).scores
    torch.testing.assert_close(both, found + explained(game(5), 5).scores, rtol=1e-10, atol=1e-10)


# ---- sampled values ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_scores_sum_to_what_all_add_to_none(seed):
    value = game(12)
    found = explained(value, 12, samples=100, seed=seed)
    empty = value(torch.zeros(1, 12))[0]
    assert found.extras["empty_value"] == empty
    change = value(torch.ones(1, 12))[0] - empty
    assert found.scores.sum() == pytest.approx(float(change), abs=1e-10)


def test_a_sum_needs_few_samples():
    weights = torch.linspace(-2, 3, 12, dtype=torch.float64)
    found = explained(lambda z: z.double() @ weights + 0.5, 12, samples=80)
    torch.testing.assert_close(found.scores, weights, rtol=1e-10, atol=1e-10)
    assert found.extras["standard_error"].abs().max() < 1e-10


@pytest.mark.parametrize("players", [7, 12])
def test_samples_are_fitted_under_the_constraint(players):
    """The literal problem: least squares over all drawn coalitions, with a Lagrange multiplier."""
    value, samples = game(players), 80
    found = explained(value, players, samples=samples, seed=3)
    box = box_of(value, players)
    target = Target("yes", "log_odds")
    batch = box.encode([" ".join(WORDS[:players])], target)
    case = Case(box, batch, target, seed=3, spec=METHODS["kernel_shap"])
    pairs = _pairs(players, samples, case.generators[0])
    z = torch.cat([pairs.z, ~pairs.z]).double()
    empty, whole = value(torch.zeros(1, players))[0], value(torch.ones(1, players))[0]
    ones = torch.ones(players, 1, dtype=torch.float64)
    left = torch.cat(
        [
            torch.cat([z.T @ z, ones], dim=1),
            torch.cat([ones.T, torch.zeros(1, 1, dtype=torch.float64)], dim=1),
        ]
    )
    right = torch.cat([z.T @ (value(z) - empty), (whole - empty)[None]])
    expected = torch.linalg.solve(left, right)[:players]
    torch.testing.assert_close(found.scores, expected, rtol=1e-9, atol=1e-9)

    def without(pair):
        rest = [i for i in range(len(z)) if i not in (pair, pair + len(pairs.z))]
        left[:players, :players] = z[rest].T @ z[rest]
        right[:players] = z[rest].T @ (value(z[rest]) - empty)
        return torch.linalg.solve(left, right)[:players]

    again = torch.stack([without(pair) for pair in range(len(pairs.z))])
    jackknife = ((len(again) - 1) * again.var(dim=0, correction=0)).sqrt()
    torch.testing.assert_close(found.extras["standard_error"], jackknife, rtol=1e-7, atol=1e-9)


def test_sizes_come_from_the_kernel():
    """Each size as often as 1 / (k (n - k)), each player in half of all coalitions of a pair."""
    generator = torch.Generator().manual_seed(0)
    z = _pairs(9, 508, generator).z
    for _ in range(60):
        z = torch.cat([z, _pairs(9, 508, generator).z])
    k = torch.arange(1, 9)
    chance = 1 / (k * (9 - k)).double()
    counts = torch.bincount(z.sum(dim=1), minlength=10)[1:9]
    expected = len(z) * chance / chance.sum()
    assert ((counts - expected) ** 2 / expected).sum() < 24.3  # 0.1 % of chi-squared with 7
    assert (z.double().mean(dim=0) - 0.5).abs().max() < 4 * (0.25 / len(z)) ** 0.5 + 0.01


def test_errors_fall_with_the_root_of_the_samples_and_are_told():
    value = game(12, seed=1)
    truth, seeds = shapley(value, 12), 24
    mean_square, ratios = [], []
    for samples in (128, 512, 2048):
        found = [explained(value, 12, samples=samples, seed=seed) for seed in range(seeds)]
        away = torch.stack([one.scores - truth for one in found])
        told = torch.stack([one.extras["standard_error"] for one in found])
        mean_square.append(float(away.square().mean()))
        ratios.append(float((away / told).square().mean()))
    order = np.polyfit(np.log([128, 512, 2048]), np.log(mean_square) / 2, 1)[0]
    assert order == pytest.approx(-0.5, abs=0.1)
    assert ratios == pytest.approx([1, 1, 1], abs=0.3)


# ---- models --------------------------------------------------------------------------------------


def brute_force(case, owner):
    """Shapley values of groups of tokens of the first input (n), by dropping them."""
    players = int(owner.max()) + 1

    def value(z):
        keep = torch.where(owner >= 0, z[:, owner.clamp(min=0)], True)
        return case.drop(keep[None])[0]

    return shapley(value, players)


def case_of(model, raw):
    target = Target.predicted("log_odds")
    return Case(model, model.encode([raw], target), target, batch_size=64)


@pytest.mark.parametrize("family", ["bert", "roberta", "gpt2", "llama-lm", "bert-mlm"])
def test_tokens_of_a_text(family):
    model = build(family, dtype=torch.float64)
    text = "a [MASK] film" if family == "bert-mlm" else "a fine film"
    case = case_of(model, text)
    owner = torch.where(case.content[0], case.content[0].cumsum(0) - 1, -1)
    found = pellucid.explain(model, text, method="kernel_shap")
    expected = brute_force(case, owner)[owner.clamp(min=0)].where(owner >= 0, torch.zeros(()))
    torch.testing.assert_close(found.scores, expected.double(), rtol=1e-8, atol=1e-8)
    assert found.explains.startswith("log-odds")


def test_words_and_all_words_of_a_type():
    """'unfinely' is three tokens; 'film' stands there twice."""
    model = build("bert", dtype=torch.float64)
    text = "the film unfinely film"
    case = case_of(model, text)
    for unit, groups in (
        ("token", [-1, 0, 1, 2, 3, 4, 5, -1]),
        ("word", [-1, 0, 1, 2, 2, 2, 3, -1]),
        ("type", [-1, 0, 1, 2, 2, 2, 1, -1]),
    ):
        owner = torch.tensor(groups)
        found = pellucid.explain(model, text, method="kernel_shap", unit=unit)
        expected = brute_force(case, owner)
        for player, worth in enumerate(expected):
            own = found.scores[owner == player]
            torch.testing.assert_close(own.sum(), worth, rtol=1e-8, atol=1e-8)
            assert own.max() - own.min() < 1e-12


@pytest.mark.parametrize("by", ["mask", "unk", "pad"])
def test_tokens_can_be_replaced(by):
    model = build("bert", dtype=torch.float64)
    found = pellucid.explain(model, "a fine film", method="kernel_shap", by=by)
    case = case_of(model, "a fine film")
    empty = case.drop(torch.zeros_like(case.mask), by)
    assert found.extras["empty_value"] == pytest.approx(float(empty), abs=1e-9)


def test_patches_of_an_image_are_left_out():
    model = build("vit", dtype=torch.float64, image_size=16)
    image = sample_inputs(model)[0]
    case = case_of(model, image)
    found = pellucid.explain(model, image, method="kernel_shap")
    expected = brute_force(case, torch.arange(-1, 4))
    torch.testing.assert_close(found.scores[1:], expected, rtol=1e-7, atol=1e-7)
    assert found.scores[0] == 0


@pytest.mark.parametrize("family", ["swin", "dinov2"])
def test_pieces_of_an_image_are_painted_over(family):
    """Where patches cannot be left out, or not all of them."""
    model = build(family, dtype=torch.float64)
    image = sample_inputs(model)[0]
    case = case_of(model, image)
    height, width = case.pixels.shape[2:]
    piece = (torch.arange(height) >= height / 2)[:, None] * 2 + (torch.arange(width) >= width / 2)

    def value(z):
        pixels = case.pixels * z[:, piece][:, None]
        rows = torch.zeros(len(z), dtype=torch.long)
        return case.score_of(model.with_pixels(case.batch.take(rows), pixels), rows)

    found = pellucid.explain(model, image, method="kernel_shap", cells=2)
    expected = shapley(value, 4)
    for player in range(4):
        own = found.scores[piece == player]
        assert own.sum() == pytest.approx(float(expected[player]), abs=1e-6)
        assert own.max() - own.min() < 1e-12


def test_images_of_a_black_box():
    box = pellucid.blackbox(
        lambda images: [[0.0, float(i[:4, :6].mean()) / 25] for i in images],
        kind="image",
        labels=["dark", "light"],
        size=(8, 12),
    )
    image = np.full((8, 12, 3), 255, np.uint8)
    found = pellucid.explain(box, image, method="kernel_shap", cells=2, target="light")
    assert found.scores[:4, :6].sum() == pytest.approx(255 / 25)
    assert found.scores[4:].abs().max() < 1e-12
    assert found.scores[:, 6:].abs().max() < 1e-12


def test_the_sum_is_there_for_a_continuation():
    model = build("gpt2-lm", dtype=torch.float64)
    target = Target.continuation(" film")
    found = pellucid.explain(model, "the", method="kernel_shap", target=target)
    total = found.value - float(found.extras["empty_value"])
    assert found.scores.sum() == pytest.approx(total, abs=1e-9)


def test_extras_have_one_error_a_token():
    model = build("bert")
    batch = pellucid.explain(
        model, sample_inputs(model), method="kernel_shap", unit="word", samples=40
    )
    for one in batch:
        assert one.extras["standard_error"].shape == one.scores.shape


# ---- bad input -----------------------------------------------------------------------------------


def test_one_word_has_all_of_the_change():
    found = explained(lambda z: 2.5 * z[:, 0].double() + 1, 1)
    assert found.scores.tolist() == [2.5]
    assert found.provenance.forwards == 2


def test_the_same_word_again_is_another_player():
    box = pellucid.blackbox(
        lambda texts: [[0.0, min(text.split().count("good"), 2)] for text in texts],
        kind="text",
        labels=["no", "yes"],
        gives="logits",
    )
    found = pellucid.explain(box, "good good good", method="kernel_shap", target="yes")
    torch.testing.assert_close(found.scores, torch.full((3,), 2 / 3, dtype=torch.float64))
    one = pellucid.explain(box, "good good good", method="kernel_shap", target="yes", unit="type")
    assert one.provenance.forwards == 2
    torch.testing.assert_close(one.scores, found.scores)


@pytest.mark.parametrize("samples", [1, 12, 24, 26])
def test_too_few_samples_are_told_before_any_is_asked(samples):
    asked = []

    def value(z):
        asked.append(len(z))
        return z.double().sum(dim=1)

    with pytest.raises(
        ArgumentError, match=rf"more than {max(samples, 24)}, such as 2072"
    ) as caught:
        explained(value, 12, samples=samples)
    assert "samples=2072" in str(caught.value)
    assert asked == []


def test_answers_that_are_not_finite():
    def value(z):
        return torch.where(z[:, 0], z.double().sum(dim=1), torch.nan)

    with pytest.raises(NumericalError):
        explained(value, 5)
