"""Errors of surrogates and curves of repetition, against numbers that are known beforehand."""

from __future__ import annotations

import math
from itertools import combinations

import pytest
import torch

from pellucid import ArgumentError
from pellucid.surrogates import (
    Gam,
    Linear,
    NaiveBayes,
    Slalom,
    fit_error,
    recovery_error,
    repetition,
)

UNITS = ("a", "b", "c", "d")
WEIGHT = torch.tensor([1.5, -1.0, 0.5, 0.0], dtype=torch.float64)
LINEAR = Linear(UNITS, WEIGHT, torch.tensor(0.3, dtype=torch.float64))
SLALOM = Slalom(UNITS, 2 * WEIGHT, torch.tensor([0.2, 1.0, -0.7, -0.5], dtype=torch.float64))


def drawn(many, seed):
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, 9, (many,), generator=generator).tolist()
    return [
        tuple(UNITS[i] for i in torch.randint(4, (length,), generator=generator).tolist())
        for length in lengths
    ]


FITTED, FRESH = drawn(300, 0), drawn(100, 1)


def test_a_sum_is_fitted_by_a_sum():
    target = LINEAR.predict(FITTED)
    assert fit_error(Linear.fit(FITTED, target), FRESH, LINEAR.predict(FRESH)).mse < 1e-20
    others = (Gam.fit(FITTED, target, penalty=1e-3), Slalom.fit(FITTED, target))
    assert all(fit_error(one, FRESH, LINEAR.predict(FRESH)).mse > 1e-4 for one in others)


def test_a_slalom_is_fitted_by_a_slalom_and_by_no_sum():
    target = SLALOM.predict(FITTED)
    assert fit_error(Slalom.fit(FITTED, target), FRESH, SLALOM.predict(FRESH)).mse < 1e-12
    assert fit_error(Linear.fit(FITTED, target), FRESH, SLALOM.predict(FRESH)).mse > 1e-2


def test_errors_of_both_signs_cancel_in_the_bias_alone():
    two = [("a",), ("b",)]
    found = fit_error(LINEAR, two, LINEAR.predict(two) + torch.tensor([1.0, -1.0]))
    assert (found.mse, found.rmse, found.bias) == pytest.approx((1.0, 1.0, 0.0))
    off = fit_error(LINEAR, FRESH, LINEAR.predict(FRESH) + 0.1)
    assert (off.mse, off.rmse, off.bias) == pytest.approx((0.01, 0.1, 0.1))


def test_errors_of_several_classes():
    slalom = Slalom(UNITS, torch.stack([WEIGHT, -WEIGHT], dim=1), torch.zeros(4))
    error = torch.tensor([0.1, -0.3], dtype=torch.float64)
    found = fit_error(slalom, FRESH, slalom.predict(FRESH) + error)
    assert (found.mse, found.bias) == pytest.approx((0.05, 0.1))
    with pytest.raises(ArgumentError, match="another number of classes"):
        fit_error(slalom, FRESH, LINEAR.predict(FRESH))


def test_naive_bayes_can_be_measured_too():
    bayes = NaiveBayes.fit(FITTED, LINEAR.predict(FITTED))
    assert math.isfinite(fit_error(bayes, FRESH, LINEAR.predict(FRESH)).mse)


def test_recovery_does_not_see_the_constant_of_the_importances():
    shifted = Slalom(UNITS[::-1], SLALOM.value.flip(0), SLALOM.importance.flip(0) + 7)
    assert recovery_error(shifted, SLALOM) == pytest.approx(0.0, abs=1e-28)
    assert fit_error(shifted, FRESH, SLALOM.predict(FRESH)).mse == pytest.approx(0.0, abs=1e-28)


def test_values_that_are_off_by_a_tenth():
    """Half of the numbers are off by 0.1, and every output is: 0.005 and 0.01."""
    off = Slalom(UNITS, SLALOM.value + 0.1, SLALOM.importance)
    assert recovery_error(off, SLALOM) == pytest.approx(0.005)
    assert fit_error(off, FRESH, SLALOM.predict(FRESH)).mse == pytest.approx(0.01)


def test_a_recovered_slalom_has_no_error():
    assert recovery_error(Slalom.recover(SLALOM.predict, UNITS), SLALOM) < 1e-20


def test_slaloms_of_other_units_are_refused():
    with pytest.raises(ArgumentError, match="1 units missing"):
        recovery_error(Slalom(UNITS[1:], SLALOM.value[1:], SLALOM.importance[1:]), SLALOM)
    classes = Slalom(UNITS, SLALOM.value[:, None].repeat(1, 2), SLALOM.importance)
    with pytest.raises(ArgumentError, match="same units and classes"):
        recovery_error(classes, SLALOM)


# ---- one unit again and again --------------------------------------------------------------------


def test_a_sum_grows_and_a_slalom_does_not():
    unbiased = Linear(UNITS, WEIGHT, torch.tensor(0.0))
    grows = repetition(unbiased.predict, "a")
    torch.testing.assert_close(grows.scores, 1.5 * torch.arange(1, 21).double())
    assert (grows.flatness, grows.slope) == pytest.approx((1.5 * 19, 1.5))
    torch.testing.assert_close(grows.shapley, torch.full((20,), 1.5, dtype=torch.float64))
    stays = repetition(SLALOM.predict, "a", most=8)
    assert (stays.flatness, stays.slope) == pytest.approx((0.0, 0.0))
    torch.testing.assert_close(stays.shapley, 3.0 / torch.arange(1, 9).double())


def test_shapley_values_of_equal_units_by_their_definition():
    """Every coalition of positions, for a function of the length that is neither."""

    def query(sequences):
        return [math.sqrt(len(one)) + 0.1 * len(one) ** 2 for one in sequences]

    found = repetition(query, "a", most=5, nothing=0.0).shapley
    for length in range(1, 6):
        total = 0.0
        for size in range(length):
            many = len(list(combinations(range(length - 1), size)))
            weight = 1 / (length * math.comb(length - 1, size))
            gain = query([("a",) * (size + 1)])[0] - query([("a",) * size])[0]
            total += many * weight * gain
        assert found[length - 1] == pytest.approx(total)


def test_a_single_repetition_has_no_slope():
    alone = repetition(LINEAR.predict, "a", most=1)
    assert (alone.flatness, alone.slope) == (0.0, 0.0)


def test_curves_of_several_classes_are_refused():
    with pytest.raises(ArgumentError, match="one score a sequence"):
        repetition(lambda sequences: torch.zeros(len(sequences), 2), "a")
    with pytest.raises(ArgumentError, match="most=0"):
        repetition(LINEAR.predict, "a", most=0)
