"""Rows of experiments on models whose function is known."""

from __future__ import annotations

import math
import statistics

import pytest
import torch

import pellucid
from pellucid import ArgumentError, InputError
from pellucid.surrogates import Slalom
from pellucid.synthetic import (
    bag_of_words,
    counterexample_row,
    distance_row,
    length_row,
    linear_data,
    linear_truth,
    measured_row,
    planted,
    reading,
    recovery_row,
    repetition_row,
    runtime_row,
    slalom_data,
    slalom_truth,
    surrogate_row,
    turned,
)

SUM = planted(linear_truth())
TRUTH = slalom_truth({f"w{i}": (i - 5.5) / 11 for i in range(12)})
MEAN = planted(TRUTH)
POSITIVE = pellucid.Target.log_odds("positive")


# ---- one word again and again --------------------------------------------------------------------


def test_a_sum_grows_with_every_repetition():
    row = repetition_row(SUM, "perfect", most=20)
    assert row["slope"] == pytest.approx(1.5)
    assert row["flatness"] == pytest.approx(19 * 1.5)
    curve = [row[f"log_odds_{i}"] for i in range(1, 21)]
    assert curve == pytest.approx([1.5 * i for i in range(1, 21)])
    assert length_row(SUM, "worst") == pytest.approx({f"shapley_{i}": -1.5 for i in range(1, 9)})


def test_a_softmax_is_flat_so_that_its_shapley_values_fall():
    value = float(TRUTH.value[3])
    row = repetition_row(MEAN, "w3", most=10)
    assert row["slope"] == pytest.approx(0, abs=1e-12)
    assert row["flatness"] == pytest.approx(0, abs=1e-12)
    expected = {f"shapley_{i}": value / i for i in range(1, 5)}
    assert length_row(MEAN, "w3", most=4) == pytest.approx(expected)


def test_shapley_values_of_lengths_are_those_of_kernel_shap():
    row = length_row(MEAN, "w3", most=5)
    text = " ".join(["w3"] * 5)
    found = pellucid.explain(MEAN, text, method="kernel_shap", target=POSITIVE)
    assert found.scores.tolist() == pytest.approx([row["shapley_5"]] * 5, abs=1e-9)


# ---- the counterexample --------------------------------------------------------------------------


def test_a_sum_is_no_counterexample_to_sums():
    row = counterexample_row(SUM)
    assert row["gam_expects"] == pytest.approx(row["high_low"]) == pytest.approx(0)
    assert row["high_high"] == pytest.approx(3)


def test_an_average_is_a_counterexample_to_sums():
    """Values 2 and -2 of one importance: said twice they are the same, together they are zero."""
    truth = Slalom(("up", "down"), torch.tensor([2.0, -2.0]).double(), torch.zeros(2).double())
    row = counterexample_row(planted(truth), "up", "down")
    assert row["gam_expects"] == pytest.approx(2)
    assert row["gam_error"] == pytest.approx(2)
    assert row["slalom_expects"] == row["high_low"] == row["low_high"] == pytest.approx(0)


# ---- surrogates ----------------------------------------------------------------------------------


def test_each_function_is_described_by_its_own_kind():
    data, fresh = linear_data(800), linear_data(200, seed=1)
    row = surrogate_row(SUM, data, fresh)
    assert row["linear_mse"] < 1e-20
    assert min(row["gam_mse"], row["slalom_mse"]) > 0.05
    centred = fresh.log_odds - data.log_odds.mean()
    assert row["variance"] == pytest.approx(float((centred**2).mean()))
    data, fresh = slalom_data(800, 12, truth=TRUTH), slalom_data(200, 12, 1, truth=TRUTH)
    row = surrogate_row(MEAN, data, fresh)
    assert row["slalom_mse"] < 1e-6 < 0.01 < row["linear_mse"] < row["variance"]


def test_a_planted_slalom_is_recovered():
    data, fresh = slalom_data(2000, 12, truth=TRUTH), slalom_data(200, 12, 1, truth=TRUTH)
    row = recovery_row(MEAN, data, fresh, importance_prior=1e-12, value_prior=1e-12)
    assert row["logit_rmse"] < 1e-6
    assert row["parameter_rmse"] < 1e-4


def test_distances_of_parameters_that_are_known_to_be_off():
    fresh = slalom_data(200, 12, 1, truth=TRUTH)
    moved = Slalom(TRUTH.units, TRUTH.value, TRUTH.importance + 3.0)
    assert max(distance_row(moved, TRUTH, fresh).values()) < 1e-12  # a constant means nothing
    off = Slalom(TRUTH.units, TRUTH.value + 0.1, TRUTH.importance)
    row = distance_row(off, TRUTH, fresh)
    assert row["logit_mse"] == pytest.approx(0.01)
    assert row["logit_bias"] == pytest.approx(0.1)
    assert row["parameter_mse"] == pytest.approx(0.005)
    assert row["parameter_rmse"] == pytest.approx(math.sqrt(0.005))


