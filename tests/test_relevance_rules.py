"""Each rule of relevance on a single layer, against its formula written out with loops."""

from __future__ import annotations

import math
import threading

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from pellucid import ArgumentError, UnsupportedCombination
from pellucid.relevance.activations import find_activations, slope_at_zero
from pellucid.relevance.deep_taylor import DeepTaylor
from pellucid.relevance.gradient import GradientRules
from pellucid.relevance.watch import following

DEEP, JOINT, GRADIENT = DeepTaylor(), DeepTaylor(joint=True), GradientRules()


def randn(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def sent_back(rules, function, x, arriving, activations=()):
    """What comes back to x when `arriving` is at the outputs, whose numbers must not change."""
    leaf = x.detach().requires_grad_()
    with following(rules, activations):
        y = function(leaf)
    with torch.no_grad():
        assert torch.equal(y, function(x)), "the rule changed the numbers"
    (found,) = torch.autograd.grad(y, leaf, arriving)
    return found


def close(found, expected, tolerance=1e-9):
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


def over(relevance, output):
    """The stabilised division of the specification, for one number."""
    return 0.0 if output == 0 else relevance / (output + math.copysign(1e-9, output))


# ---- relevance itself: the eight rules of the alpha-beta family ----------------------------------


def slow_linear(x, weight, arriving, alpha=1.0, joint=False):
    """Rule 1, one input and one output at a time."""
    found = torch.zeros_like(x)
    pulls = ((max, max, min, min), (max, min, min, max))  # x⁺w⁺ and x⁻w⁻; x⁺w⁻ and x⁻w⁺
    for share, (a, b, c, d) in zip((alpha, 1 - alpha), pulls, strict=True):
        for j, row in enumerate(weight.tolist()):
            first = [a(xi, 0.0) * b(w, 0.0) for xi, w in zip(x.tolist(), row, strict=True)]
            second = [c(xi, 0.0) * d(w, 0.0) for xi, w in zip(x.tolist(), row, strict=True)]
            z1, z2 = sum(first), sum(second)
            if joint:
                z1 = z2 = z1 + z2
            for i, (up, down) in enumerate(zip(first, second, strict=True)):
                found[i] += share * (up * over(arriving[j], z1) + down * over(arriving[j], z2))
    return found


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("alpha", [1.0, 2.0])
def test_a_linear_layer_shares_by_sign(alpha, joint):
    x, weight, bias, arriving = randn(5), randn(4, 5, seed=1), randn(4, seed=2), randn(4, seed=3)
    expected = slow_linear(x, weight, arriving, alpha, joint)
    rules = DeepTaylor(alpha, joint)
    spellings = {
        "linear": lambda x: F.linear(x[None], weight, bias),
        "module": lambda x: torch.addmm(bias, x[None], weight.T),
        "matmul": lambda x: x[None] @ weight.T,
        "bias apart": lambda x: F.linear(x[None], weight),
    }
    for name, function in spellings.items():
        found = sent_back(rules, function, x, arriving[None])
        assert torch.allclose(found, expected, rtol=1e-9, atol=1e-9), name


def test_a_joint_denominator_conserves_relevance():
    x, weight, arriving = randn(3, 5), randn(4, 5, seed=1), randn(3, 4, seed=3)
    found = sent_back(JOINT, lambda x: F.linear(x, weight), x, arriving)
    close(found.sum(dim=1), arriving.sum(dim=1), 1e-7)


ONE_TO_ONE = {
    "gelu": F.gelu,
    "tanh": torch.tanh,
    "softmax": lambda x: x.softmax(dim=-1),
    "layer norm": lambda x: F.layer_norm(x, (5,)),
    "dropout": lambda x: F.dropout(x, 0.1, training=False),
    "a constant factor": lambda x: -3 * x / torch.arange(1, 6, dtype=x.dtype),
}


@pytest.mark.parametrize("name", ONE_TO_ONE)
def test_one_to_one_operations_pass_relevance_on(name):
    arriving = randn(3, 5, seed=1)
    close(sent_back(DEEP, ONE_TO_ONE[name], randn(3, 5), arriving), arriving)


def test_a_sum_is_shared_in_proportion():
    u, v, arriving = randn(2, 3), randn(2, 3, seed=1), randn(2, 3, seed=2)
    found = sent_back(DEEP, lambda x: x[0] + x[1], torch.stack([u, v]), arriving)
    for index in [(i, j) for i in range(2) for j in range(3)]:
        share = over(float(arriving[index]), float(u[index] + v[index]))
        assert float(found[0][index]) == pytest.approx(float(u[index]) * share, rel=1e-9)
        assert float(found[1][index]) == pytest.approx(float(v[index]) * share, rel=1e-9)


def test_nothing_is_divided_by_a_sum_of_zero():
    x = torch.tensor([[1.0, 0.0], [-1.0, 0.0]], dtype=torch.float64)
    found = sent_back(DEEP, lambda x: x[0] + x[1], x, torch.ones(2, dtype=torch.float64))
    assert torch.equal(found, torch.zeros_like(x))


def test_the_stabiliser_has_the_sign_of_the_sum():
    x = torch.tensor([[1e-9], [-2e-9]], dtype=torch.float64)
    found = sent_back(DEEP, lambda x: x[0] + x[1], x, torch.ones(1, dtype=torch.float64))
    close(found, torch.tensor([[-0.5], [1.0]], dtype=torch.float64))


def test_epsilon_is_the_least_size_of_a_sum():
    x = torch.tensor([[1.0, 1.0], [-1.0 + 1e-6, 3.0]], dtype=torch.float64)
    rules = DeepTaylor(epsilon=0.5)
    for sign, function in ((1.0, lambda x: x[0] + x[1]), (-1.0, lambda x: x[0] - -x[1])):
        found = sent_back(rules, function, x, torch.ones(2, dtype=torch.float64))
        assert float(found[0, 0]) == pytest.approx(1 / (0.5 * (2 - 1e-6)), rel=1e-6), sign
        assert float(found[0, 1]) == pytest.approx(1 / 4, rel=1e-6), sign


@pytest.mark.parametrize("attends", [True, False], ids=["mixture", "scores"])
def test_epsilon_is_the_least_size_of_a_product(attends):
    """Of a mixture its terms in one sign; of scores the product of the lengths."""
    a, v, arriving = randn(3, 4), randn(4, 5, seed=1), randn(3, 5, seed=2)
    a = a.softmax(-1) if attends else a
    x = torch.cat([a.flatten(), v.flatten()])
    found = sent_back(
        DeepTaylor(epsilon=0.3), lambda x: x[:12].view(3, 4) @ x[12:].view(4, 5), x, arriving
    )
    expected = torch.zeros_like(a)
    for i in range(3):
        for k in range(5):
            z = float(a[i] @ v[:, k])
            most = float(a[i] @ v[:, k].abs() if attends else a[i].norm() * v[:, k].norm())
            share = float(arriving[i, k]) / math.copysign(max(abs(z), 0.3 * most), z)
            expected[i] += 0.5 * a[i] * v[:, k] * share
    close(found[:12].view(3, 4), expected)


def test_a_rotation_of_queries_is_one_sum_whatever_its_angle():
    """It is neither rescaled nor kept from zero, so only relative positions matter."""
    x, arriving = randn(1, 2, 3, 4), randn(1, 2, 3, 4, seed=1)
    c, s = randn(4, seed=2), randn(4, seed=3)

    def rotated(x):
        return x * c + torch.cat([-x[..., 2:], x[..., :2]], dim=-1) * s

    expected = sent_back(DEEP, rotated, x, arriving)
    for rules in (DeepTaylor(epsilon=0.5), JOINT):
        close(sent_back(rules, rotated, x, arriving), expected, 1e-6)


def test_what_comes_back_over_a_fork_is_added_up():
    x, arriving = randn(2, 3), randn(2, 2, 3, seed=1)
    found = sent_back(DEEP, lambda x: torch.stack([x.tanh(), F.gelu(x)]), x, arriving)
    close(found, arriving[0] + arriving[1])


def test_products_of_attention_take_half_each():
    a, v = randn(2, 3, 4).softmax(-1), randn(2, 4, 5, seed=1)
    arriving = randn(2, 3, 5, seed=2)
    x = torch.cat([a.flatten(), v.flatten()])

    def product(x):
        return x[:24].view(2, 3, 4) @ x[24:].view(2, 4, 5)

    found = sent_back(DEEP, product, x, arriving)
    of_a, of_v = found[:24].view(2, 3, 4), found[24:].view(2, 4, 5)
    expected_a, expected_v = torch.zeros_like(a), torch.zeros_like(v)
    for h in range(2):
        for i in range(3):
            for k in range(5):
                share = over(float(arriving[h, i, k]), float(a[h, i] @ v[h, :, k]))
                for j in range(4):
                    expected_a[h, i, j] += 0.5 * a[h, i, j] * v[h, j, k] * share
                    expected_v[h, j, k] += 0.5 * a[h, i, j] * v[h, j, k] * share
    close(of_a, expected_a)
    close(of_v, expected_v)


def test_a_selected_token_gets_all_and_a_constant_share_is_dropped():
    x, position, arriving = randn(1, 3, 4), randn(1, 3, 4, seed=1), randn(1, 4, seed=2)
    found = sent_back(DEEP, lambda x: (x + position)[:, 0], x, arriving)
    assert torch.equal(found[:, 1:], torch.zeros(1, 2, 4, dtype=torch.float64))
    close(found[:, 0], x[:, 0] / (x + position)[:, 0] * arriving, 1e-6)


@pytest.mark.parametrize("rules", [DEEP, JOINT])
def test_masked_scores_get_nothing(rules):
    mask = torch.tensor([0.0, -torch.inf, 0.0], dtype=torch.float64)
    x, arriving = randn(2, 3), randn(2, 3, seed=1)
    found = sent_back(rules, lambda x: (x + mask).softmax(-1), x, arriving)
    close(found, arriving * torch.tensor([1.0, 0.0, 1.0]).double(), 1e-6)


def test_pixels_lie_between_the_bounds_of_their_image():
    x, weight, arriving = randn(2, 3, 4, 4), randn(5, 3, 2, 2, seed=1), randn(2, 5, 2, 2, seed=2)
    found = sent_back(DEEP, lambda x: F.conv2d(x, weight, randn(5, seed=3), 2), x, arriving)
    expected = torch.zeros_like(x)
    for b in range(2):
        low, high = float(x[b].min()), float(x[b].max())
        for o in range(5):
            for r in range(2):
                for c in range(2):
                    part = x[b, :, 2 * r : 2 * r + 2, 2 * c : 2 * c + 2]
                    w = weight[o]
                    terms = part * w - low * w.clamp(min=0) - high * w.clamp(max=0)
                    share = over(float(arriving[b, o, r, c]), float(terms.sum()))
                    expected[b, :, 2 * r : 2 * r + 2, 2 * c : 2 * c + 2] += terms * share
    close(found, expected)
    close(found.sum(), arriving.sum(), 1e-6)


def test_a_convolution_inside_a_model_is_a_linear_layer():
    x, weight, arriving = randn(1, 3, 2, 2), randn(4, 3, 2, 2, seed=1), randn(1, 4, 1, 1, seed=2)
    found = sent_back(DEEP, lambda x: F.conv2d(x.flip(0), weight), x, arriving)
    expected = slow_linear(x.flatten(), weight.flatten(1), arriving.flatten())
    close(found.flatten(), expected)


def test_a_joint_sum_keeps_what_arrived_at_each_sample():
    x, arriving = randn(2, 3, 4, 5), randn(3, 4, 5, seed=1)
    found = sent_back(JOINT, lambda x: x[0] + x[1], x, arriving)
    close(found.sum(dim=(0, 2, 3)), arriving.sum(dim=(1, 2)), 1e-6)
    for b in range(3):
        share = arriving[b] / (x[0, b] + x[1, b])
        a, c = (x[0, b] * share).sum(), (x[1, b] * share).sum()
        total = a.abs() + c.abs()
        close(found[0, b].sum(), a.abs() / total * arriving[b].sum(), 1e-6)
        close(found[0, b], x[0, b] * share * found[0, b].sum() / a, 1e-6)


# ---- changed derivatives -------------------------------------------------------------------------

RATIOS = {
    "gelu": (F.gelu, lambda x: (1 + torch.erf(x / 2**0.5)) / 2),
    "tanh gelu": (
        lambda x: F.gelu(x, approximate="tanh"),
        lambda x: (1 + torch.tanh((2 / math.pi) ** 0.5 * (x + 0.044715 * x**3))) / 2,
    ),
    "silu": (F.silu, torch.sigmoid),
    "relu": (F.relu, lambda x: (x >= 0).to(x)),
    "tanh": (torch.tanh, lambda x: torch.where(x == 0, 1.0, torch.tanh(x) / x)),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", RATIOS)
def test_an_activation_passes_all_its_relevance(name, dtype):
    function, ratio = RATIOS[name]
    x = torch.tensor([-3.0, -0.5, -1e-7, 0.0, 1e-30, 0.2, 4.0], dtype=dtype)
    found = sent_back(GRADIENT, function, x, torch.ones_like(x))
    close(found, ratio(x), 1e-5 if dtype == torch.float32 else 1e-9)
    assert float(found[3]) == float(ratio(x)[3]), "at zero it is the limit, exactly"


def test_the_slope_at_zero_is_exact():
    assert [slope_at_zero(f) for f in (F.gelu, F.silu, F.relu, torch.tanh)] == [0.5, 0.5, 1.0, 1.0]


def test_an_activation_can_keep_its_own_derivative():
    x, arriving = randn(4, 5), randn(4, 5, seed=1)
    found = sent_back(GradientRules(elementwise="gradient"), F.gelu, x, arriving)
    leaf = x.clone().requires_grad_()
    close(found, torch.autograd.grad(F.gelu(leaf), leaf, arriving)[0])


def slow_norm(x, weight, arriving, eps, centred):
    """The derivative of (x - mean) / std * weight with a constant std, entry by entry."""
    found = torch.zeros_like(x)
    for b, row in enumerate(x):
        mean = row.mean() if centred else 0.0
        std = ((row - mean) ** 2).mean().add(eps).sqrt()
        for i in range(len(row)):
            for j in range(len(row)):
                inner = float(i == j) - (1 / len(row) if centred else 0.0)
                found[b, i] += arriving[b, j] * weight[j] * inner / std
    return found


def inline_layer_norm(x, weight):
    centred = x - x.mean(-1, keepdim=True)
    return centred / torch.sqrt(centred.pow(2).mean(-1, keepdim=True) + 1e-5) * weight


def inline_rms_norm(x, weight):
    return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


def powered_rms_norm(x, weight):
    return weight * (x * torch.pow(x.pow(2).mean(-1, keepdim=True) + 1e-6, -0.5))


NORMS = {
    "layer_norm": (lambda x, w: F.layer_norm(x, (6,), w, torch.ones_like(w), 1e-5), 1e-5, True),
    "inline layer norm": (inline_layer_norm, 1e-5, True),
    "rms_norm": (lambda x, w: F.rms_norm(x, (6,), w, 1e-6), 1e-6, False),
    "inline rms norm": (inline_rms_norm, 1e-6, False),
    "powered rms norm": (powered_rms_norm, 1e-6, False),
}


@pytest.mark.parametrize("name", NORMS)
def test_the_deviation_of_a_norm_is_a_constant(name):
    function, eps, centred = NORMS[name]
    x, weight, arriving = randn(3, 6), randn(6, seed=1), randn(3, 6, seed=2)
    found = sent_back(GRADIENT, lambda x: function(x, weight), x, arriving)
    close(found, slow_norm(x, weight, arriving, eps, centred))


def test_norms_without_weight_or_eps():
    x, arriving, ones = randn(3, 6), randn(3, 6, seed=2), torch.ones(6, dtype=torch.float64)
    found = sent_back(GRADIENT, lambda x: F.layer_norm(x, (6,)), x, arriving)
    close(found, slow_norm(x, ones, arriving, 1e-5, True))
    found = sent_back(GRADIENT, lambda x: F.rms_norm(x, (6,)), x, arriving)
    close(found, slow_norm(x, ones, arriving, torch.finfo(torch.float64).eps, False))


def test_a_product_of_two_states_is_halved_and_one_with_a_constant_is_not():
    x, arriving, constant = randn(2, 3), randn(3, seed=1), randn(3, seed=2)
    found = sent_back(GRADIENT, lambda x: x[0] * x[1], x, arriving)
    close(found, torch.stack([x[1] * arriving, x[0] * arriving]) / 2)
    close((x * found).sum(), (x[0] * x[1] * arriving).sum())  # which conserves
    found = sent_back(GRADIENT, lambda x: x[0] * constant, x, arriving)
    close(found[0], constant * arriving)
    gate = nn.Parameter(constant)
    found = sent_back(GRADIENT, lambda x: x[0] * (1.0 + gate), x, arriving)
    close(found[0], (1 + constant) * arriving)  # what is made of weights is a constant


def test_softmax_is_expanded_or_constant():
    x, arriving = randn(2, 4), randn(2, 4, seed=1)
    found = sent_back(GRADIENT, lambda x: x.softmax(-1), x, arriving)
    a = x.softmax(-1)
    relevance = a * arriving  # of the probabilities
    close(x * found, x * (relevance - a * relevance.sum(-1, keepdim=True)))
    leaf = x.clone().requires_grad_()
    with following(GradientRules("constant"), ()):
        assert not leaf.softmax(-1).requires_grad


# ---- gamma ---------------------------------------------------------------------------------------


def slow_gamma(x, weight, bias, relevance, gamma):
    """The generalised rule, output by output: what agrees with its sign counts 1 + gamma times."""
    found = torch.zeros_like(x)
    for j, row in enumerate(weight):
        terms = torch.cat([x * row, bias[j : j + 1]])
        agrees = terms * terms.sum() > 0
        counted = torch.where(agrees, (1 + gamma) * terms, terms)
        found += counted[:-1] / counted.sum() * relevance[j]
    return found


@pytest.mark.parametrize("gamma", [0.05, 0.25, 1.0, 100.0])
def test_the_gamma_rule_favours_what_agrees(gamma):
    x, weight, bias = randn(6), randn(5, 6, seed=1), randn(5, seed=2)
    z = F.linear(x, weight, bias)
    arriving = randn(5, seed=3)
    found = sent_back(GradientRules(gamma=gamma), lambda x: F.linear(x, weight, bias), x, arriving)
    close(x * found, slow_gamma(x, weight, bias, arriving * z, gamma))
    found = sent_back(
        GradientRules(gamma=gamma),
        lambda x: torch.addmm(bias, x[None], weight.T),
        x,
        arriving[None],
    )
    close(x * found, slow_gamma(x, weight, bias, arriving * z, gamma))


def test_gamma_zero_is_the_epsilon_rule_and_infinity_the_positive_one():
    x, weight, bias = randn(6).abs(), randn(5, 6, seed=1), torch.zeros(5, dtype=torch.float64)
    z, arriving = F.linear(x, weight), randn(5, seed=3)

    def found(gamma):
        rules = GradientRules(gamma=gamma)
        return x * sent_back(rules, lambda x: F.linear(x, weight, bias), x, arriving)

    close(found(0.0), x * (arriving @ weight))
    close(found(1e-12), x * (arriving @ weight), 1e-8)
    side = torch.where(z[:, None] > 0, weight.clamp(min=0), weight.clamp(max=0))
    close(found(1e12), ((x * side) / (x * side).sum(1, keepdim=True)).T @ (arriving * z), 1e-8)


def test_gamma_of_a_convolution_is_that_of_its_linear_layer():
    x, weight, bias = randn(1, 3, 2, 2), randn(4, 3, 2, 2, seed=1), randn(4, seed=2)
    arriving = randn(1, 4, 1, 1, seed=3)
    rules = GradientRules(gamma=7.0, conv_gamma=0.25)
    found = sent_back(rules, lambda x: F.conv2d(x, weight, bias), x, arriving)
    z = F.conv2d(x, weight, bias).flatten()
    expected = slow_gamma(x.flatten(), weight.flatten(1), bias, arriving.flatten() * z, 0.25)
    close((x * found).flatten(), expected)


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        (GradientRules, "gamma"),
        (GradientRules, "conv_gamma"),
        (DeepTaylor, "alpha"),
        (DeepTaylor, "epsilon"),
    ],
)
def test_settings_that_mean_nothing_are_refused(rules, name):
    with pytest.raises(ArgumentError, match=f"{name}=-1"):
        rules(**{name: -1.0})


