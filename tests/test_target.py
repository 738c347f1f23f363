"""What is explained: closed forms of every quantity and of its gradient."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import pellucid
from pellucid import ArgumentError, Target
from pellucid._case import Case
from pellucid._target import Objective
from pellucid.testing.tiny import build, sample_inputs

LOGITS = torch.tensor([[[1.0, 2.0, -0.5]]], dtype=torch.float64)  # b k c
P = LOGITS[0, 0].softmax(0)


def value_of(target, logits=LOGITS, label=1, against=None, independent=False):
    classes = torch.full(logits.shape[:2], label)
    return Objective(target, classes, against, independent).of_rows(logits)


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (Target.logit(1), 2.0),
        (Target.probability(1), float(P[1])),
        (Target.log_probability(1), float(P[1].log())),
        (Target.log_odds(1), float((P[1] / (1 - P[1])).log())),
        (Target.predicted(), 2.0),
    ],
)
def test_quantities(target, expected):
    assert value_of(target).item() == pytest.approx(expected, rel=1e-12)


def test_log_odds_against_one_class():
    assert value_of(Target.log_odds(1, against=2), against=2).item() == pytest.approx(2.5)


def test_independent_classes_have_a_sigmoid_each():
    found = value_of(Target.probability(1), independent=True)
    assert found.item() == pytest.approx(1 / (1 + math.exp(-2.0)))


@pytest.mark.parametrize("gap", [0.0, 5.0, 40.0, 200.0])
def test_probability_gradient_keeps_its_digits_where_the_model_is_certain(gap):
    logits = torch.tensor([[[gap, 0.0]]], dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(value_of(Target.probability(0), logits, 0).sum(), logits)
    exact = math.exp(-gap) / (1 + math.exp(-gap)) ** 2  # p (1 - p)
    assert gradient[0, 0, 0].item() == pytest.approx(exact, rel=1e-12, abs=0)
    assert gradient[0, 0, 1].item() == pytest.approx(-exact, rel=1e-12, abs=0)


def test_gradient_of_a_probability_is_p_times_delta_minus_p():
    logits = LOGITS.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(value_of(Target.probability(1), logits).sum(), logits)
    expected = P[1] * (torch.eye(3, dtype=torch.float64)[1] - P)
    torch.testing.assert_close(gradient[0, 0], expected)


def test_a_continuation_sums_its_log_probabilities():
    rows = torch.randn(1, 2, 5, generator=torch.Generator().manual_seed(0)).double()
    found = Objective(Target.continuation("x"), torch.tensor([[3, 1]])).of_rows(rows)
    expected = rows[0, 0].log_softmax(0)[3] + rows[0, 1].log_softmax(0)[1]
    assert found.item() == pytest.approx(expected.item())


def test_the_predicted_class_is_decided_once():
    adapter = build("vit", dtype=torch.float64)
    target = Target.predicted()
    case = Case(adapter, adapter.encode(sample_inputs(adapter), target), target)
    x = case.input()
    far = case.score_from(-3 * x)  # another input, where the model may predict another class
    rows = case.adapter.rows(case.adapter.output_from(case.batch, "input", -3 * x), case.batch)
    classes = case.rows.argmax(-1)
    torch.testing.assert_close(far, rows.gather(-1, classes[..., None])[:, 0, 0])


def test_numbers_and_names_mean_classes():
    model = pellucid.load("pellucid/reviews-bert")
    named = pellucid.explain(model, "a fine film", target="negative")
    numbered = pellucid.explain(model, "a fine film", target=0)
    assert (named.label, named.index) == ("negative", 0)
    assert torch.equal(named.scores, numbered.scores)
    assert not torch.equal(named.scores, pellucid.explain(model, "a fine film").scores)


def test_multilabel_models_use_sigmoids():
    model = build("bert", problem_type="multi_label_classification")
    found = pellucid.explain(model, "a fine film", target=Target.probability(2))
    assert found.value == pytest.approx(torch.sigmoid(found.logits[2]).item(), rel=1e-5)
    assert sum(found.prediction.values()) != pytest.approx(1.0)


@pytest.mark.parametrize("changes", [{"num_labels": 1}, {"problem_type": "regression"}])
def test_a_regression_explains_its_value(changes):
    model = build("bert", **changes)
    found = pellucid.explain(model, "a fine film")
    assert found.unit == "value"
    assert found.value == pytest.approx(found.prediction["value"])
    with pytest.raises(ArgumentError, match="predicts a value"):
        pellucid.explain(model, "a fine film", target=Target.probability())


def test_any_function_of_the_output():
    model = build("bert", dtype=torch.float64)
    texts = sample_inputs(model)
    by_function = pellucid.explain(model, texts, target=lambda output: output.logits[:, 2])
    by_class = pellucid.explain(model, texts, target=2)
    for one, other in zip(by_function, by_class, strict=True):
        torch.testing.assert_close(one.scores, other.scores)
        assert one.unit == "value"


def test_tagging_and_question_answering_are_explained_by_functions():
    from transformers import BertConfig, BertForQuestionAnswering, BertForTokenClassification

    from pellucid.testing.tiny import VOCABULARY, word_piece

    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = BertConfig(vocab_size=VOCABULARY, intermediate_size=48, num_labels=3, **sizes)
    tagger = pellucid.adapt(BertForTokenClassification(config).eval(), word_piece())
    found = pellucid.explain(tagger, "the film is fine", target=lambda o: o.logits[:, 2, 1])
    assert len(found.scores) == 6
    with pytest.raises(ArgumentError, match=r"target=lambda output"):
        pellucid.explain(tagger, "the film is fine")
    config.num_labels = 2
    reader = pellucid.adapt(BertForQuestionAnswering(config).eval(), word_piece())
    pair = ("is it good ?", "the film is very good")
    start = pellucid.explain(reader, pair, method="rollout", target=lambda o: o.start_logits[:, 7])
    assert {segment.part for segment in start.segments} == {0, 1}


@pytest.mark.parametrize("family", ["gpt2-lm", "llama-lm"])
def test_the_next_token(family):
    model = build(family, dtype=torch.float64)
    predicted = pellucid.explain(model, "the film is")
    assert predicted.unit == "token"
    again = pellucid.explain(model, "the film is", target=predicted.index)
    torch.testing.assert_close(again.scores, predicted.scores)


def test_words_at_a_mask():
    model = pellucid.load("pellucid/reviews-mlm")
    text = "The film was [MASK] and the plot was [MASK]."
    first = pellucid.explain(model, text, target=Target.at_mask("great"))
    second = pellucid.explain(model, text, target=Target.at_mask("great", mask=1))
    assert first.label == second.label == "great"
    assert first.value != second.value


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (Target("positive", "odds"), "unknown quantity"),
        (Target("positive", "logit", "negative"), "only log-odds"),
        (3.5, "this cannot be explained"),
        (True, "this cannot be explained"),
        ("postive", "did you mean 'positive'"),
        (7, "no such class"),
        (np.int64(7), "no such class"),
    ],
)
def test_wrong_targets_say_what_to_type(target, words):
    model = pellucid.load("pellucid/reviews-bert")
    with pytest.raises(ArgumentError, match=words) as caught:
        pellucid.explain(model, "a fine film", target=target)
    assert "instead:" in str(caught.value)
