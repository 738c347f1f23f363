"""Shapley values of a SLALOM without sampling: an integral over two numbers.

A Shapley value is the mean over p in (0, 1) of what a player adds to a coalition that each other
player joins with probability p, since 1 / (n C(n-1, m)) is the integral of p^m (1-p)^(n-1-m); and
a quotient A / W is the integral of A e^(-t W) over t > 0. Under both signs the mean over coalitions
is a product over players:

    phi_i = int int P / q_i [w_i v_i e^(-t w_i) - (1 - e^(-t w_i)) (R - r_i)] dt dp,

    q_k = 1 - p + p e^(-t w_k),  P = prod q_k,  r_k = p w_k v_k e^(-t w_k) / q_k,  R = sum r_k.

Members of every coalition multiply P by e^(-t W) and add their w v to R. Values are counted from
the output of the empty coalition. In p the integrand is a polynomial, so that Gauss and Legendre's
rule is exact with n / 2 nodes. In log t it is smooth and decays on both sides; equal steps h then
err by e^(-pi^2 / h), whatever the spread of the weights.

Axes: p and t nodes, u players of different weight or value, c classes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

_STEP = 0.3  # of log t; the rule errs by e^(-pi^2 / 0.3) = 5e-15
_LEFT, _RIGHT = -37.0, 4.0  # log t, from the largest and to the smallest weight
_LARGE = 60.0  # e^(-t w) is zero long before log t w comes here
_DOUBLINGS = 3


class _Nodes(NamedTuple):
    """What the integrand is made of at one p and every t."""

    measure: Tensor  # t: the weight of the rule times P
    lost: Tensor  # t u: (1 - e^(-t w)) / q
    own: Tensor  # t u: w e^(-t w) / q
    joined: Tensor  # t c: R, with the members of every coalition
    p: float


def shapley_values(
    copies: Tensor,
    log_weight: Tensor,
    value: Tensor,
    fixed_weight: Tensor,
    fixed_value: Tensor,
    *,
    tolerance: float = 1e-10,
) -> tuple[Tensor, float]:
    """The value (u c) of one copy of each player, and how far twice as many nodes moved it.

    Both numbers of nodes are doubled until nothing moves by more than the tolerance, relative to
    the largest value. That all values sum to the output says nothing of their accuracy.
    """
    if not len(copies):
        return value, 0.0
    game = (copies, log_weight, value, fixed_weight, fixed_value)
    scale = float(torch.cat([value, fixed_value]).abs().max()) or 1.0
    found, error, fineness = _values(*game, 1), math.inf, 1
    while error > tolerance * scale and fineness < 2**_DOUBLINGS:
        fineness *= 2
        before, found = found, _values(*game, fineness)
        error = float((found - before).abs().max())
    return found, error


def _values(
    copies: Tensor,
    log_weight: Tensor,
    value: Tensor,
    fixed_weight: Tensor,
    fixed_value: Tensor,
    fineness: int,
) -> Tensor:
    kept, lost = torch.zeros_like(log_weight), torch.zeros_like(value)
    for at in _nodes(copies, log_weight, value, fixed_weight, fixed_value, fineness):
        kept += at.measure @ (at.own * (1 + at.p * at.lost))  # the second term puts r_i back
        lost += at.lost.T @ (at.measure[:, None] * at.joined)  # u c
    return kept[:, None] * value - lost


def shapley_interactions(
    copies: Tensor,
    log_weight: Tensor,
    value: Tensor,
    fixed_weight: Tensor,
    fixed_value: Tensor,
    *,
    fineness: int = 2,
) -> Tensor:
    """Shapley's interaction index (u u c) of one copy of a player with one copy of another.

    The second differences of the output have the integrand, with R without r_i and r_j,
    P / (q_i q_j) [(1 - e_i)(1 - e_j) R - w_i v_i e_i (1 - e_j) - w_j v_j e_j (1 - e_i)].
    """
    joint = value.new_zeros(len(value), *value.shape)  # u u c
    if not len(copies):
        return joint
    one = value.new_zeros(len(value), len(value))
    for at in _nodes(copies, log_weight, value, fixed_weight, fixed_value, fineness):
        weighed = at.measure[:, None] * at.joined  # t c
        joint += torch.einsum("ti,tc,tj->ijc", at.lost, weighed, at.lost)
        own = at.own * (1 + at.p * at.lost)  # with the r_i that R holds too much
        one += own.T @ (at.measure[:, None] * at.lost)
    single = one[..., None] * value[:, None]  # u u c
    return joint - single - single.transpose(0, 1)


def _nodes(
    copies: Tensor,
    log_weight: Tensor,
    value: Tensor,
    fixed_weight: Tensor,
    fixed_value: Tensor,
    fineness: int,
) -> Iterator[_Nodes]:
    """The nodes of the rule, all of one p at a time."""
    players = int(copies.sum())
    every = torch.cat([log_weight, fixed_weight])
    scaled, fixed = log_weight - every.max(), fixed_weight - every.max()
    step = _STEP / fineness
    log_t = torch.arange(_LEFT, _RIGHT - float(scaled.min()), step, dtype=torch.float64)
    exponent = (log_t[:, None] + scaled).clamp(max=_LARGE).exp()  # t u: t w
    stays, gone = (-exponent).exp(), torch.expm1(-exponent)  # e^(-t w), and less one
    always = (
        (log_t[:, None] + fixed).clamp(max=_LARGE).exp()
    )  # t f: t w of the members of every coalition
    enough = math.ceil(players / 2)
    many = min(enough, fineness * max(40, math.ceil(3 * math.sqrt(players))))
    for p, share in zip(*(found.tolist() for found in gauss_legendre(many)), strict=True):
        joining = 1 + p * gone  # q
        log_product = torch.log1p(p * gone) @ copies - always.sum(dim=1)
        own = exponent * stays / joining
        joined = p * (own * copies) @ value + always @ fixed_value  # t c
        yield _Nodes(step * share * log_product.exp(), -gone / joining, own, joined, p)


def gauss_legendre(many: int) -> tuple[Tensor, Tensor]:
    """Nodes in (0, 1) and weights of the rule: eigenvalues of Legendre's recursion."""
    k = torch.arange(1, many, dtype=torch.float64)
    beside = k / (4 * k * k - 1).sqrt()
    nodes, vectors = torch.linalg.eigh(torch.diag(beside, 1) + torch.diag(beside, -1))
    return (1 + nodes) / 2, vectors[0].square()
