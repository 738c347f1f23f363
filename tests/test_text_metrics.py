"""The metrics of texts against closed forms, literal slow versions, and models that are known."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

import pellucid
from pellucid import ArgumentError, Target
from pellucid._marks import read_marks
from pellucid._words import spaced_words, word_scores, words_of_tokens
from pellucid.metrics._predicting import predicted_change
from pellucid.surrogates import NaiveBayes, Slalom
from pellucid.testing.tiny import build

TEN = "zero one two three four five six seven eight nine"
WORDS = TEN.split()
LOG_ODDS = Target.log_odds("seen")
KEPT = ("text_deletion", "text_insertion", "comprehensiveness", "sufficiency")
PERCENT = "percent:[1,5,10,20,50]"


def box(log_odds):
    """A black box on words; the log-odds of its first class are `log_odds(words)`."""

    def function(texts):
        return np.stack([[log_odds(text.split()), 0.0] for text in texts])

    return pellucid.blackbox(function, kind="text", labels=["seen", "not"], gives="logits")


def certain(read):
    """A black box whose first class has probability `read(words)`."""

    def log_odds(words):
        p = min(max(float(read(words)), 1e-12), 1 - 1e-12)
        return math.log(p) - math.log1p(-p)

    return box(log_odds)


def explained(model, scores, text=TEN, target=LOG_ODDS, **changes):
    found = pellucid.explain(model, text, method="random", target=target)
    return replace(found, scores=torch.as_tensor(scores, dtype=torch.float64), **changes)


def measured(metric, model, scores, text=TEN, **params):
    return pellucid.measure(model, explained(model, scores, text), metric=metric, **params)


WEIGHTS = torch.tensor([0.3, -1.2, 2.0, 0.1, -0.4, 1.1, -0.7, 0.9, 0.5, -2.1], dtype=torch.float64)
WEIGHT_OF = dict(zip(WORDS, WEIGHTS.tolist(), strict=True))
LINEAR = box(lambda words: sum(WEIGHT_OF.get(word, 0.0) for word in words) - 0.5)
DETECTOR = certain(lambda words: "seven" in words)
FOUND = [float(word == "seven") for word in WORDS]


# ---- what is kept (T2, T3) -----------------------------------------------------------------------


@pytest.mark.parametrize(("metric", "value"), [("text_insertion", 0.75), ("text_deletion", 0.75)])
def test_a_constant_model(metric, value):
    model = certain(lambda words: 0.25)
    assert measured(metric, model, torch.arange(10.0)).value == pytest.approx(value)
    clean = measured(metric, model, torch.arange(10.0), reference="clean").value
    assert clean == pytest.approx(0.0, abs=1e-12)


def test_insertion_and_deletion_of_a_detector():
    """The word is among the five highest, and in the lowest only when all ten are kept."""
    insertion = measured("text_insertion", DETECTOR, FOUND)
    assert insertion.value == pytest.approx(0.0, abs=1e-9)
    assert insertion.better == "lower"
    assert measured("text_deletion", DETECTOR, FOUND).value == pytest.approx(0.5)
    turned = [-score for score in FOUND]
    assert measured("text_insertion", DETECTOR, turned).value == pytest.approx(0.5)
    assert measured("text_deletion", DETECTOR, turned).value == pytest.approx(0.0, abs=1e-9)


def test_turning_the_order_swaps_insertion_and_deletion():
    scores = WEIGHTS
    insertion = measured("text_insertion", LINEAR, scores).curve
    deletion = measured("text_deletion", LINEAR, -scores).curve
    assert insertion == pytest.approx(deletion)


@pytest.mark.parametrize("metric", KEPT)
def test_only_the_order_counts(metric):
    one, other = (measured(metric, LINEAR, s).value for s in (WEIGHTS, WEIGHTS.exp() * 3))
    assert one == other


def test_eraser_on_a_detector():
    """One of ten tokens decides: gone, or there, from the first level on."""
    comprehensive = measured("comprehensiveness", DETECTOR, FOUND)
    assert comprehensive.value == pytest.approx(1.0)
    assert comprehensive.curve == pytest.approx([0.0] * 5, abs=1e-9)
    assert measured("sufficiency", DETECTOR, FOUND).value == pytest.approx(0.0, abs=1e-9)
    turned = [-score for score in FOUND]
    assert measured("comprehensiveness", DETECTOR, turned).value == pytest.approx(0.0, abs=1e-9)
    assert measured("sufficiency", DETECTOR, turned).value == pytest.approx(1.0)


def test_three_definitions_of_aopc_are_linked():
    """On one grid ERASER's differs from SLALOM's by 1 - p(t), and from nothing else."""
    clean = torch.sigmoid(WEIGHTS.sum() - 0.5).item()
    for eraser, slalom in (
        ("comprehensiveness", "text_deletion"),
        ("sufficiency", "text_insertion"),
    ):
        one = measured(eraser, LINEAR, WEIGHTS).value
        other = measured(slalom, LINEAR, WEIGHTS, grid=PERCENT).value
        assert other == pytest.approx(1 - clean + one)
        same = measured(slalom, LINEAR, WEIGHTS, grid=PERCENT, reference="clean").value
        assert same == pytest.approx(one)


@pytest.mark.parametrize("many", [2, 3, 7, 40])
def test_eraser_as_its_paper_writes_it(many):
    """Top ceil(k n) tokens out, or alone in, for each k, in a loop."""
    text = " ".join(f"w{i}" for i in range(many))
    weights = dict(zip(text.split(), torch.linspace(-1, 2, many).tolist(), strict=True))
    model = box(lambda words: sum(weights[word] for word in words))
    scores = torch.randperm(many, generator=torch.Generator().manual_seed(many)).double()

    def p(words):
        return 1 / (1 + math.exp(-sum(weights[word] for word in words)))

    order = [text.split()[i] for i in (-scores).argsort().tolist()]
    whole = p(order)
    tops = [max(1, math.ceil(k * many / 100)) for k in (1, 5, 10, 20, 50)]
    without = np.mean([whole - p(order[top:]) for top in tops])
    alone = np.mean([whole - p(order[:top]) for top in tops])
    assert measured("comprehensiveness", model, scores, text).value == pytest.approx(without)
    assert measured("sufficiency", model, scores, text).value == pytest.approx(alone)


def test_equal_sets_are_evaluated_once():
    """Of ten tokens 1, 5 and 10 % are the same one: three sets, and the text itself."""
    assert measured("comprehensiveness", LINEAR, WEIGHTS).evaluations == 4
    assert measured("text_insertion", LINEAR, WEIGHTS).evaluations == 2  # of 5, and of all


def test_kept_words_stay_in_their_order():
    seen = []
    model = certain(lambda words: seen.append(words) or 0.5)
    measured("text_insertion", model, -torch.arange(10.0))
    assert WORDS[:5] in seen


@pytest.mark.parametrize("metric", KEPT)
def test_a_batch_is_its_members(metric):
    model = build("bert", dtype=torch.float64)
    texts = [
        "the film is not very good at all",
        "a fine film of a great actor , it was good",
        "bad",
    ]
    found = pellucid.explain(model, texts, method="gradient_x_input", target=1)
    together = pellucid.measure(model, found, metric=metric, batch_size=7)
    for one, alone in zip(together, found, strict=True):
        again = pellucid.measure(model, alone, metric=metric)
        assert (one.value is None) == (again.value is None)
        assert one.value == pytest.approx(again.value, abs=1e-12)
        assert one.skipped == again.skipped


@pytest.mark.parametrize(
    "grid",
    [
        *("tokens:0", "tokens:-5", "tokens:1.5", "tokens:[1,2]", "tokens", "words:5", "", 5, None),
        *("percent:[]", "percent:[0]", "percent:[101]", "percent:a"),
    ],
)
def test_grids_that_are_none(grid):
    with pytest.raises(ArgumentError, match="no grid of kept tokens") as error:
        measured("text_insertion", LINEAR, WEIGHTS, grid=grid)
    assert repr(grid) in str(error.value)


def test_texts_shorter_than_the_grid_are_skipped_and_others_are_not():
    found = [explained(LINEAR, [1.0, 2.0], "one two"), explained(LINEAR, WEIGHTS)]
    short, long = pellucid.measure(LINEAR, found, metric="text_insertion")
    assert (short.value, short.skipped) == (None, "fewer than 5 tokens")
    assert long.value == measured("text_insertion", LINEAR, WEIGHTS).value


# ---- predictions of removals (T4) ----------------------------------------------------------------


def test_a_sum_predicts_a_linear_model():
    found = measured("removal_fidelity", LINEAR, WEIGHTS, sets=7)
    assert found.value == pytest.approx(0.0, abs=1e-12)
    assert len(found.curve) == 9  # all but one of ten
    assert measured("removal_correlation", LINEAR, WEIGHTS).value == pytest.approx(1.0)
    assert measured("removal_correlation", LINEAR, -WEIGHTS).value == pytest.approx(-1.0)


def test_scores_of_zero_are_wrong_by_the_mean_squared_change():
    """Each token as likely: the first level is the mean squared weight, in the limit."""
    found = measured("removal_fidelity", LINEAR, torch.zeros(10), sets=400, most=1)
    assert found.value == pytest.approx(float(WEIGHTS.square().mean()), rel=0.2)
    assert len(found.curve) == 1


def planted_slalom():
    value = torch.linspace(-2, 3, 10, dtype=torch.float64)
    importance = torch.tensor([0.5, -1, 2, 0, 1, -2, 0.3, 0.7, -0.4, 0.9], dtype=torch.float64)
    slalom = Slalom(tuple(WORDS), value, importance)
    return slalom, box(lambda words: float(slalom.predict([words])[0]))


@pytest.mark.parametrize("shift", [0.0, 5.0])
def test_a_slalom_predicts_itself(shift):
    """Its scores as a sum do not; its importances count up to a constant."""
    slalom, model = planted_slalom()
    extras = {
        "values": slalom.value,
        "importance": slalom.importance + shift,
        "permanent": torch.empty(0),
    }
    found = explained(model, slalom.scores(WORDS), extras=extras)
    exact = pellucid.measure(model, found, metric="removal_fidelity", sets=20)
    assert exact.value < 1e-20
    total = pellucid.measure(model, replace(found, extras={}), metric="removal_fidelity", sets=20)
    assert total.value > 0.01
    assert total.curve[0] < 1e-20  # one at a time is what the scores say
    ordered = pellucid.measure(model, found, metric="removal_correlation")
    assert ordered.value == pytest.approx(1.0)


@pytest.mark.parametrize("permanent", [0, 2])
def test_special_tokens_are_members_where_they_have_weights(permanent, tiny):
    found = pellucid.explain(tiny("bert"), "the film is fine", method="random")
    many = len(found.segments)
    v, s = torch.randn(2, many, generator=torch.Generator().manual_seed(0)).double()
    extras = {"values": v, "importance": s, "permanent": torch.zeros(permanent)}
    keep = torch.ones(1, many, dtype=torch.bool)
    keep[0, [0, 2, -1]] = False  # the first and the last are special
    whole = list(range(many)) if permanent else list(range(1, many - 1))
    members = [i for i in whole if i != 2]
    expected = s[members].softmax(0) @ v[members] - s[whole].softmax(0) @ v[whole]
    predicted = predicted_change(replace(found, extras=extras), keep)
    torch.testing.assert_close(predicted, expected[None])


def test_fidelity_as_the_paper_writes_it():
    """Nested random sets in a loop, on a model that is not linear."""
    model = build("bert", dtype=torch.float64)
    text = "the film is not very good at all"
    (found,) = pellucid.explain(model, [text], method="occlusion", target=Target.log_odds(1))
    measured = pellucid.measure(model, found, metric="removal_fidelity", most=3, sets=5, seed=4)
    from pellucid._case import Case
    from pellucid.metrics import METRICS

    target = Target.log_odds(1)
    case = Case(
        model, model.batch([found.item], target), target, seed=4, spec=METRICS["removal_fidelity"]
    )
    own = [i for i, s in enumerate(found.segments) if s.role == "content"]

    def log_odds(kept):
        ids = torch.tensor([[found.item.rows["input_ids"][i] for i in kept]])
        with torch.no_grad():
            logits = model.module(input_ids=ids).logits[0]
        return float(logits[1] - torch.cat([logits[:1], logits[2:]]).logsumexp(0))

    errors = [[], [], []]
    for draw in range(5):
        order = torch.randperm(len(own), generator=case.generator(0, draw))
        for m in (1, 2, 3):
            gone = {own[i] for i in range(len(own)) if order[i] < m}
            kept = [i for i in range(len(found.segments)) if i not in gone]
            change = log_odds(kept) - log_odds(range(len(found.segments)))
            predicted = -sum(float(found.scores[i]) for i in gone)
            errors[m - 1].append((change - predicted) ** 2)
    assert measured.curve == pytest.approx([np.mean(one) for one in errors], rel=1e-9)


def test_all_methods_meet_the_same_removals():
    seen = []
    model = box(lambda words: seen.append(tuple(words)) or float(len(words)))
    for scores in (torch.arange(10.0), torch.ones(10)):
        measured("removal_fidelity", model, scores, sets=3)
        seen.append("end")
    first, second = (
        set(part) for part in (seen[: seen.index("end")], seen[seen.index("end") + 1 :])
    )
    assert first - {tuple(WORDS)} == second - {"end", tuple(WORDS)}


def test_another_number_is_refused():
    found = explained(LINEAR, WEIGHTS, target=Target.probability("seen"))
    with pytest.raises(ArgumentError, match="one number for all") as error:
        pellucid.measure(LINEAR, found, metric="removal_fidelity")
    assert "probability of 'seen'" in str(error.value)
    assert "target=pellucid.Target.log_odds('seen')" in str(error.value)


def test_texts_of_too_few_tokens():
    one = measured("removal_fidelity", LINEAR, [1.0], "one", sets=2)
    assert (one.value, one.skipped) == (None, "fewer than 2 tokens")
    two = measured("removal_fidelity", LINEAR, WEIGHTS[1:3], "one two", sets=2)
    assert two.value == pytest.approx(0.0, abs=1e-12)
    short = measured("removal_correlation", LINEAR, [1.0, 2.0], "one two")
    assert (short.value, short.skipped) == (None, "fewer than 3 tokens")


def test_orders_that_do_not_exist_are_skipped():
    found = measured("removal_correlation", LINEAR, torch.ones(10))
    assert (found.value, found.skipped) == (None, "all tokens score the same")
    flat = measured("removal_correlation", certain(lambda words: 0.5), WEIGHTS)
    assert (flat.value, flat.skipped) == (None, "every removal has the same effect")


# ---- naive Bayes (T5) ----------------------------------------------------------------------------


def test_naive_bayes_weights_are_found():
    """log((60 + 40) / (10 + 40)) = log 2, and an unseen token is worth nothing."""
    sequences = [("good",)] * 60 + [("good",)] * 10 + [("other",)]
    bayes = NaiveBayes.fit(sequences, [1.0] * 60 + [-1.0] * 11, alpha=40.0)
    weights = dict(zip(bayes.units, bayes.weight.tolist(), strict=True))
    assert weights["good"] == pytest.approx(math.log(2))


@pytest.mark.parametrize(
    ("scores", "value"), [(WEIGHTS, 1.0), (WEIGHTS.exp(), 1.0), (-WEIGHTS, -1.0)]
)
def test_any_monotone_map_of_the_weights_agrees(scores, value):
    found = measured("naive_bayes_correlation", LINEAR, scores, weights=WEIGHT_OF)
    assert found.value == pytest.approx(value)


def test_each_token_counts_once_with_its_first_score():
    text = "one two two three one unknown"
    scores = [1.0, 2.0, -9.0, 3.0, 99.0, -5.0]
    weights = {"one": 0.1, "two": 0.2, "three": 0.3}
    found = measured("naive_bayes_correlation", LINEAR, scores, text, weights=weights)
    assert found.value == pytest.approx(1.0)


def test_scores_without_a_sign_are_compared_with_sizes():
    found = explained(LINEAR, WEIGHTS.abs(), signed=False)
    value = pellucid.measure(LINEAR, found, metric="naive_bayes_correlation", weights=WEIGHT_OF)
    assert value.value == pytest.approx(1.0)


def test_naive_bayes_skips_with_a_reason():
    few = measured("naive_bayes_correlation", LINEAR, WEIGHTS, weights={"one": 1.0, "two": 2.0})
    assert few.value is None
    assert few.skipped == "2 different tokens with a weight, fewer than 3"
    flat = measured("naive_bayes_correlation", LINEAR, torch.ones(10), weights=WEIGHT_OF)
    assert (flat.value, flat.skipped) == (None, "all tokens score the same")
    same = measured("naive_bayes_correlation", LINEAR, WEIGHTS, weights=dict.fromkeys(WORDS, 1.0))
    assert same.skipped == "all tokens have the same weight"


@pytest.mark.parametrize("weights", [None, {}, [1.0], {"one": math.nan}, {1: 2.0}, {"one": "a"}])
def test_weights_that_are_none(weights):
    with pytest.raises(ArgumentError, match="weights"):
        measured("naive_bayes_correlation", LINEAR, WEIGHTS, weights=weights)


# ---- what people marked (T1, T6) -----------------------------------------------------------------

THREE = "one two three"


def marked(metric, scores, truth, text=THREE, **params):
    return measured(metric, LINEAR, scores, text, truth=truth, **params)


def test_cosine_by_hand():
    assert marked("rationale_cosine", [3, 0, 0], [1, 0, 0]).value == pytest.approx(1.0)
    assert marked("rationale_cosine", [1, 1, 1], [1, 1, 0]).value == pytest.approx((2 / 3) ** 0.5)
    assert marked("rationale_cosine", [2, 1, 1], [1, 0, 0]).value == pytest.approx(0.8164966)
    scaled = marked("rationale_cosine", [2, 1, 1], [1, 0, 0], scale="minmax")
    assert scaled.value == pytest.approx(1.0)
    assert marked("rationale_cosine", [-3, 0, 0], [1, 0, 0]).value == pytest.approx(-1.0)


def test_the_marks_of_several_people_are_averaged():
    several = marked("rationale_cosine", [3, 1, 0], [[1, 0, 0], [1, 1, 0]])
    mean = marked("rationale_cosine", [3, 1, 0], [1, 0.5, 0])
    assert several.value == mean.value


def test_ranking_metrics_by_hand():
    text, scores, truth = "zero one two three", [0.9, 0.8, 0.7, 0.1], [1, 0, 1, 0]
    assert marked("rationale_auroc", scores, truth, text).value == pytest.approx(0.75)
    assert marked("attention_auroc", scores, truth, text).value == pytest.approx(0.75)
    precision = marked("rationale_auprc", scores, truth, text)
    assert precision.value == pytest.approx((1 + 2 / 3) / 2)


@pytest.mark.parametrize("metric", ["rationale_auroc", "attention_auroc"])
@pytest.mark.parametrize(
    ("scores", "value"), [([1, 0, 0], 1.0), ([0.1, 0.5, 0.9], 0.0), ([2, 2, 2], 0.5)]
)
def test_auroc_at_its_ends(metric, scores, value):
    assert marked(metric, scores, [1, 0, 0]).value == pytest.approx(value)


def test_the_attention_of_people_has_no_sign():
    assert marked("attention_auroc", [-5, 1, 2], [1, 0, 0]).value == 1.0
    raw = explained(LINEAR, [-5, 1, 2], THREE, signed=False)
    found = pellucid.measure(LINEAR, raw, metric="attention_auroc", truth=[1, 0, 0])
    assert found.value == 0.0  # an importance counts as it is


@pytest.mark.parametrize(("consensus", "value"), [("and", 1.0), ("or", 0.5), ("majority", 1.0)])
def test_people_who_do_not_agree(consensus, value):
    people = [[1, 0, 0], [1, 0, 1], [1, 0, 0]]
    found = marked("attention_auroc", [3, 2, 1], people, consensus=consensus)
    assert found.value == value


def test_punctuation_is_no_word_that_people_look_at():
    found = explained(LINEAR, [1, 9, 2, 9], "one , two .")
    value = pellucid.measure(LINEAR, found, metric="attention_auroc", truth=[0, 1, 1, 0])
    assert value.value == 1.0


def test_types_take_the_first_score_and_the_last_mark():
    text, scores, truth = "one two one three", [3.0, 2.0, 0.0, 1.0], [0, 0, 1, 0]
    assert marked("attention_auroc", scores, truth, text, unit="type").value == 1.0
    assert marked("attention_auroc", scores, truth, text).value == 0.0


def test_a_word_is_made_of_its_tokens(tiny):
    """Two halves of a score on two sub-tokens are the score; special tokens do not count."""
    model = tiny("bert")
    text = "an unfinely film"
    found = pellucid.explain(model, text, method="random")
    spans = spaced_words(text)
    tokens = [
        [i for i, s in enumerate(found.segments) if s.span and a <= s.span[0] < b] for a, b in spans
    ]
    assert len(tokens[1]) == 3
    for how, reduce in (("sum", torch.sum), ("mean", torch.mean)):
        expected = [float(reduce(found.scores[own].double())) for own in tokens]
        assert word_scores(found, spans, how).tolist() == pytest.approx(expected)
    largest = [max(found.scores[own].tolist(), key=abs) for own in tokens]
    assert word_scores(found, spans, "max").tolist() == pytest.approx(largest)
    special = torch.tensor([s.role == "special" for s in found.segments])
    other = replace(found, scores=found.scores.masked_fill(special, 77.0))
    for metric in ("rationale_cosine", "rationale_auroc", "attention_auroc"):
        one, same = (
            pellucid.measure(model, e, metric=metric, truth=[0, 1, 0]).value for e in (found, other)
        )
        assert one == same


def test_a_token_of_two_words_counts_once():
    """For people's attention it belongs to the word that has most of its characters."""
    found = explained(LINEAR, [1.0, 2.0, 4.0], THREE)
    spans = [(0, 1), (1, 3), (4, 7), (8, 13)]
    assert words_of_tokens(found.segments, spans) == [(0, 1), (1, 2), (2, 3)]


