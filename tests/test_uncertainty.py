"""Errors and intervals against closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from pellucid._uncertainty import (
    bootstrap_interval,
    jackknife_error,
    mean_of_drawn,
    pooled_of_drawn,
    standard_error,
    summed,
)

VALUES = np.random.default_rng(0).normal(2.0, 3.0, 200)


def share(counts):
    return counts["hits"] / counts["all"] if counts["all"] else None


def test_the_standard_error_of_a_mean():
    expected = VALUES.std(ddof=1) / math.sqrt(len(VALUES))
    assert standard_error(VALUES.tolist()) == pytest.approx(expected)
    assert standard_error([1.0, 3.0]) == pytest.approx(1.0)
    assert standard_error([1.0]) is None
    assert standard_error([]) is None


def test_the_jackknife_of_a_mean_is_its_standard_error():
    """Where every sample counts for as much, the pooled number is a mean."""
    hits = np.random.default_rng(1).integers(0, 11, 40).tolist()
    counts = [{"hits": h, "all": 10} for h in hits]
    expected = standard_error([h / 10 for h in hits])
    assert jackknife_error(share, counts) == pytest.approx(expected)


def test_the_jackknife_of_a_ratio_is_near_its_linearisation():
    generator = np.random.default_rng(2)
    sizes = generator.integers(50, 150, 400)
    hits = generator.binomial(sizes, 0.3)
    counts = [{"hits": int(h), "all": int(s)} for h, s in zip(hits, sizes, strict=True)]
    ratio = hits.sum() / sizes.sum()
    linear = (hits - ratio * sizes) / sizes.mean()
    expected = linear.std(ddof=1) / math.sqrt(len(linear))
    assert jackknife_error(share, counts) == pytest.approx(expected, rel=0.01)


def test_no_error_where_a_sample_alone_makes_the_number():
    assert jackknife_error(share, [{"hits": 1, "all": 2}]) is None
    assert jackknife_error(share, []) is None
    assert jackknife_error(share, [{"hits": 1, "all": 2}, {"hits": 0, "all": 0}]) is None


def test_counts_are_summed_by_name():
    assert summed([{"a": 1, "b": 2}, {"a": 3}, {}]) == {"a": 4, "b": 2}
    assert summed([]) == {}


def test_a_bootstrap_interval_is_that_of_the_normal_distribution_for_many_samples():
    low, high = bootstrap_interval(mean_of_drawn(VALUES.tolist()), len(VALUES), 0.95, 4000, 0)
    error = standard_error(VALUES.tolist())
    assert (low + high) / 2 == pytest.approx(VALUES.mean(), abs=0.1 * error)
    assert high - low == pytest.approx(2 * 1.96 * error, rel=0.06)


def test_a_bootstrap_of_equal_samples_has_no_width():
    assert bootstrap_interval(mean_of_drawn([0.5] * 9), 9, 0.9, 100, 0) == (0.5, 0.5)


def test_a_bootstrap_is_repeatable_and_leaves_the_global_generator_alone():
    before = torch.get_rng_state()
    one, other, third = (
        bootstrap_interval(mean_of_drawn(VALUES.tolist()), len(VALUES), 0.9, 100, seed)
        for seed in (1, 1, 2)
    )
    assert one == other != third
    assert torch.equal(before, torch.get_rng_state())


def test_what_is_drawn_is_counted_as_often():
    drawn = torch.tensor([2, 0, 1])
    assert mean_of_drawn([1.0, 5.0, 4.0])(drawn) == pytest.approx(2.0)
    counts = [{"hits": 1, "all": 2}, {"hits": 9, "all": 9}, {"hits": 0, "all": 4}]
    assert pooled_of_drawn(share, counts)(drawn) == pytest.approx(2 / 8)
