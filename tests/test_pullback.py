"""The pullback metric against dense truth, and what an output metric promises."""

import itertools

import numpy as np
import pytest
import torch

import pellucid
from pellucid import ArgumentError, Target
from pellucid._case import Case
from pellucid.geometry.importance import block_importance
from pellucid.geometry.narrow import narrow_root
from pellucid.geometry.outputs import Output, contrasts_of, pulled_back
from pellucid.geometry.pullback import Pullback, interactions, token_blocks
from pellucid.testing.tiny import build, sample_inputs

QUANTITIES = ["logits", "centred_logits", "probabilities", "fisher", "log_odds"]


def rows_of(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def plain(quantity, z):
    """The quantity itself, as its definition has it."""
    if quantity == "logits":
        return z
    if quantity == "centred_logits":
        return z - z.mean(dim=-1, keepdim=True)
    if quantity == "log_odds":
        best = z.argmax(dim=-1, keepdim=True)
        rest = z.scatter(-1, best, -torch.inf).logsumexp(dim=-1, keepdim=True)
        return z.gather(-1, best) - rest
    p = z.softmax(dim=-1)
    return p if quantity == "probabilities" else 2 * p.sqrt()


# ---- outputs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, 3, 7, 40])
def test_contrasts_are_orthonormal_and_blind_to_constants(count):
    h = contrasts_of(count, torch.device("cpu"))
    assert torch.allclose(h @ h.T, torch.eye(count - 1, dtype=torch.float64), atol=1e-12)
    assert (h @ torch.ones(count, dtype=torch.float64)).abs().max() < 1e-12


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_the_metric_is_that_of_the_quantity(quantity):
    """(R J_y)'(R J_y) = J_psi' J_psi, with the derivatives of the definition itself."""
    z = rows_of(1, 5) * 2
    output = Output.parse(quantity)
    coordinates = output.bind(z)
    jacobian = torch.func.jacrev(lambda one: coordinates(one[None])[0])(z[0])  # r c
    b = pulled_back(coordinates, coordinates(z), jacobian[None])[0]
    truth = torch.func.jacrev(lambda one: plain(quantity, one))(z[0])
    assert torch.allclose(b.T @ b, truth.T @ truth, atol=1e-12)


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_psi_measures_the_distances_of_the_quantity(quantity):
    z = rows_of(6, 4)
    z[3:] = z[:3] + 0.3 * rows_of(3, 4, seed=1)
    coordinates = Output.parse(quantity).bind(z[:3])
    ours = coordinates.psi(coordinates(z[:3])) - coordinates.psi(coordinates(z[3:]))
    if quantity == "log_odds":
        classes = z[:3].argmax(dim=-1, keepdim=True)

        def odds(logits):
            rest = logits.scatter(-1, classes, -torch.inf).logsumexp(dim=-1, keepdim=True)
            return logits.gather(-1, classes) - rest

        truth = odds(z[:3]) - odds(z[3:])
    else:
        truth = plain(quantity, z[:3]) - plain(quantity, z[3:])
    assert torch.allclose(ours.norm(dim=1), truth.norm(dim=1), atol=1e-12)


@pytest.mark.parametrize("quantity", ["centred_logits", "probabilities", "fisher"])
def test_these_are_blind_to_a_constant_added_to_all_logits(quantity):
    z = rows_of(3, 6)
    coordinates = Output.parse(quantity).bind(z)
    assert torch.allclose(coordinates(z), coordinates(z + 7.0), atol=1e-12)


def test_what_probability_rows_sum_to():
    """1'B = 0 for probabilities, sqrt(p)'B = 0 for Fisher."""
    z, jacobian = rows_of(2, 5), rows_of(2, 4, 9, seed=2)
    p = z.softmax(dim=-1)
    for quantity, weights in (("probabilities", torch.ones_like(p)), ("fisher", p.sqrt())):
        coordinates = Output.parse(quantity).bind(z)
        b = pulled_back(coordinates, coordinates(z), jacobian)
        assert torch.einsum("bq,bqn->bn", weights, b).abs().max() < 1e-12


def test_fisher_is_the_second_order_of_kl():
    z = rows_of(1, 5)
    coordinates = Output.parse("fisher").bind(z)
    jacobian = torch.func.jacrev(lambda one: coordinates(one[None])[0])(z[0])
    b = pulled_back(coordinates, coordinates(z), jacobian[None])[0]
    v = rows_of(5, seed=4)
    ratios = []
    for size in (1e-2, 1e-3):
        p, q = z[0].softmax(-1), (z[0] + size * v).softmax(-1)
        divergence = (p * (p / q).log()).sum()
        ratios.append(float(divergence / (0.5 * (b @ (size * v)).square().sum())))
    assert abs(ratios[0] - 1) < 2e-2
    assert abs(ratios[1] - 1) < 2e-3


def test_top_k_tells_those_apart_and_one_bin_for_the_rest():
    z = rows_of(2, 30)
    coordinates = Output.parse("fisher", 3).bind(z)
    p = z.softmax(dim=-1)
    top = p.topk(3, dim=-1).values
    coarse = torch.cat([top, 1 - top.sum(dim=-1, keepdim=True)], dim=-1)
    assert torch.allclose(coordinates.psi(coordinates(z)), 2 * coarse.sqrt(), atol=1e-10)


def test_the_fisher_metric_of_fewer_bins_is_not_larger():
    z = rows_of(1, 12)
    traces = []
    for k in (2, 5, 11):
        coordinates = Output.parse("fisher", k).bind(z)
        jacobian = torch.func.jacrev(lambda one, c=coordinates: c(one[None])[0])(z[0])
        b = pulled_back(coordinates, coordinates(z), jacobian[None])[0]
        traces.append(float((b**2).sum()))
    assert traces == sorted(traces)


def test_a_function_with_a_metric_of_its_own():
    z = rows_of(2, 3)
    matrix = torch.tensor([[2.0, 1.0], [1.0, 3.0]])
    output = Output(function=lambda logits: logits[:, :2], matrix=matrix)
    coordinates = output.bind(z)
    b = pulled_back(coordinates, coordinates(z), torch.eye(2).double().expand(2, 2, 2))
    assert torch.allclose(b[0].T @ b[0], matrix.double())
    with pytest.raises(ArgumentError, match="not a metric"):
        Output(function=lambda logits: logits, matrix=-torch.eye(3)).bind(z).root(z)


@pytest.mark.parametrize(
    ("given", "message"), [("fischer", "did you mean 'fisher'"), (3, "what of the prediction")]
)
def test_unknown_outputs(given, message):
    with pytest.raises(ArgumentError, match=message):
        Output.parse(given)


@pytest.mark.parametrize("quantity", ["centred_logits", "fisher", "log_odds"])
def test_one_output_has_nothing_to_be_compared_with(quantity):
    with pytest.raises(ArgumentError, match="nothing to be compared with"):
        Output.parse(quantity).bind(rows_of(2, 1))


# ---- the thin factor -----------------------------------------------------------------------------


def test_the_thin_spectrum_is_the_dense_one():
    rows = rows_of(3, 4, 30)
    metric = Pullback(rows)
    for own, values, vectors in zip(rows, metric.values, metric.vectors, strict=True):
        dense = own.T @ own
        truth = torch.linalg.eigvalsh(dense).flip(0)
        assert torch.allclose(values, truth[:4], rtol=1e-12)
        assert truth[-1] >= -1e-10 * truth[0]
        assert torch.allclose(vectors @ vectors.T, torch.eye(4, dtype=torch.float64), atol=1e-12)
        assert torch.allclose(dense @ vectors.T, vectors.T * values, atol=1e-10)


def test_products_norms_and_lifts():
    rows, v = rows_of(2, 3, 11), rows_of(2, 11, seed=1)
    metric = Pullback(rows)
    dense = metric.as_matrix()
    assert torch.allclose(metric.matvec(v), (dense @ v[..., None])[..., 0])
    assert torch.allclose(metric.norm(v) ** 2, (v * metric.matvec(v)).sum(-1))
    u = rows_of(2, 3, seed=5)
    lifted = metric.lift(u)
    assert torch.allclose((rows @ lifted[..., None])[..., 0], u)
    assert metric.null_project(lifted).abs().max() < 1e-12, "the shortest has no null part"


def test_null_directions():
    """Unit vectors that the map does not see; uniform over the kernel."""
    rows = rows_of(1, 3, 8) * torch.tensor([1e3, 1.0, 1e-3])[:, None]
    metric = Pullback(rows)
    drawn = torch.randn(20000, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    null = Pullback(rows.expand(20000, 3, 8)).null_project(drawn)
    null = null / null.norm(dim=1, keepdim=True)
    assert (null @ rows[0].T).abs().max() <= 1e-10 * metric.largest[0].sqrt()
    assert null.mean(dim=0).abs().max() < 0.02
    projector = torch.eye(8, dtype=torch.float64) - metric.vectors[0].T @ metric.vectors[0]
    assert torch.allclose(null.T @ null / 20000, projector / 5, atol=0.01)


@pytest.mark.parametrize("quantity", ["centred_logits", "probabilities", "fisher"])
def test_the_rank_is_at_most_one_less_than_the_outputs(quantity):
    z, jacobian = rows_of(1, 4), rows_of(1, 3, 20, seed=3)
    coordinates = Output.parse(quantity).bind(z)
    b = pulled_back(coordinates, coordinates(z), jacobian)
    assert int(Pullback(b, rank=3).rank) == 3
    assert int(torch.linalg.matrix_rank(b[0])) <= 3


def test_what_counts_as_zero():
    basis = torch.linalg.qr(rows_of(9, 9))[0][:3]
    rows = (torch.tensor([1.0, 1e-4, 1e-12], dtype=torch.float64)[:, None] * basis)[None]
    assert int(Pullback(rows).rank) == 2
    assert int(Pullback(rows, zero=1e-3).rank) == 1
    assert int(Pullback(rows, zero=1e-15).rank) == 3
    assert int(Pullback(rows, zero=1e-15, absolute=1e-6).rank) == 1
    assert int(Pullback(torch.zeros(1, 2, 5, dtype=torch.float64)).rank) == 0


def test_block_kernels_lie_in_the_joint_kernel_and_bound_its_spectrum():
    rows = rows_of(1, 3, 5, 6)  # b q t d
    blocks, joint = Pullback(token_blocks(rows)), Pullback(rows.flatten(2))
    v = blocks.null_project(rows_of(1, 5, 6, seed=1))
    assert joint.norm(v.flatten(1)) < 1e-10
    assert blocks.largest.max() <= joint.largest[0] + 1e-12
    assert joint.largest[0] <= blocks.largest.sum() + 1e-12


def test_interactions_are_those_of_the_dense_blocks():
    rows = rows_of(1, 3, 4, 6)
    found = interactions(rows)[0]
    for s, t in itertools.product(range(4), repeat=2):
        truth = (rows[0, :, s].T @ rows[0, :, t]).norm()
        assert found[s, t] == pytest.approx(float(truth), rel=1e-10)


@pytest.mark.parametrize("measure", ["largest", "root", "trace"])
def test_importance_is_that_of_the_dense_blocks(measure):
    rows = rows_of(2, 3, 4, 6)
    found = block_importance(rows, measure)
    for b, t in itertools.product(range(2), range(4)):
        values = torch.linalg.eigvalsh(rows[b, :, t].T @ rows[b, :, t])
        truth = {"largest": values[-1], "root": values[-1].sqrt(), "trace": values.sum()}[measure]
        assert found[b, t] == pytest.approx(float(truth), rel=1e-10)


def test_isometries_and_scales():
    """Turning the input changes no length; scaling the output by a scales eigenvalues by a^2."""
    rows = rows_of(1, 3, 10)
    turn = torch.linalg.qr(rows_of(10, 10, seed=2))[0]
    assert torch.allclose(Pullback(rows @ turn).values, Pullback(rows).values)
    assert torch.allclose(Pullback(3 * rows).values, 9 * Pullback(rows).values)


# ---- on models -----------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["vit", "bert", "gpt2", "bert-mlm", "plain-image"])
def test_importance_is_the_largest_eigenvalue_of_the_dense_pullback(family):
    """To 1e-10 relative in float64, with the Jacobian by autograd, one output after the other."""
    adapter = build(family, dtype=torch.float64)
    raw = sample_inputs(adapter)[0]
    explained = pellucid.explain(adapter, raw, method="pullback", output="centred_logits", top_k=4)
    batch = adapter.encode([raw], Target.predicted())
    case = Case(adapter, batch, Target.predicted())
    x = adapter.value_at(batch, "embedding").requires_grad_()
    z = adapter.rows(adapter.output_from(batch, "embedding", x), batch)[0, 0]
    coordinates = Output.parse("centred_logits", 4).bind(case.rows[:, 0])
    y = coordinates(z[None])[0]
    jacobian = torch.stack([torch.autograd.grad(one, x, retain_graph=True)[0][0] for one in y])
    for token, score in enumerate(explained.scores.tolist()):
        block = jacobian[:, token].double()
        truth = float(torch.linalg.eigvalsh(block.T @ block)[-1])
        largest = float(explained.scores.max())
        assert score == pytest.approx(truth, rel=1e-10, abs=1e-10 * largest)


def test_importance_of_one_output_is_the_squared_gradient():
    adapter = build("bert", dtype=torch.float64, num_labels=1)
    raw = "the film is fine"
    explained = pellucid.explain(adapter, raw, method="pullback")
    batch = adapter.encode([raw], Target.predicted())
    case = Case(adapter, batch, Target.predicted())
    gradient = case.gradient(case.input("embedding"), "embedding")
    assert torch.allclose(explained.scores, gradient[0].square().sum(-1), rtol=1e-10)


def test_the_paper_measures_the_hidden_state_that_is_read():
    adapter = build("bert", dtype=torch.float64)
    raw = "the film is very fine"
    explained = pellucid.explain(adapter, raw, method="pullback", preset="paper")
    batch = adapter.encode([raw], Target.predicted())
    x = adapter.value_at(batch, "embedding")

    def read(state):
        from pellucid.record.attention import AttentionWatch
        from pellucid.record.places import recorded

        with recorded({"last": adapter.anatomy.last}) as seen, AttentionWatch():
            adapter.output_from(batch, "embedding", state)
        return seen["last"][0, 0]

    jacobian = torch.func.jacrev(read)(x)[:, 0].detach()  # h t d
    for token, score in enumerate(explained.scores.tolist()):
        block = jacobian[:, token]
        truth = float(torch.linalg.eigvalsh(block.T @ block)[-1])
        assert score == pytest.approx(truth, rel=1e-9)


def test_metric_at_is_the_whole_spectrum():
    adapter = build("vit", dtype=torch.float64)
    raw = sample_inputs(adapter)[0]
    metric = pellucid.metric_at(adapter, raw)
    assert metric.tokens[0] == 1, "the class token is not moved unless asked"
    assert metric.rank == 2
    assert metric.dimension == metric.rows[0].numel() - 2
    flat = metric.rows.flatten(1)
    dense = torch.linalg.eigvalsh(flat.T @ flat).flip(0)
    assert torch.allclose(metric.values[:2], dense[:2], rtol=1e-10)
    v = rows_of(*metric.rows.shape[1:], seed=8)
    assert metric.norm(metric.null_project(v)) < 1e-10 * metric.norm(v)
    assert torch.allclose(
        (v * metric.matvec(v)).sum().sqrt(), torch.tensor(metric.norm(v)).double()
    )
    assert torch.allclose(metric.importance(), metric.token_values()[:, 0], rtol=1e-9)
    assert metric.interactions().shape == (len(metric.tokens),) * 2


def test_metric_at_takes_lists_tokens_and_places():
    adapter = build("bert", dtype=torch.float64)
    texts = ["the film is fine", "a slow plot"]
    several = pellucid.metric_at(adapter, texts, tokens=[1, 2])
    assert [one.tokens for one in several] == [(1, 2), (1, 2)]
    whole = pellucid.metric_at(adapter, texts[0], tokens="all", space="word")
    assert len(whole.tokens) == 6
    deeper = pellucid.metric_at(adapter, texts[0], space="hidden:1", output="fisher")
    assert deeper.output == "fisher"
    np.testing.assert_array_less(0, deeper.values[:2].numpy())


# ---- wide outputs --------------------------------------------------------------------------------


@pytest.mark.parametrize("quantity", ["logits", "centred_logits", "probabilities", "fisher"])
@pytest.mark.parametrize("family", ["bert-mlm", "gpt2-lm"])
def test_the_way_through_the_head_is_the_direct_one(quantity, family, monkeypatch):
    """B'B = J_u' C J_u equals the pullback with a row for every token of the vocabulary."""
    adapter = build(family, dtype=torch.float64)
    raw = sample_inputs(adapter)[0]
    direct = pellucid.metric_at(adapter, raw, output=quantity)
    monkeypatch.setattr("pellucid.geometry.outputs.WIDE", 100)
    narrow = pellucid.metric_at(adapter, raw, output=quantity)
    assert narrow.rows.shape[0] <= 32 < direct.rows.shape[0], "as many rows as the state is wide"
    assert torch.allclose(narrow.values[:8], direct.values[:8], rtol=1e-8)
    assert torch.allclose(narrow.importance(), direct.importance(), rtol=1e-8)
    explained = pellucid.explain(adapter, raw, method="pullback", output=quantity)
    own = explained.scores[list(narrow.tokens)]
    assert torch.allclose(own, direct.importance(), rtol=1e-8)


def test_what_is_left_out_of_a_narrow_root_is_bounded():
    weight, logits = rows_of(50, 6), rows_of(2, 50) * 4
    for loss in (1e-1, 1e-3):
        full = narrow_root(weight, logits, "fisher")
        part = narrow_root(weight, logits, "fisher", loss)
        c, cut = full.transpose(1, 2) @ full, part.transpose(1, 2) @ part
        trace = c.diagonal(dim1=1, dim2=2).sum(1)
        assert (torch.linalg.eigvalsh(c - cut)[:, -1] <= loss * trace + 1e-12).all()
    assert narrow_root(weight, logits, "fisher", 0.3).shape[1] < 6


def test_a_walk_over_a_whole_vocabulary_says_what_to_hold(monkeypatch):
    monkeypatch.setattr("pellucid.geometry.outputs.WIDE", 100)
    adapter = build("bert-mlm", dtype=torch.float64)
    with pytest.raises(ArgumentError, match="top_k=10"):
        pellucid.explore(adapter, sample_inputs(adapter)[0], output="fisher", steps=2)


@pytest.mark.parametrize("output", ["fisher", "hidden", "centred_logits"])
def test_the_leading_spectrum_without_rows(output):
    adapter = build("bert-mlm", dtype=torch.float64)
    raw = sample_inputs(adapter)[0]
    direct = pellucid.metric_at(adapter, raw, output=output, tokens="all")
    leading = pellucid.metric_at(adapter, raw, output=output, tokens="all", rank=4)
    assert leading.rows.shape[0] == 4
    assert torch.allclose(leading.values[:3], direct.values[:3], rtol=1e-5)
    overlap = (leading.vectors[0] * direct.vectors[0]).sum().abs()
    assert overlap == pytest.approx(1.0, abs=1e-5)
