"""Sequences of words against their distributions, and their log-odds against slow formulas."""

from __future__ import annotations

import math

import pytest
import torch

from pellucid import ArgumentError
from pellucid.surrogates import Slalom
from pellucid.synthetic import linear_data, linear_truth, slalom_data, slalom_truth
from pellucid.synthetic.linear import TABLES

N = 20_000


def near(values, expected, errors=4.0):
    """Whether a mean is what is expected, within four standard errors."""
    values = torch.as_tensor(values, dtype=torch.float64)
    return abs(float(values.mean()) - expected) <= errors * float(values.std()) / len(values) ** 0.5


# ---- sums ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", TABLES)
def test_linear_data_has_the_distribution_of_its_table(preset):
    data, table = linear_data(N, seed=1, preset=preset), TABLES[preset]
    assert sum(word.probability for word in table.values()) == pytest.approx(1)
    lengths = data.lengths.double()
    assert near(lengths, 15)
    assert near((lengths - 15) ** 2, 7.5)
    assert int(lengths.min()) >= 1
    assert int(lengths.max()) <= 30
    for number, (word, row) in enumerate(table.items()):
        assert data.vocabulary[number] == word
        # A word's share of a sequence has its probability as its mean, whatever the length.
        assert near((data.ids == number).sum(dim=1) / lengths, row.probability)
    square = sum(word.probability * word.weight**2 for word in table.values())
    assert near(data.log_odds, 0)
    assert near(data.log_odds**2, 15 * square)


def test_words_of_linear_data_do_not_depend_on_those_before():
    data = linear_data(N, seed=2)
    long = data.ids[data.lengths >= 2]
    assert near((long[:, 0] == 0) & (long[:, 1] == 0), 1 / 36)
    assert near((long[:, 0] == 6) & (long[:, 1] == 9), 1 / 400)


def test_log_odds_of_linear_data_are_sums_of_weights():
    data = linear_data(50, seed=3)
    weight = {word: row.weight for word, row in TABLES["paper"].items()}
    slow = [sum(weight[word] for word in text.split()) for text in data.texts]
    assert data.log_odds.tolist() == pytest.approx(slow, abs=1e-12)
    assert linear_truth().predict([("perfect",) * 20]).item() == pytest.approx(30)


def test_the_released_table_has_its_own_words_and_weights():
    paper, released = TABLES["paper"], TABLES["released"]
    assert set(paper) - set(released) == {"bad"}
    assert set(released) - set(paper) == {"poor"}
    assert (released["good"].weight, released["ok"].weight) == (0.7, -0.7)


@pytest.mark.parametrize("data", [linear_data(N, seed=4), slalom_data(N, seed=4)])
def test_labels_are_drawn_with_the_probability_that_the_truth_says(data):
    surprise = data.labels - data.log_odds.sigmoid()
    assert near(surprise, 0)
    assert near(surprise * data.log_odds, 0)
    variance = (data.log_odds.sigmoid() * (-data.log_odds).sigmoid()).mean().item()
    assert near(surprise**2, variance)


# ---- softmax-weighted means ----------------------------------------------------------------------


def test_slalom_data_has_uniform_lengths_and_words():
    data = slalom_data(N, 64, seed=1)
    lengths = data.lengths.double()
    assert near(lengths, 15.5)
    assert near((lengths - 15.5) ** 2, (30**2 - 1) / 12)
    assert (int(lengths.min()), int(lengths.max())) == (1, 30)
    for number in (0, 31, 63):
        assert near((data.ids == number).sum(dim=1) / lengths, 1 / 64)
    short = slalom_data(N, 64, preset="released").lengths.double()
    assert near(short, 4.5)
    assert (int(short.min()), int(short.max())) == (1, 8)


def test_log_odds_of_slalom_data_are_softmax_weighted_means():
    data = slalom_data(50, 40, seed=3)
    value = dict(zip(data.truth.units, data.truth.value.tolist(), strict=True))
    score = dict(zip(data.truth.units, data.truth.importance.tolist(), strict=True))
    for words, found in zip(data.sequences, data.log_odds.tolist(), strict=True):
        weights = [math.exp(score[word]) for word in words]
        slow = sum(w * value[word] for w, word in zip(weights, words, strict=True)) / sum(weights)
        assert found == pytest.approx(slow, abs=1e-10)


def test_fewer_words_keep_their_values_and_importances():
    truth = slalom_truth()
    few = slalom_data(10, 16).truth
    assert few.units == truth.units[:16]
    assert torch.equal(few.value, truth.value[:16])
    assert torch.equal(few.importance, truth.importance[:16])


def test_importances_follow_the_size_of_values():
    """Equation 81: on |v|^(3/2) a slope of 5, with a noise of 1/2, and a mean of zero."""
    scores = {f"w{i}": (i - 1000) / 1000 for i in range(2001)}
    truth = slalom_truth(scores, seed=5)
    assert truth.value.tolist() == pytest.approx([2 * one for one in scores.values()])
    assert float(truth.importance.mean()) == pytest.approx(0, abs=1e-12)
    rest = truth.importance - 5 * truth.value.abs() ** 1.5
    rest = rest - rest.mean()
    assert near(rest**2, 0.25)
    steps = truth.value.abs() ** 1.5
    steps = steps - steps.mean()
    slope = float(rest @ steps / (steps @ steps))
    assert abs(slope) <= 4 * 0.5 / float(steps @ steps) ** 0.5


def test_values_without_scores_are_within_two_and_of_both_signs():
    value = slalom_truth().value
    assert len(value) == 200
    assert float(value.abs().max()) <= 2
    assert 70 <= int((value > 0).sum()) <= 130  # 100 +- 4 standard errors


# ---- seeds and controls --------------------------------------------------------------------------


@pytest.mark.parametrize("make", [linear_data, lambda n, seed: slalom_data(n, 64, seed)])
def test_a_seed_decides_everything_and_nothing_else_is_touched(make):
    before = torch.get_rng_state()
    one, again, other = make(100, 7), make(100, 7), make(100, 8)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(one.ids, again.ids)
    assert torch.equal(one.labels, again.labels)
    assert one.texts != other.texts


def test_shuffled_labels_are_the_same_labels_and_tell_nothing():
    data = linear_data(N, seed=1)
    control = data.shuffled(3)
    assert torch.equal(control.ids, data.ids)
    assert int(control.labels.sum()) == int(data.labels.sum())
    assert torch.equal(control.labels, data.shuffled(3).labels)
    centred = control.labels - control.labels.double().mean()
    assert near(centred * control.log_odds, 0)
    assert not near((data.labels - 0.5) * data.log_odds, 0)


# ---- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: linear_data(0), "n=0"),
        (lambda: linear_data(10, preset="published"), "unknown preset"),
        (lambda: slalom_data(10, 201), "vocabulary=201 of 200 words"),
        (lambda: slalom_data(10, preset="short"), "unknown preset"),
        (lambda: slalom_truth({}), "no word"),
        (lambda: slalom_truth({"a": math.nan}), "scores\\['a'\\]"),
        (lambda: slalom_data(10, 1, truth=spaced("not good")), "'not good'"),
        (lambda: slalom_data(10, 1, truth=spaced("[CLS]")), "CLS"),
    ],
)
def test_what_cannot_be_drawn_is_refused(make, told):
    with pytest.raises(ArgumentError, match=told):
        make()


def spaced(word):
    return Slalom((word,), torch.zeros(1), torch.zeros(1))