def test_errors_of_both_signs_cancel_in_the_bias_alone():
    fresh = slalom_data(4000, 2, seed=1)
    truth = Slalom(("w0", "w1"), torch.zeros(2).double(), torch.zeros(2).double())
    off = Slalom(truth.units, torch.tensor([1.0, -1.0]).double(), truth.importance)
    row = distance_row(off, truth, fresh)
    assert row["logit_rmse"] > 0.2
    assert row["logit_bias"] < 4 * row["logit_rmse"] / 4000**0.5


def test_sums_have_no_importances_to_recover():
    with pytest.raises(ArgumentError, match="data drawn from a Linear"):
        recovery_row(SUM, linear_data(10), linear_data(10))


# ---- real texts ----------------------------------------------------------------------------------

TEXTS = ["perfect movie worst good best", "the worst movie we watch ok", "good good bad the best"]


def explained(method="occlusion"):
    return pellucid.explain(SUM, TEXTS, method=method, target=POSITIVE, progress=False)


def test_rows_of_metrics_are_means_with_standard_errors():
    explanations = explained()
    each = pellucid.measure(SUM, explanations, metric="text_deletion", grid="tokens:2")
    row = measured_row(SUM, explanations, "text_deletion", grid="tokens:2")
    values = [one.value for one in each]
    assert row["mean"] == pytest.approx(statistics.fmean(values))
    assert row["se"] == pytest.approx(statistics.pstdev(values) / math.sqrt(3))
    assert (row["n"], row["skipped"]) == (3, 0)
    assert row["curve_2"] == pytest.approx(statistics.fmean(one.curve[1] for one in each))
    assert row["curve_3"] == pytest.approx(each[1].curve[2])  # the one text of six tokens


def test_removals_from_a_sum_are_predicted_by_its_weights():
    row = measured_row(SUM, explained(), "removal_fidelity")
    assert all(row[f"curve_{m}"] < 1e-20 for m in (1, 2, 3, 4))


def test_a_row_of_nothing_counts_what_was_skipped():
    row = measured_row(SUM, explained(), "text_deletion", grid="tokens:10")
    assert row == {"n": 0, "skipped": 3}


def test_the_other_class_has_the_other_signs():
    for one, other in zip(
        [turned(e) for e in explained()],
        pellucid.explain(
            SUM, TEXTS, method="occlusion", target=pellucid.Target.log_odds("negative")
        ),
        strict=True,
    ):
        torch.testing.assert_close(one.scores, other.scores)
        told = ("label", "index", "target", "explains", "prediction")
        assert all(getattr(one, name) == getattr(other, name) for name in told)
        assert one.value == pytest.approx(other.value)
    with pytest.raises(ArgumentError, match="log-odds of two classes"):
        turned(pellucid.explain(SUM, TEXTS[0], target=pellucid.Target.logit("positive")))


def test_an_extra_is_read_as_scores():
    def method(case):
        values = {"values": 2 * case.mask.double(), "importance": case.mask.double(), "all": 0}
        extras = values | {"all": torch.zeros(len(case.batch), 3)}
        return pellucid.Attribution(torch.zeros(case.mask.shape), extras, signed=True)

    found = pellucid.explain(SUM, TEXTS[0], method=method)
    value, importance = reading(found, "values"), reading(found, "importance")
    assert value.scores.tolist() == [2.0] * 5
    assert importance.scores.tolist() == [1.0] * 5
    assert (value.signed, importance.signed) == (True, False)
    assert not value.extras
    with pytest.raises(ArgumentError, match="unknown reading 'all'"):
        reading(found, "all")


def test_a_bag_of_words_counts_tokens_in_each_class():
    weights = bag_of_words(SUM, TEXTS, [1, 0, 1], alpha=2.0)
    assert weights["good"] == pytest.approx(math.log((3 + 2) / (0 + 2)))
    assert weights["worst"] == pytest.approx(0)
    assert weights["ok"] == pytest.approx(math.log((0 + 2) / (1 + 2)))
    assert set(weights) == {word for text in TEXTS for word in text.split()}
    truth = linear_truth()
    exact = dict(zip(truth.units, truth.weight.tolist(), strict=True))
    row = measured_row(SUM, explained(), "naive_bayes_correlation", weights=exact)
    assert row["mean"] == pytest.approx(1)


# ---- what it costs -------------------------------------------------------------------------------


def test_passes_are_what_the_method_says():
    row = runtime_row(SUM, TEXTS, "occlusion", warm=1)
    assert row["tokens"] == pytest.approx(16 / 3)
    assert row["n"] == 3
    assert row["forwards"] == pytest.approx(16 / 3 + 1)
    assert row["backwards"] == 0
    assert row["seconds"] > 0
    assert row["seconds_se"] >= 0
    with pytest.raises(InputError, match="nothing was timed"):
        runtime_row(SUM, [], "occlusion")