def test_a_product_added_to_a_constant_is_a_product():
    x, constant, arriving = randn(2, 1, 3, 3), randn(1, 3, 3, seed=1), randn(1, 3, 3, seed=2)

    def together(x):
        return torch.baddbmm(constant, x[0], x[1], alpha=0.5)

    def apart(x):
        return constant + 0.5 * (x[0] @ x[1])

    for rules in (DEEP, GRADIENT):
        found = sent_back(rules, together, x, arriving)
        close(found, sent_back(rules, apart, x, arriving), 1e-6)


# ---- what has no rule ----------------------------------------------------------------------------


class Cubed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * gradient


def added_in_place(x):
    y = x * 2
    y += x
    return y


def overwritten(x):
    y = torch.zeros_like(x)
    y[:2] = x[:2]
    return y


WITHOUT = {
    "exp": torch.exp,
    "sigmoid": torch.sigmoid,
    "power": lambda x: x**2,
    "softmax written out": lambda x: x / x.exp().sum(),
    "a state under a fraction": lambda x: 1 / x,
    "in place": added_in_place,
    "set item": overwritten,
    "an activation in place": lambda x: F.relu(x * 2, inplace=True),
    "a function of torch's autograd": Cubed.apply,
    "a root that nothing is divided by": lambda x: x + x.pow(2).sqrt(),
    "random": lambda x: F.dropout(x, 0.0),
    "three factors": lambda x: torch.einsum("i,i,i->i", x, x, x),
    "a rounded fraction": lambda x: torch.div(x, 2.0, rounding_mode="floor") + 0 * x,
    "an operand by name": lambda x: F.gelu(input=x),
    "a weight made of the state": lambda x: F.linear(x, torch.stack([x, x])),
}


