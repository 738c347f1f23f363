"""SLALOM against closed forms, brute force over coalitions, and planted truths."""

from __future__ import annotations

import math
import time
from itertools import combinations

import pytest
import torch

from pellucid._errors import ArgumentError, InputError, NumericalError
from pellucid.surrogates import Slalom, refit_errors, samples
from pellucid.surrogates.adam import adam
from pellucid.surrogates.alternating import alternating, importance_step
from pellucid.surrogates.counts import count, shares
from pellucid.surrogates.nnls import nnls
from pellucid.surrogates.shapley import gauss_legendre

CLASSES = [None, 3]


def planted(many, classes=None, *, spread=1.0, special=(), empty=0.3, seed=0):
    """A SLALOM of normal values and importances that sum to zero."""
    generator = torch.Generator().manual_seed(seed)
    shape = (many,) if classes is None else (many, classes)
    value = torch.randn(*shape, generator=generator, dtype=torch.float64)
    importance = spread * torch.randn(many, generator=generator, dtype=torch.float64)
    return Slalom(tuple(range(many)), value, importance - importance.mean(), special, empty)


def literal(slalom, sequence):
    """Equation 4, one position after the other."""
    members = [slalom.units.index(unit) for unit in (*sequence, *slalom.special)]
    if not members:
        return torch.zeros_like(slalom.value[0]) + slalom.empty
    total = sum(math.exp(slalom.importance[i]) for i in members)
    return sum(math.exp(slalom.importance[i]) / total * slalom.value[i] for i in members)


def close(found, expected, bound=1e-12):
    torch.testing.assert_close(found, expected, rtol=0, atol=bound)


# ---- the function --------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("special", [(), (4, 0)])
def test_outputs_are_averages_of_values(classes, special):
    slalom = planted(6, classes, special=special)
    sequences = [(0,), (1, 2, 2, 5), (3,) * 7, (), (5, 4, 3, 2, 1, 0)]
    found = slalom.predict(sequences)
    close(found, torch.stack([literal(slalom, sequence) for sequence in sequences]))
    assert (found[:3] <= slalom.value.amax(dim=0)).all()
    assert (found[:3] >= slalom.value.amin(dim=0)).all()


def test_a_batch_equals_its_members_and_repeats_change_nothing():
    slalom = planted(6)
    sequences = [(0, 1), (2, 2, 3, 4, 5), (1,)]
    together = slalom.predict(sequences)
    for row, sequence in zip(together, sequences, strict=True):
        assert row == slalom.predict([sequence])[0]
    close(slalom.predict([(3,) * 9])[0], slalom.value[3])
    close(slalom.predict([(1, 2) * 5]), slalom.predict([(1, 2)]))


def test_a_constant_in_the_importances_changes_nothing_however_large():
    one = planted(6, spread=3)
    other = Slalom(one.units, one.value, one.importance + 5000, empty=one.empty)
    sequence = (0, 1, 1, 4)
    close(other.predict([sequence]), one.predict([sequence]), 1e-11)
    for kind in ("contribution", "gradient", "removal"):
        close(other.scores(sequence, kind), one.scores(sequence, kind), 1e-11)
    close(other.shapley(sequence)[0], one.shapley(sequence)[0], 1e-11)


def test_importances_far_apart_stay_finite():
    slalom = Slalom(("a", "b"), torch.tensor([1.0, 2.0]), torch.tensor([-900.0, 900.0]))
    close(slalom.predict([("a", "b"), ("a",)]), torch.tensor([2.0, 1.0], dtype=torch.float64))
    close(slalom.scores(("a", "b")), torch.tensor([0.0, 1.0], dtype=torch.float64))


@pytest.mark.parametrize("classes", CLASSES)
def test_derivatives_are_those_of_the_graph(classes):
    slalom = planted(5, classes, special=(2,))
    sequences = [(0, 1, 1), (3,), (4, 2, 0)]

    def output(value, importance):
        return Slalom(slalom.units, value, importance, slalom.special).predict(sequences)

    by_value, by_importance = torch.autograd.functional.jacobian(
        output, (slalom.value, slalom.importance)
    )
    of_value, of_importance = slalom.derivatives(sequences)
    if classes is None:
        close(of_value, by_value)
        close(of_importance, by_importance)
    else:
        for c in range(classes):
            close(of_value, by_value[:, c, :, c])
            close(of_importance[..., c], by_importance[:, c])
    close(of_importance.sum(dim=1), torch.zeros_like(of_importance[:, 0]))


