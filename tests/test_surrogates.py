"""Sums that stand in for a model, and the sequences to ask about."""

from __future__ import annotations

import ast
import math
from collections import Counter
from pathlib import Path

import pytest
import torch

import pellucid.surrogates
from pellucid._errors import ArgumentError, InputError, NumericalError
from pellucid.surrogates import Gam, Linear, NaiveBayes, Slalom, samples
from pellucid.surrogates.gam import lasso

WORDS = ("the", "film", "good", "bad", "best")


def texts(many, seed=0, longest=8):
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, longest + 1, (many,), generator=generator).tolist()
    rows = [torch.randint(len(WORDS), (n,), generator=generator).tolist() for n in lengths]
    return [tuple(WORDS[i] for i in row) for row in rows]


def scored(sequences, noise=0.0, classes=None):
    """Sums of the words' weights."""
    weight = dict(zip(WORDS, (0.0, 0.1, 0.6, -1.0, 1.5), strict=True))
    exact = torch.tensor([sum(weight[w] for w in s) for s in sequences], dtype=torch.float64)
    made = torch.Generator().manual_seed(9)
    exact = exact + noise * torch.randn(len(exact), generator=made, dtype=torch.float64)
    return exact if classes is None else torch.stack([exact * c - c for c in range(classes)], 1)


def design(sequences, units):
    return torch.tensor([[s.count(u) for u in units] for s in sequences], dtype=torch.float64)


def close(found, expected, bound=1e-10):
    torch.testing.assert_close(found, expected, rtol=0, atol=bound)


