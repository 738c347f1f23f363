"""Every attention method against its paper, written out with loops on a network written out too.

The network is computed here from the weights of a small vision Transformer, with nothing of ours in
between, in float64; each method then follows its formulas entry by entry.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F

import pellucid
from pellucid import Target
from pellucid.models import sample_images
from pellucid.testing.tiny import build, sample_inputs

CLOSE = {"rtol": 1e-9, "atol": 1e-13}


@pytest.fixture(scope="module")
def model():
    """A vision Transformer with a non-square grid, whose attention is far from uniform."""
    found = build("timm-like", dtype=torch.float64)
    with torch.no_grad():
        for block in found.module.blocks:
            block.qkv.weight.mul_(5)
            block.qkv.bias.mul_(5)
    return found


@pytest.fixture(scope="module")
def image(model):
    return sample_inputs(model)[0]


@pytest.fixture(scope="module")
def seen(model, image):
    """What one pass of the network shows."""
    return network(model.module, model.encode([image], Target()).inputs["pixel_values"])


def network(module, pixels):
    """Logits of one image, and by block: stream x, attention A, values V, projection P, mlp f."""
    patches = module.patch_embed(pixels).flatten(2).transpose(1, 2)[0]
    x = torch.cat([module.cls_token[0], patches]) + module.pos_embed[0]
    found = SimpleNamespace(pixels=pixels, x=[x.detach().requires_grad_()], m=[], n1=[], n2=[])
    found.A, found.V, found.P, found.f, found.b = [], [], [], [], []
    for block in module.blocks:
        x = found.x[-1]
        n1 = F.layer_norm(x, x.shape[-1:], block.norm1.weight, block.norm1.bias)
        q, k, v = F.linear(n1, block.qkv.weight, block.qkv.bias).chunk(3, dim=-1)
        heads, A, V, P = [], [], [], []
        width = x.shape[-1] // block.heads
        for h in range(block.heads):
            own = slice(h * width, (h + 1) * width)
            A.append((q[:, own] @ k[:, own].T / width**0.5).softmax(dim=-1))
            V.append(v[:, own])
            P.append(block.proj.weight[:, own].T)
            heads.append(A[h] @ V[h] @ P[h])
        m = x + sum(heads) + block.proj.bias
        n2 = F.layer_norm(m, m.shape[-1:], block.norm2.weight, block.norm2.bias)
        f = block.mlp(n2)
        for name, value in (("A", A), ("V", V), ("P", P), ("m", m), ("n1", n1), ("n2", n2)):
            getattr(found, name).append(value)
        found.f.append(f)
        found.b.append(block.proj.bias)
        found.x.append(m + f)
    found.logits = module.head(module.norm(found.x[-1])[0])
    return found


def slope(of, by):
    """The gradient of a number by each map of each block (or by a list of tensors)."""
    if isinstance(by[0], list):
        flat = torch.autograd.grad(of, [one for maps in by for one in maps], retain_graph=True)
        heads = len(by[0])
        return [list(flat[i * heads : (i + 1) * heads]) for i in range(len(by))]
    return list(torch.autograd.grad(of, by, retain_graph=True))


def explained(model, image, method, **params):
    return pellucid.explain(model, image, method=method, target=1, **params).scores


def same(found, expected):
    torch.testing.assert_close(found, expected.detach(), **CLOSE)


def test_the_network_written_here_is_the_model(model, image, seen):
    with torch.no_grad():
        logits = model.output(model.encode([image], Target()))[0]
    torch.testing.assert_close(logits, seen.logits, rtol=1e-12, atol=1e-12)
    assert max(maps[0].max().item() for maps in seen.A) > 0.5


# ---- without gradients ---------------------------------------------------------------------------


@pytest.mark.parametrize("layer", [-1, 0])
def test_raw_attention(model, image, seen, layer):
    maps = torch.stack(seen.A[layer])
    same(explained(model, image, "raw_attention", layer=layer), maps.mean(0)[0])
    same(explained(model, image, "raw_attention", layer=layer, fuse="max"), maps.amax(0)[0])
    same(explained(model, image, "raw_attention", layer=layer, fuse="min"), maps.amin(0)[0])
    same(explained(model, image, "raw_attention", layer=layer, head=2), maps[2][0])


def test_rollout_with_the_norm_of_released_code(model, image, seen):
    """They divide a whole matrix by the vector of its row sums, so columns get divided."""
    flow = torch.eye(25, dtype=torch.float64)
    for maps in seen.A:
        fused = torch.stack(maps).mean(0).detach()
        flat = fused.view(-1)
        for place in flat.argsort(stable=True)[: int(0.9 * flat.numel())].tolist():
            if place:
                flat[place] = 0.0
        mixed = fused + torch.eye(25)
        flow = mixed / mixed.sum(dim=-1) @ flow
    same(explained(model, image, "rollout", preset="vit_explain"), flow[0])


def test_rollout_presets_are_their_parameters(model, image):
    for preset, params in (("chefer", {"start": 1}), ("tis", {"discard": 0.9})):
        expected = explained(model, image, "rollout", **params)
        assert torch.equal(explained(model, image, "rollout", preset=preset), expected)


# ---- with the gradients of the maps --------------------------------------------------------------


def test_grad_cam(model, image, seen):
    gradients = slope(seen.logits[1], seen.A)[-1]
    total = 0
    for maps, gradient in zip(seen.A[-1], gradients, strict=True):
        total = total + gradient[0, 1:].mean() * maps[0]
    same(explained(model, image, "grad_cam"), (total / 4).relu())


def test_grad_cam_says_when_nothing_is_left(digits):
    found = pellucid.explain(digits, sample_images(), method="grad_cam")
    empty = [bool((one.patches() == 0).all()) for one in found]
    assert {True, False} == set(empty)
    assert ["positive nowhere" in "".join(one.notes) for one in found] == empty


@pytest.mark.parametrize("start", [0, 1])
def test_transformer_mm(model, image, seen, start):
    gradients = slope(seen.logits[1], seen.A)
    R = torch.eye(25, dtype=torch.float64)
    for maps, gradient in list(zip(seen.A, gradients, strict=True))[start:]:
        fused = sum((g * a).relu() for g, a in zip(gradient, maps, strict=True)) / 4
        R = R + fused @ R
    same(explained(model, image, "transformer_mm", start=start), R[0])
    if start == 1:
        same(explained(model, image, "transformer_mm", preset="clip"), R[0])


def test_attcat(model, image, seen):
    gradients = slope(seen.logits[1], seen.x)
    expected = torch.zeros(25, dtype=torch.float64)
    for layer, maps in enumerate(seen.A):
        for j in range(25):
            activation = sum(gradients[layer][j, k] * seen.x[layer][j, k] for k in range(32))
            received = sum(maps[h][i, j].item() for h in range(4) for i in range(25)) / (4 * 25)
            expected[j] += received * activation.item()
    same(explained(model, image, "attcat"), expected)


# ---- VTranM --------------------------------------------------------------------------------------


def measured(original, transformed, rung):
    """Equations 11 to 13, one vector after the other."""
    tokens = len(original)
    ratio = [(transformed[i].norm() / original[i].norm()).item() for i in range(tokens)]
    cosine = [F.cosine_similarity(original[i], transformed[i], dim=0).item() for i in range(tokens)]
    exponential = torch.tensor(cosine, dtype=torch.float64).exp()
    necc = exponential / exponential.sum()
    assert necc.sum().item() == pytest.approx(1, abs=1e-14)
    weights = torch.tensor(ratio, dtype=torch.float64)
    return torch.diag(weights * necc if rung == "full" else weights)


def slow_vtranm(seen, rung, reference, init, per_head):
    """Equations 14 to 20, all of C."""
    log_odds = seen.logits[1] - seen.logits[[0, 2]].logsumexp(0)
    gradients = slope(log_odds.sigmoid(), seen.A)
    eye = torch.eye(25, dtype=torch.float64)
    C = torch.diag(seen.x[0].norm(dim=-1)) if init == "lengths" and rung != "af" else eye
    for layer, maps in enumerate(seen.A):
        normed = reference == "normed"
        E = (seen.n1 if normed else seen.x)[layer]
        transformed = [v @ p for v, p in zip(seen.V[layer], seen.P[layer], strict=True)]
        U = torch.zeros(25, 25, dtype=torch.float64)
        for h in range(4):
            vectors = transformed[h] if per_head else sum(transformed)
            W = eye if rung == "af" else measured(E, vectors, rung)
            U += gradients[layer][h].relu() * (maps[h] @ W) / 4
        C = (eye + U) @ C
        E = (seen.n2 if normed else seen.m)[layer]
        W = eye if rung == "af" else measured(E, seen.f[layer], rung)
        C = (eye + W) @ C
    return C[0]


@pytest.mark.parametrize("per_head", [True, False])
@pytest.mark.parametrize("init", ["lengths", "identity"])
@pytest.mark.parametrize("reference", ["normed", "residual"])
@pytest.mark.parametrize("rung", ["full", "af_l", "af"])
def test_vtranm(model, image, seen, rung, reference, init, per_head):
    settings = {"rung": rung, "reference": reference, "init": init, "per_head": per_head}
    same(explained(model, image, "vtranm", **settings), slow_vtranm(seen, **settings))


@pytest.mark.parametrize("layer", [0, 1])
def test_vtranm_baseline(model, image, seen, layer):
    gradients = slope(seen.logits.softmax(-1)[1], seen.A)[layer]
    C = torch.eye(25, dtype=torch.float64)
    for maps, gradient in zip(seen.A[layer], gradients, strict=True):
        C = C + gradient.relu() * maps / 4
    same(explained(model, image, "vtranm", rung="baseline", layer=layer), C[0])


@pytest.mark.parametrize("layer", [0, -1])
def test_vtranm_shows_its_two_kinds_of_weights(model, image, seen, layer):
    transformed = [v @ p for v, p in zip(seen.V[layer], seen.P[layer], strict=True)]
    weights = sum(measured(seen.n1[layer], vectors, "full").diag() for vectors in transformed) / 4
    same(explained(model, image, "vtranm", part="transformation", layer=layer), weights)
    raw = explained(model, image, "raw_attention", layer=layer)
    assert torch.equal(explained(model, image, "vtranm", part="attention", layer=layer), raw)


def test_the_vectors_of_vtranm_make_up_the_network(seen):
    """Equations 6 and 7, with the stream as E: the residual reading is an identity."""
    for layer, maps in enumerate(seen.A):
        vectors = [v @ p for v, p in zip(seen.V[layer], seen.P[layer], strict=True)]
        attended = sum(a @ e for a, e in zip(maps, vectors, strict=True))
        torch.testing.assert_close(seen.x[layer] + attended + seen.b[layer], seen.m[layer])
        torch.testing.assert_close(seen.m[layer] + seen.f[layer], seen.x[layer + 1])


# ---- with a path of inputs -----------------------------------------------------------------------


def mean_gradient(module, pixels, steps):
    """The gradient of the logit by the last map, averaged over scaled images, head by head."""
    total = [0.0] * 4
    for step in range(steps):
        scaled = network(module, pixels * step / (steps - 1))
        gradients = slope(scaled.logits[1], scaled.A)[-1]
        total = [a + b / steps for a, b in zip(total, gradients, strict=True)]
    return total


@pytest.mark.parametrize("steps", [20, 3])
def test_tam(model, image, seen, steps):
    gradient = mean_gradient(model.module, seen.pixels, steps)
    weights = sum(g.relu() for g in gradient)[0] / 4
    state = last = sum(a[0] for a in seen.A[-1]) / 4
    state = state + state @ sum(seen.A[0]) / 4
    settings = {"start": 0, "steps": steps}
    same(explained(model, image, "tam", **settings), state * weights)
    same(explained(model, image, "tam", first_state=True, **settings), last * weights)
    if steps == 20:
        same(explained(model, image, "tam", preset="tis"), state * weights)
        same(explained(model, image, "tam"), state * weights)  # from the last block but one


def test_tam_without_the_path(model, image, seen):
    gradient = slope(seen.logits[1], seen.A)[-1]
    state = sum(a[0] for a in seen.A[-1]) / 4
    state = state + state @ sum(seen.A[0]) / 4
    expected = state * sum(g.relu() for g in gradient)[0] / 4
    same(explained(model, image, "tam", start=0, integral=False), expected)


def perceived(maps):
    R = torch.eye(25, dtype=torch.float64)
    for layer in maps:
        R = R + layer @ R
    return R


def slow_bt_t(seen):
    found = []
    for layer, maps in enumerate(seen.A):
        vectors = sum(v @ p for v, p in zip(seen.V[layer], seen.P[layer], strict=True))
        growth = torch.tensor(
            [(vectors[j].norm() / seen.x[layer][j].norm()).item() for j in range(25)],
            dtype=torch.float64,
        )
        found.append(sum(maps) / 4 @ torch.diag(growth))
    return found


def slow_bt_h(seen):
    found = []
    gradients = slope(seen.logits[1], seen.A)
    for maps, gradient in zip(seen.A, gradients, strict=True):
        effect = [(a.T @ g).abs().mean() for a, g in zip(maps, gradient, strict=True)]
        found.append(sum(e / sum(effect) * a for e, a in zip(effect, maps, strict=True)))
    return found


@pytest.mark.parametrize(("method", "slow"), [("bt_t", slow_bt_t), ("bt_h", slow_bt_h)])
def test_bidirectional(model, image, seen, method, slow):
    feedback = sum(g.relu() for g in mean_gradient(model.module, seen.pixels, 20)) / 4
    maps = slow(seen)
    whole = explained(model, image, method, preset="tis")
    same(whole, (perceived(maps) * feedback)[0])
    half = explained(model, image, method, start=1)
    same(half, (perceived(maps[1:]) * feedback)[0])
    usual = {"bt_t": half, "bt_h": whole}[method]  # of two blocks, a half is one, a quarter none
    assert torch.equal(explained(model, image, method), usual)
