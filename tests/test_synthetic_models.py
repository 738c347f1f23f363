"""Models trained on the spot: they learn, they are the same again, and they leave no trace."""

from __future__ import annotations

import os
import random

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import pellucid
from pellucid import ArgumentError, InputError, ModelError
from pellucid.surrogates import Linear, Slalom
from pellucid.synthetic import (
    asking,
    linear_data,
    linear_truth,
    planted,
    slalom_data,
    slalom_truth,
    train,
    train_reviews,
)
from pellucid.synthetic.shapes import SHAPES
from pellucid.synthetic.training import _share

SMALL = {"width": 24, "heads": 4, "epochs": 1, "progress": False}
FEW = linear_data(200)
PRAISE = [f"a {word} film , really {word}" for word in ("good", "great", "fine", "lovely")] * 6
BLAME = [f"a {word} film , really {word}" for word in ("bad", "poor", "dull", "awful")] * 6
REVIEWS, LABELS = PRAISE + BLAME, [1] * 24 + [0] * 24


def weights(model):
    return [weight.clone() for weight in model.module.state_dict().values()]


def same(one, other):
    return all(torch.equal(a, b) for a, b in zip(weights(one), weights(other), strict=True))


# ---- training ------------------------------------------------------------------------------------


def test_a_tiny_model_learns_slalom_data():
    """Within 0.01 nats of the least cross-entropy there is, that of the truth itself."""
    truth = slalom_truth({f"w{i}": (i - 2.5) / 3 for i in range(6)})
    options = {"truth": truth, "preset": "released"}
    data, fresh = slalom_data(12_000, 6, 0, **options), slalom_data(4000, 6, 1, **options)
    model = train("distilbert", 1, data=data, **SMALL | {"width": 32}, batch=50, lr=2e-3)
    labels = fresh.labels.double()
    found = F.binary_cross_entropy_with_logits(asking(model)(fresh.sequences), labels)
    least = F.binary_cross_entropy_with_logits(fresh.log_odds, labels)
    constant = F.binary_cross_entropy_with_logits(torch.zeros(len(fresh)).double(), labels)
    assert float(constant - least) > 0.1, "there is something to learn"
    assert float(found - least) < 0.01


def test_a_fully_connected_model_learns_a_sum_where_a_transformer_does_not():
    data = linear_data(12_000)
    options = SMALL | {"batch": 100, "lr": 4e-3}
    reference = asking(train("fc", 2, data=data, **options | {"width": 100}))
    transformer = asking(train("gpt2", 1, data=data, **options))
    once, often = ("perfect",), ("perfect",) * 8
    assert float(reference([often]) - reference([once])) > 5  # 10.5 for the truth
    assert abs(float(transformer([often]) - transformer([once]))) < 1


def test_nothing_is_learnt_from_shuffled_labels():
    data = linear_data(4000).shuffled()
    model = train("fc", 2, data=data, **SMALL | {"width": 50}, batch=100)
    assert float(asking(model)(FEW.sequences).std()) < 0.5  # 2.4 for the truth


@pytest.mark.parametrize("shape", SHAPES)
def test_a_seed_trains_the_same_model_and_leaves_no_trace(shape):
    def state():
        return torch.get_rng_state().tolist(), random.getstate(), np.random.get_state()[1].tolist()

    before, environment, gradients = state(), dict(os.environ), torch.is_grad_enabled()
    one = train(shape, 1, data=FEW, **SMALL)
    torch.rand(3)
    again, other = train(shape, 1, data=FEW, **SMALL), train(shape, 1, data=FEW, **SMALL, seed=1)
    torch.set_rng_state(torch.tensor(before[0], dtype=torch.uint8))
    assert state() == before
    assert dict(os.environ) == environment
    assert torch.is_grad_enabled() == gradients
    assert same(one, again)
    assert not same(one, other)


@pytest.mark.parametrize("shape", SHAPES)
def test_what_was_trained_can_be_explained(shape):
    model = train(shape, 1, data=FEW, **SMALL)
    found = pellucid.explain(model, "perfect movie worst", target="positive")
    words = [one.text for one in found.segments if one.role == "content"]
    assert words == ["perfect", "movie", "worst"]
    begins = "[CLS]" if shape in ("bert", "distilbert") else "perfect"
    assert found.segments[0].text == begins
    log_odds = float(asking(model)([words]))
    assert found.prediction["positive"] == pytest.approx(1 / (1 + np.exp(-log_odds)), abs=1e-6)
    assert torch.isfinite(found.scores).all()
    assert found.scores.any()


def test_progress_is_told():
    told = []
    train("fc", 1, data=FEW, **SMALL | {"progress": lambda done, all_: told.append((done, all_))})
    assert told == [(step, 10) for step in range(1, 11)]


def test_the_rate_rises_for_a_tenth_of_the_steps_and_falls_to_zero():
    shares = [_share(step, 100) for step in range(101)]
    assert shares[:10] == pytest.approx([(step + 1) / 10 for step in range(10)])
    assert shares[10:] == pytest.approx([(100 - step) / 90 for step in range(10, 101)])
    assert _share(0, 1) == 1  # one step is taken at the whole rate


