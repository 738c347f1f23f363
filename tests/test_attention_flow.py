"""Attention flow against the textbook's augmenting paths in exact fractions, and what bounds it."""

from collections import deque
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import pellucid
from pellucid.methods._max_flow import max_flows


def by_augmenting(capacities, source, sink):
    """Edmonds and Karp: shortest augmenting paths, until there is none."""
    layers, width = len(capacities), len(source)
    open_ = {}
    for node in range(width):
        open_["source", (0, node)] = source[node]
        for layer in range(layers):
            for other in range(width):
                edge = (layer, node), (layer + 1, other)
                open_[edge] = capacities[layer][node][other]
    open_ |= {(b, a): Fraction(0) for a, b in open_}
    ways = {}
    for a, b in open_:
        ways.setdefault(a, []).append(b)
    total, goal = Fraction(0), (layers, sink)
    while True:
        before, queue = {"source": None}, deque(["source"])
        while queue and goal not in before:
            node = queue.popleft()
            for other in ways[node]:
                if other not in before and open_[node, other] > 0:
                    before[other] = node
                    queue.append(other)
        if goal not in before:
            return total
        path, node = [], goal
        while before[node] is not None:
            path.append((before[node], node))
            node = before[node]
        least = min(open_[edge] for edge in path)
        for a, b in path:
            open_[a, b] -= least
            open_[b, a] += least
        total += least


def literal(capacities, source):
    """The same for every sink, of fractions that equal the floats."""
    exact = [[[Fraction(x) for x in row] for row in layer] for layer in capacities.tolist()]
    given_ = [Fraction(x) for x in source.tolist()]
    return [float(by_augmenting(exact, given_, sink)) for sink in range(len(given_))]


@st.composite
def networks(draw):
    layers, width = draw(st.integers(1, 4)), draw(st.integers(2, 5))
    numbers = st.one_of(st.just(0.0), st.integers(1, 16).map(lambda n: n / 8))
    cells = draw(st.lists(numbers, min_size=layers * width**2, max_size=layers * width**2))
    source = draw(st.lists(numbers, min_size=width, max_size=width))
    return (
        torch.tensor(cells, dtype=torch.float64).view(layers, width, width),
        torch.tensor(source, dtype=torch.float64),
    )


@given(networks())
def test_the_flow_is_the_largest(network):
    capacities, source = network
    assert max_flows(capacities, source).tolist() == pytest.approx(literal(*network), abs=1e-9)


@pytest.mark.parametrize("peak", [1, 6])
@pytest.mark.parametrize("shape", [(2, 6), (5, 5)])
def test_the_flow_of_attention_is_the_largest(peak, shape):
    layers, width = shape
    draw = torch.randn(layers, width, width, generator=torch.Generator().manual_seed(peak))
    mixed = ((peak * draw.double()).softmax(-1) + torch.eye(width)) / 2
    for source in (torch.eye(width)[0], torch.ones(width) / width):
        found = max_flows(mixed, source.double())
        assert found.tolist() == pytest.approx(literal(mixed, source.double()), abs=1e-9)


def test_a_flow_that_must_turn_back():
    """Two shortest ways share an edge, so the first must be undone in part."""
    capacities = torch.zeros(3, 3, 3, dtype=torch.float64)
    capacities[0, 0, 0] = capacities[0, 0, 1] = 1
    capacities[1, 0, 0] = capacities[1, 0, 1] = capacities[1, 1, 0] = 1
    capacities[2, 0, 2] = capacities[2, 1, 2] = 1
    source = torch.tensor([2.0, 0, 0], dtype=torch.float64)
    assert max_flows(capacities, source).tolist() == [0, 0, 2]


def test_one_block_by_hand():
    """What leads to a token is the whole way: its attention, mixed with the identity."""
    capacities = torch.tensor([[[0.75, 0.25], [0.1, 0.9]]], dtype=torch.float64)
    assert max_flows(capacities, torch.tensor([1.0, 0.0]).double()).tolist() == [0.75, 0.25]


def test_results_do_not_depend_on_how_many_sinks_go_at_once(monkeypatch):
    draw = torch.rand(3, 7, 7, generator=torch.Generator().manual_seed(0)).double()
    source = torch.eye(7, dtype=torch.float64)[0]
    at_once = max_flows(draw, source)
    monkeypatch.setattr("pellucid.methods._max_flow._AT_ONCE", 1)
    torch.testing.assert_close(max_flows(draw, source), at_once, atol=1e-12, rtol=0)


# ---- the method ----------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["bert", "vit"])
def test_it_lies_between_rollout_and_what_leaves_the_source(tiny, family):
    """Rollout follows one unit that is shared out, which is one way for it to flow."""
    model = tiny(family)
    raw = "the finely made film" if family == "bert" else torch.zeros(32, 48, 3, dtype=torch.uint8)
    flow = pellucid.explain(model, raw, method="attention_flow")
    rollout = pellucid.explain(model, raw, method="rollout")
    assert (flow.scores >= rollout.scores - 1e-6).all()
    assert (flow.scores <= 1 + 1e-6).all()


def test_it_is_the_flow_through_the_model_s_own_attention(tiny):
    seen = {}

    def method(case):
        seen["maps"] = case.record(pellucid.Needs.ATTENTION).each("attention")
        seen["readout"] = case.readout
        return case.randn()

    model, text = tiny("bert"), "a fine film"
    pellucid.explain(model, text, method=method)
    blocks = [maps[0].double().mean(dim=0) for maps in reversed(seen["maps"])]
    mixed = torch.stack([(one + torch.eye(len(one))) / 2 for one in blocks])
    expected = literal(mixed, seen["readout"][0].double())
    found = pellucid.explain(model, text, method="attention_flow")
    assert found.scores.tolist() == pytest.approx(expected, abs=1e-6)
