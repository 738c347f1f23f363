"""Tests and intervals against closed forms, printed tables, and scipy where it is installed."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pellucid._statistics import (
    average_ranks,
    bootstrap_interval,
    incomplete_beta,
    pearson,
    spearman,
    student_p,
    summary,
    t_test,
    welch,
)

F64 = torch.float64
T = st.floats(1e-8, 1e3)


# ---- Student's distribution ----------------------------------------------------------------------


@given(T)
def test_one_and_two_degrees_of_freedom_have_closed_forms(t):
    one = 2 * math.atan2(1, t) / math.pi  # Cauchy's
    two = 2 / (math.sqrt(2 + t * t) * (math.sqrt(2 + t * t) + t))
    assert student_p(t, 1) == pytest.approx(one, rel=1e-11)
    assert student_p(t, 2) == pytest.approx(two, rel=1e-11)
    assert student_p(-t, 2) == student_p(t, 2)


@given(T)
def test_four_degrees_of_freedom_have_a_closed_form(t):
    u = t / math.sqrt(4 + t * t)
    assert student_p(t, 4) == pytest.approx(1 - u * (3 - u * u) / 2, abs=1e-13)


# upper critical values as printed: NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2
CRITICAL = [
    (1, 0.10, 3.078),
    (3, 0.05, 2.353),
    (5, 0.025, 2.571),
    (10, 0.025, 2.228),
    (10, 0.005, 3.169),
    (29, 0.01, 2.462),
    (60, 0.025, 2.000),
    (100, 0.005, 2.626),
]


@pytest.mark.parametrize(("degrees", "tail", "value"), CRITICAL)
def test_critical_values_are_the_printed_ones(degrees, tail, value):
    lower, upper = (student_p(value + error, degrees) / 2 for error in (6e-4, -6e-4))
    assert lower < tail < upper


@pytest.mark.parametrize("degrees", [0.7, 3, 12.5, 40, 1e4])
@pytest.mark.parametrize("t", [0.1, 1.0, 2.5, 6.0])
def test_the_tail_is_the_integral_of_the_density(degrees, t):
    """By Gauss and Legendre's rule under x = t / w^4, which takes the tail to (0, 1)."""
    nodes, weights = np.polynomial.legendre.leggauss(400)
    w, weights = (nodes + 1) / 2, weights / 2
    front = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)
    front -= math.log(degrees * math.pi) / 2
    x, jacobian = t / w**4, 4 * t / w**5  # w^4, so that a density like a power ends smoothly
    density = np.exp(front - (degrees + 1) / 2 * np.log1p(x * x / degrees))
    assert student_p(t, degrees) == pytest.approx(
        2 * float((weights * density * jacobian).sum()), rel=2e-6
    )


@given(st.floats(0.3, 40), st.floats(0.3, 40), st.floats(0.01, 0.99))
def test_the_incomplete_beta_function_is_symmetric_and_recurs(a, b, x):
    assert incomplete_beta(x, a, b) + incomplete_beta(1 - x, b, a) == pytest.approx(1, abs=1e-12)
    step = math.exp(
        math.lgamma(a + b) - math.lgamma(a + 1) - math.lgamma(b)
        + a * math.log(x) + b * math.log1p(-x)
    )  # fmt: skip
    found = incomplete_beta(x, a, b) - incomplete_beta(x, a + 1, b)  # DLMF 8.17.20
    assert found == pytest.approx(step, rel=1e-8, abs=1e-13)


def test_the_ends_of_the_incomplete_beta_function():
    assert incomplete_beta(0, 2, 3) == 0
    assert incomplete_beta(1, 2, 3) == 1
    assert incomplete_beta(0.25, 1, 1) == pytest.approx(0.25, rel=1e-14)


# ---- tests of samples ----------------------------------------------------------------------------

SAMPLE = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]  # Student 1908, drug one
OTHERS = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]  # drug two


def test_students_own_example():
    """Sleep data of Student (1908) as printed everywhere: t = -4.0621, p = 0.002833 paired."""
    paired = t_test([a - b for a, b in zip(SAMPLE, OTHERS, strict=True)])
    assert paired.statistic == pytest.approx(-4.0621, abs=5e-5)
    assert paired.p == pytest.approx(0.002833, abs=5e-7)
    unpaired = welch(SAMPLE, OTHERS)  # t = -1.8608, df = 17.776, p = 0.07939
    assert unpaired.statistic == pytest.approx(-1.8608, abs=5e-5)
    assert unpaired.degrees == pytest.approx(17.776, abs=5e-4)
    assert unpaired.p == pytest.approx(0.07939, abs=5e-6)


def test_a_test_of_one_sample_moves_with_its_mean():
    moved = t_test([value + 5 for value in SAMPLE], mean=5)
    assert moved.statistic == pytest.approx(t_test(SAMPLE).statistic, rel=1e-12)


def test_tests_that_cannot_be_made_say_so():
    assert t_test([1.0]).skipped == "fewer than two numbers"
    assert t_test([0.0, 0.0, 0.0]).skipped == "all numbers are equal"
    assert t_test([0.1] * 3).p is None
    assert welch([1.0, 1.0], [2.0, 2.0]).skipped == "all numbers are equal"
    assert welch([1.0], [2.0, 3.0]).p is None
    assert summary([]) is None


def test_a_summary_divides_by_n():
    found = summary([1.0, 2.0, 3.0, 6.0])
    assert (found.mean, found.n) == (3.0, 4)
    assert found.std == pytest.approx(math.sqrt(14 / 4))
    assert found.se == pytest.approx(math.sqrt(14) / 4)


# ---- correlations --------------------------------------------------------------------------------


def swapped(n):
    ranks = torch.arange(n, dtype=F64)
    other = ranks.clone()
    other[[0, 1]] = other[[1, 0]]
    return ranks, other