def test_two_people_in_a_tuple_are_no_spans():
    """As samples of data sets hold them."""
    two = ((1.0, 0.0, 0.0), (1.0, 1.0, 0.0))
    assert read_marks(two, explained(LINEAR, [1, 2, 3], THREE)).numbers.tolist() == [
        *map(list, two)
    ]
    pair = explained(LINEAR, [1.0, 2.0], "one two")
    assert read_marks((1.0, 0.0), pair).numbers.tolist() == [[1.0, 0.0]]


def test_marks_with_spans_of_their_own():
    spans = [(0, 3), (4, 13)]
    marks = read_marks((spans, [1, 0]), explained(LINEAR, [1, 2, 3], THREE))
    assert marks.spans == ((0, 3), (4, 13))
    found = marked("rationale_auroc", [3, 1, 1], (spans, [1, 0]))
    assert found.value == 1.0
    assert marked("rationale_auroc", [3, 1, 1], (np.array(spans), np.array([1, 0]))).value == 1.0


def test_every_explanation_has_its_own_marks():
    found = [explained(LINEAR, [1, 0, 0], THREE), explained(LINEAR, WEIGHTS)]
    truths = [[1, 0, 0], (WEIGHTS > 0).double()]
    values = pellucid.measure(LINEAR, found, metric="rationale_auroc", truth=truths)
    assert [one.value for one in values] == [1.0, 1.0]