@pytest.mark.parametrize("rules", [DEEP, GRADIENT], ids=["relevance", "gradient"])
@pytest.mark.parametrize("name", WITHOUT)
def test_an_operation_without_a_rule_is_refused(name, rules):
    leaf = randn(4).requires_grad_()
    with following(rules, ()) as watch:
        y = WITHOUT[name](leaf)
        total = y.sum()
    with pytest.raises(UnsupportedCombination, match="without a rule"):
        torch.autograd.grad(total, leaf)
    assert watch.stopped_at


def test_it_is_refused_only_where_relevance_arrives():
    leaf = randn(4).requires_grad_()
    with following(GRADIENT, ()):
        unused, y = leaf.exp(), leaf * 3
    assert unused.requires_grad
    close(torch.autograd.grad(y.sum(), leaf)[0], torch.full((4,), 3.0).double())


def test_a_leaf_of_the_model_that_is_no_parameter_is_refused():
    leaf, other = randn(4).requires_grad_(), randn(4, seed=1).requires_grad_()
    with following(GRADIENT, ()):
        y = leaf * other
    with pytest.raises(UnsupportedCombination):
        torch.autograd.grad(y.sum(), leaf)


# ---- activations that are modules ----------------------------------------------------------------


class Written(nn.Module):
    """GELU in four operations, as some models have it."""

    def forward(self, x):
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