@pytest.mark.parametrize(("n", "rho"), [(2, -1), (3, 0.5), (5, 0.9), (10, 0.987879)])
def test_a_swap_of_neighbours(n, rho):
    assert spearman(*swapped(n)) == pytest.approx(rho, abs=5e-7)
    assert spearman(*swapped(n)) == pytest.approx(1 - 6 * 2 / (n * (n * n - 1)), abs=1e-14)


def test_equal_values_share_their_ranks():
    values = torch.tensor([3.0, 1.0, 3.0, 2.0])
    assert average_ranks(values).tolist() == [3.5, 1, 3.5, 2]
    assert spearman(torch.ones(3), torch.arange(3.0)) is None


def test_pearson_of_a_line_and_of_nothing():
    x = torch.arange(5, dtype=F64)
    assert pearson(x, 2 * x + 1).statistic == pytest.approx(1, abs=1e-15)
    assert pearson(x, -1e-200 * x).statistic == pytest.approx(-1, abs=1e-15)
    assert pearson(x, torch.full((5,), 0.1)).skipped == "a constant series"
    assert pearson(x[:1], x[:1]).skipped == "fewer than two numbers"
    assert pearson(x[:2], x[:2]).p is None


def test_pearson_of_a_known_table():
    """Anscombe's first set (1973): r = 0.81642 (printed as 0.816), p = 0.00217 with 9 degrees."""
    x = torch.tensor([10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5], dtype=F64)
    y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68]
    found = pearson(x, torch.tensor(y, dtype=F64))
    assert found.statistic == pytest.approx(0.81642, abs=5e-6)
    assert found.p == pytest.approx(0.00217, abs=5e-6)
    assert found.degrees == 9


# ---- the bootstrap -------------------------------------------------------------------------------


def test_the_bootstrap_of_two_numbers_is_counted_out():
    """The mean of n draws of 0 and 1: 0, 1/2 and 1 with 1/4, 1/2 and 1/4."""
    sums, counts = torch.tensor([0.0, 1.0], dtype=F64), torch.tensor([1, 1])
    generator = torch.Generator().manual_seed(0)
    given = {"resamples": 4000, "generator": generator}
    assert bootstrap_interval(sums, counts, level=0.45, **given) == (0.5, 0.5)
    assert bootstrap_interval(sums, counts, level=0.55, **given) == (0.0, 1.0)


def test_the_bootstrap_has_the_width_of_the_normal_interval():
    values = torch.randn(400, dtype=F64, generator=torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(1)
    low, high = bootstrap_interval(
        values, torch.ones(400, dtype=torch.long), resamples=4000, generator=generator
    )
    half = 1.96 * float(values.std(correction=0)) / 20
    assert (high - low) / 2 == pytest.approx(half, rel=0.05)
    assert (high + low) / 2 == pytest.approx(float(values.mean()), abs=0.1 * half)


def test_groups_are_drawn_as_wholes():
    """Ten copies of each of two numbers: drawn one by one the mean is known ten times better."""
    values = torch.tensor([0.0, 1.0], dtype=F64)
    whole = bootstrap_interval(
        values * 10, torch.tensor([10, 10]), generator=torch.Generator().manual_seed(0)
    )
    single = bootstrap_interval(
        values.repeat(10),
        torch.ones(20, dtype=torch.long),
        generator=torch.Generator().manual_seed(0),
    )
    assert whole == (0, 1)
    assert 0.2 < single[0] < 0.4 < 0.6 < single[1] < 0.8


def test_the_bootstrap_leaves_the_global_generator_alone():
    before = torch.get_rng_state()
    bootstrap_interval(
        torch.ones(3), torch.ones(3), generator=torch.Generator().manual_seed(0), resamples=7
    )
    assert torch.equal(before, torch.get_rng_state())


# ---- a library of statistics ---------------------------------------------------------------------


def test_everything_is_as_scipy_has_it():
    stats = pytest.importorskip("scipy.stats")
    special = pytest.importorskip("scipy.special")
    generator = torch.Generator().manual_seed(0)
    for degrees in (0.5, 1, 2.5, 7, 33.3, 1e3, 1e6):
        for t in (0.01, 0.7, 3.0, 20.0, 1e3):
            expected = 2 * stats.t.sf(t, degrees)
            assert student_p(t, degrees) == pytest.approx(expected, rel=1e-9)
            a, x = degrees / 2 + 0.1, 1 / (1 + t)
            assert incomplete_beta(x, a, 1.7) == pytest.approx(special.betainc(a, 1.7, x), rel=1e-9)
    for n, m in ((2, 3), (5, 40), (30, 30)):
        x = torch.randn(n, generator=generator, dtype=F64)
        y = 3 * torch.randn(m, generator=generator, dtype=F64) + 1
        found, expected = welch(x.tolist(), y.tolist()), stats.ttest_ind(x, y, equal_var=False)
        assert found.statistic == pytest.approx(expected.statistic, rel=1e-10)
        assert found.p == pytest.approx(expected.pvalue, rel=1e-9)
        assert found.degrees == pytest.approx(expected.df, rel=1e-10)
        found, expected = t_test(y.tolist(), 0.5), stats.ttest_1samp(y, 0.5)
        assert found.p == pytest.approx(expected.pvalue, rel=1e-9)
        z = torch.randint(0, 5, (m,), generator=generator).double()  # ties
        assert spearman(y, z) == pytest.approx(stats.spearmanr(y, z).statistic, abs=1e-12)
        expected = stats.pearsonr(y, z)
        assert pearson(y, z).statistic == pytest.approx(expected.statistic, abs=1e-12)
        assert pearson(y, z).p == pytest.approx(expected.pvalue, rel=1e-8)