def test_words_that_were_cut_off_do_not_count(tiny):
    model = tiny("bert")
    text = " ".join(["film"] * 80)
    found = pellucid.explain(model, text, method="random", long="truncate")
    read = sum(s.role == "content" for s in found.segments)
    truth = [1, 0] * 40
    whole = pellucid.measure(model, found, metric="rationale_auroc", truth=truth).value
    from pellucid._rank_statistics import auroc

    own = torch.tensor([s.role == "content" for s in found.segments])
    assert whole == auroc(found.scores[own], torch.tensor(truth[:read]).bool())


@pytest.mark.parametrize(
    ("metric", "truth", "reason"),
    [
        ("rationale_cosine", [0, 0, 0], "no word is marked"),
        ("rationale_cosine", [], "no word is marked"),
        ("rationale_cosine", [[], []], "no word is marked"),
        ("rationale_auroc", [0, 0, 0], "no word is marked"),
        ("rationale_auroc", [1, 1, 1], "every word is marked"),
        ("rationale_auprc", [0, 0, 0.4], "no word is marked"),
        ("attention_auroc", [[1, 0, 0], [0, 1, 0]], "no word is marked"),
        ("attention_auroc", [1, 1, 1], "every word is marked"),
    ],
)
def test_texts_without_anything_to_find_are_skipped(metric, truth, reason):
    found = marked(metric, [1, 2, 3], truth)
    assert (found.value, found.skipped) == (None, reason)