@pytest.mark.parametrize("around", [torch.no_grad, torch.inference_mode])
def test_training_needs_no_gradients_around_it(around):
    with around():
        inside = train("fc", 1, data=FEW, **SMALL)
    assert same(inside, train("fc", 1, data=FEW, **SMALL))


def test_no_epoch_is_an_untrained_model():
    assert not same(
        train("fc", 1, data=FEW, **SMALL | {"epochs": 0}), train("fc", 1, data=FEW, **SMALL)
    )


# ---- asking --------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_answers_depend_on_neither_batches_nor_padding(shape):
    model = train(shape, 1, data=FEW, **SMALL)
    alone = torch.cat([asking(model)([words]) for words in FEW.sequences[:20]])
    together = asking(model, batch_size=7)(FEW.sequences[:20])
    assert together.dtype == torch.float64
    torch.testing.assert_close(together, alone, rtol=0, atol=2e-5)
    assert asking(model)([]).shape == (0,)


@pytest.mark.parametrize(
    ("words", "told"),
    [(("perfect", "sublime"), "sublime"), (("we",) * 40, "40 tokens"), ((), "0 tokens")],
)
def test_words_that_the_model_does_not_know_are_refused(words, told):
    model = train("gpt2", 1, data=FEW, **SMALL)
    with pytest.raises(InputError, match=told):
        asking(model)([("we",), words])


def test_log_odds_are_those_of_two_classes(tiny):
    with pytest.raises(ModelError, match="3 classes"):
        asking(tiny("bert"))


# ---- planted truths ------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [FEW, slalom_data(200)], ids=["sum", "slalom"])
def test_a_planted_model_is_its_truth(data):
    found = asking(planted(data.truth))(data.sequences)
    torch.testing.assert_close(found, data.log_odds, rtol=0, atol=1e-12)


def test_a_planted_sum_is_explained_by_its_weights():
    text = "perfect movie worst good"
    for method in ("gradient_x_input", "integrated_gradients", "occlusion", "kernel_shap"):
        target = pellucid.Target.log_odds("positive")
        found = pellucid.explain(planted(linear_truth()), text, method=method, target=target)
        assert found.scores.tolist() == pytest.approx([1.5, 0, -1.5, 0.6], abs=1e-6), method


def test_a_planted_slalom_is_recovered_from_its_answers():
    truth = slalom_data(1, 16).truth
    found = Slalom.recover(asking(planted(truth)), truth.units)
    torch.testing.assert_close(found.value, truth.value, rtol=0, atol=1e-12)
    centred = truth.importance - truth.importance.mean()
    torch.testing.assert_close(found.importance, centred, rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    ("truth", "told"),
    [
        (3, "truth: int"),
        (Linear(("a",), torch.zeros(1, 2), torch.zeros(2)), "several classes"),
        (Slalom(("a", "b"), torch.zeros(2), torch.zeros(2), special=("b",)), "special members"),
    ],
)
def test_functions_that_cannot_be_planted_are_refused(truth, told):
    with pytest.raises(ArgumentError, match=told):
        planted(truth)


# ---- reviews -------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_reviews_are_learnt_with_a_tokenizer_of_their_own(shape):
    options = SMALL | {"epochs": 12, "batch": 8, "lr": 5e-3, "vocabulary": 400, "longest": 32}
    model = train_reviews(REVIEWS, LABELS, shape, 1, **options)
    found = asking(model)([text.split() for text in REVIEWS])
    assert ((found > 0).long() == torch.tensor(LABELS)).double().mean() > 0.95
    assert same(model, train_reviews(REVIEWS, LABELS, shape, 1, **options))
    one = pellucid.explain(model, "A GOOD film", method="gradient_x_input")
    read = "".join(s.text for s in one.segments if s.role == "content")
    assert read.replace(" ", "") == "AGOODfilm"


@pytest.mark.parametrize(
    ("texts", "labels"),
    [(REVIEWS, LABELS[:-1]), ([], []), (["good", "bad"], [1, 2]), (["good", " "], [1, 0])],
)
def test_reviews_without_their_labels_are_refused(texts, labels):
    with pytest.raises(InputError):
        train_reviews(texts, labels, vocabulary=400)


# ---- arguments -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"data": ["the good film"]}, "data: list"),
        ({"shape": "roberta"}, "unknown shape 'roberta'"),
        ({"width": 50, "heads": 12}, "width=48"),
        ({"layers": 0}, "layers=0"),
        ({"lr": 0}, "a rate above zero"),
        ({"batch": 0}, "batch=0"),
        ({"epochs": -1}, "epochs=-1"),
        ({"seed": -1}, "seed=-1"),
        ({"device": "xpu:7"}, "device='xpu:7'"),
        ({"device": "gpu"}, "device='gpu'"),
    ],
)
def test_arguments_that_train_nothing_are_refused(changes, told):
    with pytest.raises(ArgumentError, match=told):
        train(**{"data": FEW, **SMALL, **changes})


def test_a_rate_that_diverges_is_told():
    with pytest.raises(pellucid.NumericalError, match="not finite"):
        train("fc", 2, data=FEW, **SMALL | {"lr": 1e30})