class Shifted(nn.Module):
    def forward(self, x):
        return x.roll(1, -1) * 2


def test_modules_that_are_activations_are_found():
    model = nn.Sequential(
        nn.Linear(6, 14), Written(), nn.Dropout(0.1), nn.Identity(), Shifted(), nn.Softmax(-1),
        nn.Sigmoid(), nn.ReLU(inplace=True), nn.Tanh(), nn.LayerNorm(14, elementwise_affine=False),
    ).eval()  # fmt: skip
    found = find_activations(model, lambda: model(torch.linspace(-2, 2, 12).view(2, 6)))
    assert [type(module) for module in found] == [Written, nn.Tanh]
    assert all(not m._forward_hooks and not m._forward_pre_hooks for m in model)


@pytest.mark.parametrize("rules", [DEEP, GRADIENT], ids=["relevance", "gradient"])
def test_an_activation_written_out_counts_as_one(rules):
    module, x, arriving = Written(), randn(3, 4), randn(3, 4, seed=1)
    found = sent_back(rules, module, x, arriving, [module])
    expected = sent_back(rules, lambda x: F.gelu(x, approximate="tanh"), x, arriving)
    close(found, expected, 1e-12)
    assert not module._forward_hooks
    assert not module._forward_pre_hooks


# ---- no trace ------------------------------------------------------------------------------------


def test_nothing_is_left_after_an_error():
    module = nn.Tanh()
    with pytest.raises(ZeroDivisionError), following(GRADIENT, [module]):
        raise ZeroDivisionError
    assert torch._C._len_torch_function_stack() == 0
    assert not module._forward_hooks


def test_other_threads_are_not_watched():
    x = randn(4)
    found = []

    def elsewhere():
        leaf = x.clone().requires_grad_()
        found.append(torch.autograd.grad(F.gelu(leaf).sum(), leaf)[0])

    with following(DEEP, [nn.GELU()]):
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    leaf = x.clone().requires_grad_()
    assert torch.equal(found[0], torch.autograd.grad(F.gelu(leaf).sum(), leaf)[0])