def test_one_of_several_may_have_no_marks():
    found = [explained(LINEAR, [1, 0, 0], THREE)] * 2
    values = pellucid.measure(LINEAR, found, metric="rationale_cosine", truth=[None, [1, 0, 0]])
    assert [one.value for one in values] == [None, 1.0]


def test_scores_of_zero_have_no_direction():
    found = marked("rationale_cosine", [0, 0, 0], [1, 0, 0])
    assert (found.value, found.skipped) == (None, "scores of zeros")
    flat = marked("rationale_cosine", [2, 2, 2], [1, 0, 0], scale="minmax")
    assert flat.skipped == "scores of zeros"


def test_one_word():
    assert marked("rationale_cosine", [2.0], [1], "one").value == 1.0
    assert marked("rationale_auroc", [2.0], [1], "one").skipped == "every word is marked"
    assert marked("rationale_auprc", [2.0], [1], "one").value == 1.0


@pytest.mark.parametrize(
    ("truth", "words"),
    [
        ([1, 0], ["2 numbers for 3 words", "spans"]),
        ([[1, 0, 0], [1, 0]], ["[[1, 0, 0], [1, 0]]"]),
        ([math.nan, 0, 0], ["nan"]),
        ("yes", ["yes"]),
        (([(0, 3), (4, 99)], [1, 0]), ["13 characters"]),
        (([(0, 3), (2, 13)], [1, 0]), ["overlap"]),
        (([(0, 3)], [1]), ["two three"]),
        (([], []), ["0 words"]),
        (([(0, 13)], [1, 0]), ["2 numbers for 1 words"]),
        (3, ["3"]),
    ],
)
def test_marks_that_do_not_fit(truth, words):
    with pytest.raises(ArgumentError) as error:
        marked("rationale_cosine", [1, 2, 3], truth)
    for word in [*words, "instead:"]:
        assert word in str(error.value)