@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("special", [(), (4, 0)])
def test_scores_keep_their_identities(classes, special):
    slalom = planted(6, classes, special=special)
    sequence = (0, 1, 1, 3, 5, 1)
    output = slalom.predict([sequence])[0]
    every = {k: slalom.scores(sequence, k, special=True) for k in ("contribution", "gradient")}
    close(every["contribution"].sum(dim=0), output)
    close(every["gradient"].sum(dim=0), torch.zeros_like(output))
    removal = slalom.scores(sequence, "removal")
    for i in range(len(sequence)):
        close(removal[i], output - literal(slalom, sequence[:i] + sequence[i + 1 :]))
    members = count([sequence + special], slalom.units)
    share = shares(members, slalom.importance)[0] / members[0].clamp(min=1)
    share = share[list(sequence)].reshape(-1, *[1] * (slalom.value.ndim - 1))
    close(removal, share * (slalom.value[list(sequence)] - output) / (1 - share))
    close(removal * (1 - share), slalom.scores(sequence, "gradient"))


def test_the_gradient_is_that_of_soft_removal():
    slalom = planted(5)
    sequence = [0, 1, 1, 4]
    keep = torch.ones(4, dtype=torch.float64, requires_grad=True)
    weight = keep * slalom.importance[sequence].exp()
    ((weight * slalom.value[sequence]).sum() / weight.sum()).backward()
    close(slalom.scores(sequence, "gradient"), keep.grad)


def test_linear_scores_are_equation_65():
    slalom = planted(5)
    found = slalom.scores((3, 1), "linear")
    close(found, (slalom.importance.exp() * slalom.value)[[3, 1]])
    assert slalom.scores((3, 1), "value").tolist() == slalom.value[[3, 1]].tolist()
    assert slalom.scores((3, 1), "importance").tolist() == slalom.importance[[3, 1]].tolist()


def test_the_last_member_falls_to_the_empty_output():
    slalom = planted(3, empty=0.7)
    close(slalom.scores((1,)), slalom.value[[1]] - 0.7)
    assert slalom.scores(()).shape == (0,)


# ---- recovery ------------------------------------------------------------------------------------


class Asked:
    """A SLALOM that counts what it is asked."""

    def __init__(self, slalom):
        self.slalom, self.number = slalom, 0

    def __call__(self, sequences):
        self.number += len(sequences)
        return self.slalom.predict(sequences)