# ---- linear --------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [None, 3])
def test_linear_finds_the_weights_of_a_sum(classes):
    sequences = texts(60)
    fit = Linear.fit(sequences, scored(sequences, classes=classes))
    others = texts(20, seed=1)
    close(fit.predict(others), scored(others, classes=classes))
    (one,) = others[:1]
    close(fit.scores(one).sum(dim=0) + fit.bias, fit.predict([one])[0])
    repeated = fit.predict([one + one])[0]
    close(repeated - fit.predict([one])[0], fit.scores(one).sum(dim=0))


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_linear_solves_its_normal_equations(intercept, ridge):
    sequences = texts(40)
    target = scored(sequences, noise=0.5) + 2
    weights = torch.rand(40, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    fit = Linear.fit(sequences, target, weights=weights, ridge=ridge, intercept=intercept)
    counts = design(sequences, fit.units)
    matrix = torch.cat([counts, torch.full((40, 1), float(intercept), dtype=torch.float64)], 1)
    penalty = ridge * torch.eye(6, dtype=torch.float64)
    penalty[5, 5] = 0 if intercept else 1
    share = (weights / weights.sum())[:, None]
    normal = matrix.T @ (share * matrix) + penalty
    expected = torch.linalg.solve(normal, matrix.T @ (share[:, 0] * target))
    close(fit.weight, expected[:5])
    close(fit.bias, expected[5] * intercept)


def test_linear_takes_the_shortest_of_many_solutions():
    fit = Linear.fit([("a", "b"), ("a", "b", "c")], [1.0, 3.0])
    close(fit.predict([("a", "b"), ("a", "b", "c")]), torch.tensor([1.0, 3.0]).double())
    close(fit.weight, torch.tensor([0.0, 0.0, 2.0]).double())


# ---- additive ------------------------------------------------------------------------------------


def test_the_lasso_of_orthogonal_columns_is_a_soft_threshold():
    right = torch.tensor([[0.5], [-0.02], [0.009], [-2.0]], dtype=torch.float64)
    normal = torch.diag(torch.tensor([1.0, 2.0, 0.5, 4.0], dtype=torch.float64))
    expected = right.sign() * (right.abs() - 0.01).clamp(min=0) / normal.diagonal()[:, None]
    close(lasso(normal, right, 0.01, 10), expected, 1e-15)


@pytest.mark.parametrize("penalty", [0.01, 0.2])
@pytest.mark.parametrize("classes", [None, 2])
def test_gam_meets_the_conditions_of_an_optimum(penalty, classes):
    sequences = texts(80, longest=4)
    target = scored(sequences, noise=0.3, classes=classes)
    weights = torch.arange(1, 81) % 3 + 1
    fit = Gam.fit(sequences, target, penalty=penalty, weights=weights)
    features = torch.tensor(
        [[float(i < len(s) and s[i] == word) for i, word in fit.terms] for s in sequences]
    ).double()
    share = weights.double() / weights.sum()
    error = (fit.predict(sequences) - target).reshape(80, -1)
    weight = fit.weight.reshape(len(fit.terms), -1)
    slope = features.T @ (share[:, None] * error)
    close(share @ error, torch.zeros(error.shape[1], dtype=torch.float64))  # the bias is free
    used = weight != 0
    close(slope[used], -penalty * weight[used].sign(), 1e-9)
    assert (slope[~used].abs() <= penalty + 1e-9).all()
    assert used.any()
    assert not used.all()


def test_gam_tells_positions_apart():
    sequences = [(a, b) for a in WORDS for b in WORDS]
    target = torch.tensor([3.0 * (a == "good") - (b == "good") for a, b in sequences])
    fit = Gam.fit(sequences, target, penalty=1e-6)
    close(fit.predict(sequences), target.double(), 1e-4)
    first, second = fit.scores(("good", "good")) - fit.scores(("the", "the"))
    assert float(first) == pytest.approx(3, abs=1e-3)
    assert float(second) == pytest.approx(-1, abs=1e-3)
    assert fit.predict([("the", "the", "new")]).isfinite().all()
    assert fit.scores(("the", "the", "new"))[2] == 0


# ---- naive Bayes ---------------------------------------------------------------------------------


def test_naive_bayes_counts_occurrences():
    sequences = [("good", "good"), ("good", "bad"), ("bad",)]
    fit = NaiveBayes.fit(sequences, [1.0, 0.5, -2.0], alpha=2.0, weights=[1, 1, 3])
    good, bad = math.log((3 + 2) / (0 + 2)), math.log((1 + 2) / (3 + 2))
    close(fit.predict(sequences), torch.tensor([2 * good, good + bad, bad]).double(), 1e-6)
    close(fit.scores(("bad", "good")), torch.tensor([bad, good]).double(), 1e-6)


# ---- against each other --------------------------------------------------------------------------


def test_each_surrogate_wins_where_it_is_true():
    fitted, held_out = texts(200), texts(100, seed=1)
    value = torch.tensor([0.0, 0.1, 1.0, -1.5, 2.0], dtype=torch.float64)
    slalom = Slalom(WORDS, value, value.abs() - value.abs().mean())
    truths = {Linear: scored, Slalom: slalom.predict}
    for winner, truth in truths.items():
        error = {}
        for kind in (Linear, Slalom, Gam):
            found = kind.fit(fitted, truth(fitted)).predict(held_out)
            error[kind] = float((found - truth(held_out)).square().mean())
        assert error.pop(winner) < 1e-6
        assert min(error.values()) > 1e-2


# ---- which sequences to ask about ----------------------------------------------------------------

TEXT = ("the", "film", "the", "best", "film", "ever", "made")


def contains(sequence, part):
    rest = iter(sequence)
    return all(unit in rest for unit in part)


@pytest.mark.parametrize("design", ["short", "deletion", "mixed"])
def test_samples_are_as_many_as_asked_and_different(design):
    before = torch.get_rng_state()
    found = samples(TEXT, 300, design=design, seed=5)
    assert float(found.weights.sum()) == 300
    assert len(set(found.sequences)) == len(found.sequences) == len(found.weights) < 300
    again = samples(TEXT, 300, design=design, seed=5)
    assert again.sequences == found.sequences
    assert samples(TEXT, 300, design=design, seed=6).sequences != found.sequences
    assert torch.equal(before, torch.get_rng_state())


def test_short_samples_are_uniform_over_different_units():
    found = samples(TEXT, 20000, length=3)
    assert {len(s) for s in found.sequences} == {3}
    seen = Counter()
    for sequence, weight in zip(found.sequences, found.weights.tolist(), strict=True):
        seen.update({unit: sequence.count(unit) * weight for unit in set(sequence)})
    assert set(seen) == set(TEXT)
    assert all(abs(number / 60000 - 1 / 5) < 0.01 for number in seen.values())


def test_deletions_leave_the_order_and_each_number_is_as_likely():
    found = samples(range(9), 12000, design="deletion", most=5)
    assert all(contains(range(9), sequence) for sequence in found.sequences)
    gone, kept = Counter(), Counter()
    for sequence, weight in zip(found.sequences, found.weights.tolist(), strict=True):
        gone[9 - len(sequence)] += weight
        kept.update(dict.fromkeys(sequence, weight))
    assert sorted(gone) == [0, 1, 2, 3, 4, 5]
    assert all(abs(number / 12000 - 1 / 6) < 0.02 for number in gone.values())
    assert all(abs(number / 12000 - (1 - 2.5 / 9)) < 0.02 for number in kept.values())


def test_short_texts_are_never_emptied():
    assert samples(("a",), 10, design="deletion").sequences == (("a",),)
    assert {len(s) for s in samples("ab", 50, design="deletion").sequences} == {1, 2}
    assert samples(("a", "a"), 10).sequences == (("a", "a"),)


def test_all_pairs_are_each_unit_and_each_pair_once():
    found = samples(TEXT, 15, design="all_pairs")
    assert len(found.sequences) == 15
    assert sum(len(s) == 1 for s in found.sequences) == 5
    assert len({frozenset(s) for s in found.sequences}) == 15
    assert found.weights.tolist() == [1.0] * 15


def test_mixed_samples_are_of_both_kinds():
    found = samples(TEXT, 400, design="mixed", deletion_weight=0.25, most=3)
    lengths = Counter()
    for sequence, weight in zip(found.sequences, found.weights.tolist(), strict=True):
        lengths[len(sequence)] += weight
    assert lengths[2] == 300
    assert sum(lengths[n] for n in (4, 5, 6, 7)) == 100


def test_errors_say_what_to_type():
    with pytest.raises(InputError, match="empty sequence"):
        samples((), 5)
    with pytest.raises(ArgumentError, match="did you mean 'deletion'"):
        samples(TEXT, 5, design="deletions")
    with pytest.raises(ArgumentError, match="too small for all pairs"):
        samples(TEXT, 14, design="all_pairs")
    with pytest.raises(ArgumentError, match="budget"):
        samples(TEXT, 0)
    with pytest.raises(ArgumentError, match="deletion_weight"):
        samples(TEXT, 5, design="mixed", deletion_weight=2)
    with pytest.raises(ArgumentError, match="two classes"):
        NaiveBayes.fit([("a",)], [[1.0, 2.0]])
    for kind in (Linear, Gam, NaiveBayes):
        with pytest.raises(NumericalError, match="not finite"):
            kind.fit([("a",)], [math.inf])
    with pytest.raises(InputError, match="does not know a unit"):
        Linear.fit([("a",)], [1.0]).predict([("b",)])


def test_surrogates_know_no_models():
    allowed = {"_errors", "_arguments", "surrogates"}
    for path in Path(pellucid.surrogates.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("pellucid"):
                assert node.module.split(".")[1] in allowed, path.name