def test_marks_that_are_missing_or_too_many():
    with pytest.raises(ArgumentError, match="gave as their reasons"):
        marked("rationale_cosine", [1, 2, 3], None)
    with pytest.raises(ArgumentError, match="looked at"):
        marked("attention_auroc", [1, 2, 3], None)
    with pytest.raises(ArgumentError, match="nothing besides the model"):
        measured("text_insertion", LINEAR, WEIGHTS, truth=[1] * 10)
    found = [explained(LINEAR, [1, 2, 3], THREE)] * 2
    with pytest.raises(ArgumentError, match="every explanation has its own truth"):
        pellucid.measure(LINEAR, found, metric="rationale_cosine", truth=[[1, 0, 0]])


def test_pairs_of_texts_have_no_marks(tiny):
    found = pellucid.explain(tiny("bert"), ("the film", "is fine"), method="random")
    with pytest.raises(ArgumentError, match="a pair of texts"):
        pellucid.measure(tiny("bert"), found, metric="rationale_cosine", truth=[1, 0])


# ---- the truth is above chance, and chance above its opposite ------------------------------------

ORDERED = ("text_deletion", "text_insertion", "comprehensiveness", "sufficiency")
FAITHFUL = (*ORDERED, "removal_fidelity", "removal_correlation", "infidelity")