@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("many", [1, 2, 12, 128])
def test_recovery_is_exact(classes, many):
    slalom = planted(many, classes, spread=1.5)
    if many > 2:
        slalom.value[many // 2] = slalom.value[0]
    asked = Asked(slalom)
    found = Slalom.recover(asked, slalom.units)
    assert asked.number == 2 * many - 1
    close(found.value, slalom.value)
    close(found.importance, slalom.importance, 1e-8)
    assert found.identified.all()


def test_recovery_sums_to_the_gauge():
    slalom = planted(7)
    found = Slalom.recover(slalom.predict, slalom.units, gauge=3.5)
    close(found.importance.sum(), torch.tensor(3.5, dtype=torch.float64))
    close(found.importance - 0.5, slalom.importance, 1e-10)


def test_recovery_says_what_cannot_be_told():
    same = Slalom((0, 1, 2), torch.ones(3), torch.tensor([0.0, 1.0, -1.0]))
    found = Slalom.recover(same.predict, same.units)
    assert not found.identified.any()
    assert found.importance.tolist() == [0, 0, 0]
    drowned = Slalom((0, 1, 2), torch.tensor([0.0, 1.0, 0.4]), torch.tensor([0.0, 1.0, -90.0]))
    found = Slalom.recover(drowned.predict, drowned.units)
    assert found.identified.tolist() == [True, True, False]
    assert found.importance.isfinite().all()


def test_symmetric_recovery_takes_the_mean_of_both_orders():
    slalom = planted(9)
    number = 0

    def biased(sequences):
        nonlocal number
        number += len(sequences)
        ends = torch.tensor([float(s[0] - s[-1]) for s in sequences], dtype=torch.float64)
        return slalom.predict(sequences) + 1e-3 * ends

    found = Slalom.recover(biased, slalom.units, symmetric=True)
    assert number == 9 + 2 * 8
    close(found.importance, slalom.importance, 1e-10)


# ---- fitting -------------------------------------------------------------------------------------


def aligned(fit, truth):
    where = [truth.units.index(unit) for unit in fit.units]
    return truth.value[where], truth.importance[where]


@pytest.mark.parametrize("classes", CLASSES)
def test_gauss_newton_recovers_what_was_planted(classes):
    truth = planted(20, classes)
    drawn = samples(range(20), 400, design="all_pairs")
    fit = Slalom.fit(drawn.sequences, truth.predict(drawn.sequences), weights=drawn.weights)
    value, importance = aligned(fit, truth)
    assert fit.report.mse < 1e-10
    assert fit.report.r2 > 1 - 1e-9
    close(fit.value, value, 1e-3)
    close(fit.importance, importance, 1e-3)
    assert abs(fit.importance.sum()) < 1e-12
    assert fit.identified.all()


def test_special_members_are_fitted_with_the_rest():
    truth = planted(12, special=(10, 11))
    drawn = samples(range(10), 300, design="mixed")
    fit = Slalom.fit(drawn.sequences, truth.predict(drawn.sequences), special=(10, 11))
    assert fit.report.mse < 1e-8
    assert not fit.identified[fit.units.index(10)]  # two that are never apart
    one = planted(11, special=(10,))
    fit = Slalom.fit(drawn.sequences, one.predict(drawn.sequences), special=(10,))
    assert fit.identified.all()
    close(fit.importance, aligned(fit, one)[1], 5e-3)


def test_weights_are_repeated_rows():
    truth = planted(5)
    sequences = samples(range(5), 15, design="all_pairs").sequences
    noise = torch.randn(15, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    scores = truth.predict(sequences) + 0.1 * noise
    weights = torch.arange(15) % 3 + 1
    settings = {"units": truth.units, "diagnose": False}
    one = Slalom.fit(sequences, scores, weights=weights, **settings)
    repeated = [s for s, w in zip(sequences, weights.tolist(), strict=True) for _ in range(w)]
    other = Slalom.fit(repeated, scores.repeat_interleave(weights), **settings)
    close(one.value, other.value, 1e-8)
    close(one.importance, other.importance, 1e-8)


@pytest.mark.parametrize("classes", CLASSES)
def test_gauss_newton_ends_where_the_gradient_vanishes(classes):
    truth = planted(7, classes, special=(6,))
    drawn = samples(range(6), 150, design="mixed", most=3)
    scores = truth.predict(drawn.sequences)
    made = torch.Generator().manual_seed(5)
    scores = scores + 0.3 * torch.randn(*scores.shape, generator=made, dtype=torch.float64)
    settings = {"value_prior": 1e-3, "importance_prior": 1e-3, "special": (6,)}
    fit = Slalom.fit(drawn.sequences, scores, weights=drawn.weights, **settings)
    value, importance = fit.value.clone().requires_grad_(), fit.importance.clone().requires_grad_()
    share = drawn.weights / drawn.weights.sum()
    found = Slalom(fit.units, value, importance, (6,)).predict(drawn.sequences)
    error = (found - scores).reshape(len(share), -1).square().sum(dim=1)
    mean = (share @ scores.reshape(len(share), -1)).reshape(scores.shape[1:])
    variance = (share @ (scores - mean).reshape(len(share), -1).square()).sum()
    loss = share @ error + 1e-3 * (value - mean).square().sum()
    (loss + 1e-3 * variance * importance.square().sum()).backward()
    close(value.grad, torch.zeros_like(value), 1e-7)
    close(importance.grad, torch.zeros_like(importance), 1e-6)


def test_scores_on_another_scale_have_the_same_importances():
    truth = planted(8)
    drawn = samples(range(8), 100, seed=4)
    noise = torch.randn(len(drawn.sequences), generator=torch.Generator().manual_seed(2)).double()
    scores = truth.predict(drawn.sequences) + 0.1 * noise
    one = Slalom.fit(drawn.sequences, scores)
    other = Slalom.fit(drawn.sequences, 1000 * scores - 70)
    close(other.importance, one.importance, 1e-6)
    close((other.value + 70) / 1000, one.value, 1e-6)


def test_two_classes_are_one_difference():
    truth = planted(8)
    drawn = samples(range(8), 200, design="all_pairs")
    scores = truth.predict(drawn.sequences)
    both = torch.stack([-scores / 2, scores / 2], dim=1)  # centred logits
    one, two = Slalom.fit(drawn.sequences, scores), Slalom.fit(drawn.sequences, both)
    close(two.value[:, 1] - two.value[:, 0], one.value, 1e-4)
    close(two.importance, one.importance, 1e-4)


def test_adam_takes_algorithm_1s_steps():
    truth = planted(4)
    sequences = [(0, 1), (1, 2), (2, 3), (3, 0), (1,)]
    counts, target = count(sequences, truth.units), truth.predict(sequences)[:, None]
    weights = torch.full((5,), 0.2, dtype=torch.float64)
    made = torch.Generator().manual_seed(4)
    value, importance, steps = adam(
        counts, target, weights, made, pool=5, rate=0.01, batch=3, epochs=10
    )
    v = torch.zeros(4, 1, dtype=torch.float64, requires_grad=True)
    s = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([v, s], lr=0.01)
    made = torch.Generator().manual_seed(4)
    for _ in range(20):
        rows = torch.multinomial(weights, 3, replacement=True, generator=made)
        optimizer.zero_grad()
        share = torch.softmax(s + counts[rows].log(), dim=1)
        (share @ v - target[rows]).square().sum().backward()
        optimizer.step()
    assert steps == 20
    close(value, v.detach(), 1e-9)
    close(importance, s.detach(), 1e-9)


def test_eff_comes_to_what_was_planted_with_the_papers_pool():
    truth = planted(6)
    drawn = samples(range(6), 5000)
    scores = truth.predict(drawn.sequences)
    fit = Slalom.fit(drawn.sequences, scores, "eff", weights=drawn.weights)
    assert fit.report.mse < 1e-8
    close(fit.importance, aligned(fit, truth)[1], 1e-3)
    again = Slalom.fit(drawn.sequences, scores, "eff", weights=drawn.weights)
    assert torch.equal(fit.importance, again.importance)
    assert abs(fit.importance.sum()) < 1e-12


def test_nnls_meets_the_conditions_of_an_optimum():
    generator = torch.Generator().manual_seed(0)
    for _ in range(5):
        matrix = torch.randn(12, 8, generator=generator, dtype=torch.float64)
        right = torch.randn(12, generator=generator, dtype=torch.float64)
        found = nnls(matrix, right)
        slope = matrix.T @ (right - matrix @ found)
        assert (found >= 0).all()
        assert (slope <= 1e-10).all()
        close(slope[found > 0], torch.zeros(int((found > 0).sum()), dtype=torch.float64), 1e-10)
        least = torch.inf
        for size in range(1, 9):
            for kept in combinations(range(8), size):
                solved = torch.linalg.lstsq(matrix[:, kept], right[:, None]).solution[:, 0]
                if (solved >= 0).all():
                    least = min(least, float((matrix[:, kept] @ solved - right).norm()))
        assert float((matrix @ found - right).norm()) == pytest.approx(least, abs=1e-10)


def test_the_importance_step_is_equation_77():
    truth = planted(5)
    sequences = samples(range(5), 60, seed=2).sequences
    counts, target = count(sequences, truth.units), truth.predict(sequences)[:, None]
    weights = torch.full((len(counts),), 1 / len(counts), dtype=torch.float64)
    zero = torch.zeros(5, dtype=torch.float64)
    for reweight in (False, True):
        found = importance_step(
            counts, target, weights, truth.value[:, None], zero, reweight=reweight
        )
        close(found, truth.importance, 1e-8)  # at the true values its least error is zero


@pytest.mark.parametrize("reweight", [False, True])
def test_turns_never_raise_the_error(reweight):
    truth = planted(9, spread=2)
    drawn = samples(range(9), 120, design="deletion", seed=3)
    counts = count(drawn.sequences, truth.units)
    noise = torch.randn(len(counts), 1, generator=torch.Generator().manual_seed(0)).double()
    target = truth.predict(drawn.sequences)[:, None] + 0.05 * noise
    weights = drawn.weights / drawn.weights.sum()
    errors = []
    for rounds in range(1, 8):
        value, importance, _ = alternating(
            counts, target, weights, rounds=rounds, reweight=reweight
        )
        error = shares(counts, importance) @ value - target
        errors.append(float((weights @ error.square()).sum()))
    assert errors == sorted(errors, reverse=True)
    fit = Slalom.fit(drawn.sequences, target[:, 0], "fidel", weights=drawn.weights, polish=True)
    assert fit.report.mse <= errors[-1]


def test_standard_errors_are_those_of_refits_and_of_repeated_noise():
    truth = planted(5)
    sequences = samples(range(5), 15, design="all_pairs").sequences * 8
    clean = truth.predict(sequences)
    generator = torch.Generator().manual_seed(0)
    noisy = [clean + 0.02 * torch.randn(120, generator=generator).double() for _ in range(100)]
    fits = [Slalom.fit(sequences, scores) for scores in noisy]
    scatter = torch.stack([fit.importance for fit in fits]).std(dim=0)
    claimed = torch.stack([fit.report.importance_error for fit in fits]).mean(dim=0)
    assert (claimed / scatter - 1).abs().max() < 0.3
    scatter = torch.stack([fit.value for fit in fits]).std(dim=0)
    claimed = torch.stack([fit.report.value_error for fit in fits]).mean(dim=0)
    assert (claimed / scatter - 1).abs().max() < 0.3
    value, importance = refit_errors(sequences, noisy[0], times=100)
    assert (importance / fits[0].report.importance_error - 1).abs().max() < 0.4
    assert (value / fits[0].report.value_error - 1).abs().max() < 0.4
    again = refit_errors(sequences, noisy[0], times=100)
    assert torch.equal(importance, again[1])


def test_what_the_data_do_not_tell_is_said():
    truth = planted(4)
    fit = Slalom.fit([(0,), (1,), (2,), (3,)], truth.predict([(0,), (1,), (2,), (3,)]))
    assert not fit.identified.any()  # single units say nothing of importances
    assert fit.report.importance_error.isinf().all()
    close(fit.value, truth.value, 1e-6)
    fit = Slalom.fit([(0, 1), (0,), (1,)], truth.predict([(0, 1), (0,), (1,)]), units=truth.units)
    assert not fit.identified[2:].any()
    assert torch.isfinite(fit.predict([(2, 3)])).all()


def test_held_out_sequences_measure_and_nothing_is_left_behind():
    truth = planted(10)
    drawn = samples(range(10), 300)
    before = torch.get_rng_state()
    fit = Slalom.fit(drawn.sequences, truth.predict(drawn.sequences), held_out=0.2, seed=1)
    assert fit.report.held_out_mse < 1e-6
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("preset", ["default", "eff", "fidel"])
def test_texts_of_one_unit_and_empty_samples(preset):
    fit = Slalom.fit([("a",), ("a", "a"), ()], [2.0, 2.0, 0.5], preset, epochs=3000)
    assert fit.predict([("a",), ()]).tolist() == pytest.approx([2.0, 0.5], abs=1e-3)
    assert fit.importance.tolist() == [0.0]
    assert not any(t.isnan().any() for t in (fit.value, fit.report.value_error))


# ---- Shapley values ------------------------------------------------------------------------------


def marginal_means(slalom, sequence):
    """Shapley's formula, one coalition after the other."""
    n = len(sequence)
    found = torch.zeros(n, *slalom.value.shape[1:], dtype=torch.float64)
    for i in range(n):
        rest = [j for j in range(n) if j != i]
        for size in range(n):
            weight = 1 / (n * math.comb(n - 1, size))
            for some in combinations(rest, size):
                least = [sequence[j] for j in some]
                pair = slalom.predict([[*least, sequence[i]], least])
                found[i] += weight * (pair[0] - pair[1])
    return found


@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("special", [(), (4, 0)])
@pytest.mark.parametrize("spread", [0, 1, 20, 300])
def test_shapley_values_are_means_of_marginals(classes, special, spread):
    slalom = planted(6, classes, spread=spread, special=special)
    for sequence in [(0, 1, 2, 3, 5, 1, 1), (3,), (2, 2, 2)]:
        found, error = slalom.shapley(sequence)
        assert error < 1e-10
        close(found, marginal_means(slalom, sequence), 1e-10)


def test_shapley_values_of_ten_tokens():
    slalom = planted(10, spread=2)
    close(slalom.shapley(range(10))[0], marginal_means(slalom, range(10)), 1e-12)


def test_shapley_values_of_five_hundred_tokens():
    slalom = planted(500, spread=2)
    start = time.perf_counter()
    found, error = slalom.shapley(range(500))
    took = time.perf_counter() - start
    close(found.sum(), slalom.predict([range(500)])[0] - 0.3, 1e-12)
    assert error < 1e-12
    assert took < 2


@pytest.mark.parametrize(("m", "k"), [(30, 20), (300, 200)])
def test_shapley_values_of_two_weights_are_known_in_closed_form(m, k):
    """Many copies of two units: a sum over how many of each are there, in exact weights."""
    slalom = planted(2, spread=2)
    w, v = slalom.importance.exp().tolist(), slalom.value.tolist()

    def output(a, b):
        return (a * w[0] * v[0] + b * w[1] * v[1]) / (a * w[0] + b * w[1]) if a + b else 0.3

    n, expected = m + k, 0.0
    for a in range(m):
        for b in range(k + 1):
            ways = math.comb(m - 1, a) * math.comb(k, b) / (n * math.comb(n - 1, a + b))
            expected += ways * (output(a + 1, b) - output(a, b))
    found, _ = slalom.shapley((0,) * m + (1,) * k)
    assert float(found[0]) == pytest.approx(expected, abs=1e-12)
    assert torch.equal(found[:m], found[0].expand(m))


def test_properties_of_shapley_values():
    slalom = planted(6)
    sequence = (0, 1, 2, 3)
    found = slalom.shapley(sequence)[0]
    moved = Slalom(slalom.units, slalom.value + 5, slalom.importance, empty=5.3)
    close(moved.shapley(sequence)[0], found)
    even = Slalom(slalom.units, torch.full((6,), 2.0), slalom.importance, empty=0.5)
    close(even.shapley(sequence)[0], torch.full((4,), 1.5 / 4, dtype=torch.float64))
    light = slalom.importance.clone()
    light[0] = -80.0  # no dummy: without it there is nothing, and that has an output of its own
    found = Slalom(slalom.units, slalom.value, light, empty=0.3).shapley(sequence)[0]
    close(found[0], (slalom.value[0] - 0.3) / 4)
    assert slalom.shapley(())[0].shape == (0,)


@pytest.mark.parametrize("special", [(), (4,)])
@pytest.mark.parametrize("classes", CLASSES)
def test_interactions_are_means_of_second_differences(special, classes):
    slalom = planted(6, classes, spread=2, special=special)
    sequence = (0, 1, 2, 2, 5)
    n = len(sequence)
    found = slalom.interactions(sequence)
    for i in range(n):
        for j in range(n):
            expected = torch.zeros_like(slalom.value[0])
            rest = [k for k in range(n) if k not in (i, j)]
            for size in range(n - 1 if i != j else 0):
                for some in combinations(rest, size):
                    least = [sequence[k] for k in some]
                    ends = [*least, sequence[i]], [*least, sequence[j]]
                    both = slalom.predict([[*ends[0], sequence[j]], *ends, least])
                    second = both[0] - both[1] - both[2] + both[3]
                    expected += second / ((n - 1) * math.comb(n - 2, size))
            close(found[i, j], expected, 1e-11)
    assert slalom.interactions(()).numel() == 0


def test_the_gauss_legendre_rule_integrates_polynomials():
    nodes, weights = gauss_legendre(7)
    for degree in range(14):
        assert float(weights @ nodes**degree) == pytest.approx(1 / (degree + 1), abs=1e-14)


# ---- errors --------------------------------------------------------------------------------------


def test_errors_say_what_to_type():
    slalom = planted(3)
    with pytest.raises(InputError, match="does not know a unit"):
        slalom.predict([(7,)])
    with pytest.raises(ArgumentError, match="did you mean 'gradient'"):
        slalom.scores((0,), "gradiant")
    with pytest.raises(NumericalError, match=r"scores\[1\]"):
        Slalom.fit([(0,), (1,)], [1.0, math.nan])
    with pytest.raises(ArgumentError, match="one row of scores"):
        Slalom.fit([(0,), (1,)], [1.0])
    with pytest.raises(InputError, match="no sequence is left"):
        Slalom.fit([(), ()], [1.0, 2.0])
    with pytest.raises(ArgumentError, match="unknown preset"):
        Slalom.fit([(0,)], [1.0], "efff")
    with pytest.raises(ArgumentError, match="unknown setting"):
        Slalom.fit([(0,)], [1.0], epoch=3)
    with pytest.raises(ArgumentError, match="held_out is out"):
        Slalom.fit([(0,)], [1.0], held_out=1.5)
    with pytest.raises(ArgumentError, match="multiplicities"):
        Slalom.fit([(0,)], [1.0], weights=[-1.0])
    with pytest.raises(ArgumentError, match="cannot be recovered"):
        Slalom.recover(slalom.predict, (0, 0))
    with pytest.raises(ArgumentError, match="do not belong"):
        Slalom((0, 1), torch.zeros(3), torch.zeros(2))