def compared(metric, model, scores, text, random=20, **params):
    """The value for the true scores, the mean for random ones, and the value for the opposite."""

    def value(given):
        return measured(metric, model, given, text, **params).value

    generator = torch.Generator().manual_seed(0)
    spread = [scores[torch.randperm(len(scores), generator=generator)] for _ in range(random)]
    numbers = value(scores), float(np.mean([value(one) for one in spread])), value(-scores)
    sign = 1 if pellucid.metrics.METRICS[metric].better == "higher" else -1
    return [sign * number for number in numbers]


@pytest.mark.parametrize("metric", FAITHFUL)
def test_a_linear_bag_of_words(metric):
    params = {"sets": 5} if metric == "removal_fidelity" else {}
    params |= {"samples": 20} if metric == "infidelity" else {}
    true, chance, opposite = compared(metric, LINEAR, WEIGHTS, TEN, **params)
    assert true > chance > opposite


@pytest.mark.parametrize("metric", ORDERED)
def test_a_detector_of_a_keyword(metric):
    """Here the opposite ties all words but one, so chance comes from distinct scores."""
    words = [f"w{i}" for i in range(20)]
    words[13] = "seven"
    truth = torch.linspace(0, 0.5, 20, dtype=torch.float64)
    truth[13] = 1.0
    true, chance, opposite = compared(metric, DETECTOR, truth, " ".join(words))
    assert true > chance > opposite


def test_people_who_mark_what_the_model_reads():
    truth = (WEIGHTS > 0.8).double().tolist()
    for metric in ("rationale_cosine", "rationale_auroc", "rationale_auprc"):
        true, chance, opposite = compared(metric, LINEAR, WEIGHTS, TEN, truth=truth)
        assert true > chance > opposite
    large = (WEIGHTS.abs() > 0.8).double().tolist()
    true, chance, _ = compared("attention_auroc", LINEAR, WEIGHTS, TEN, truth=large)
    assert true == 1.0 > chance
    true, chance, opposite = compared(
        "naive_bayes_correlation", LINEAR, WEIGHTS, TEN, weights=WEIGHT_OF
    )
    assert true == pytest.approx(1.0)
    assert true > chance > opposite


def test_better_removals_have_smaller_errors():
    """The farther scores are from the weights, the larger the error, level by level."""
    errors = [
        measured("removal_fidelity", LINEAR, WEIGHTS * factor, sets=10).value
        for factor in (1.0, 0.8, 0.5, 0.0)
    ]
    assert all(less < more for less, more in pairwise(errors))


# ---- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", [*KEPT, "removal_fidelity", "removal_correlation"])
def test_scores_that_are_not_finite(metric):
    with pytest.raises(pellucid.NumericalError, match="not finite"):
        measured(metric, LINEAR, WEIGHTS.masked_fill(WEIGHTS > 1.5, math.nan))


@pytest.mark.parametrize("metric", KEPT)
def test_constant_scores_keep_the_order_of_the_text(metric):
    found = measured(metric, LINEAR, torch.ones(10))
    assert found.ties == pytest.approx(0.9)
    assert found.value == measured(metric, LINEAR, -torch.arange(10.0)).value


def test_labels_that_the_model_lacks():
    with pytest.raises(ArgumentError, match="unknown class"):
        measured("comprehensiveness", LINEAR, WEIGHTS, target="elsewhere")


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_a_text_of_one_token(family, tiny):
    """Nothing is left of it where a model adds no token of its own."""
    model = tiny(family)
    found = pellucid.explain(
        model, "film" if family == "bert" else "a", method="random", target=Target.log_odds(1)
    )
    for metric in ("removal_fidelity", "removal_correlation", "text_insertion", "infidelity"):
        one = pellucid.measure(model, found, metric=metric)
        assert one.value is None
        assert one.skipped.startswith("fewer than")
    alone = pellucid.measure(model, found, metric="sufficiency")
    assert alone.value == pytest.approx(0.0, abs=1e-6)
    gone = pellucid.measure(model, found, metric="comprehensiveness")
    assert gone.value is not None or gone.skipped
