"""Each method against a closed form or a literal slow version of its paper."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pellucid
from pellucid import ArgumentError, Attribution, Resize, Target
from pellucid._case import Case
from pellucid._needs import Needs
from pellucid.testing.tiny import build, sample_inputs

# ---- rollout -------------------------------------------------------------------------------------


def slow_rollout(attention, fuse, discard, start, length):
    """One input, one matrix at a time, with loops (l h t s)."""
    flow = torch.eye(length, dtype=attention.dtype)
    for layer in attention[start:, :, :length, :length]:
        fused = torch.zeros(length, length, dtype=attention.dtype)
        for i in range(length):
            for j in range(length):
                heads = [float(head[i, j]) for head in layer]
                fused[i, j] = {
                    "mean": sum(heads) / len(heads),
                    "min": min(heads),
                    "max": max(heads),
                }[fuse]
        order = sorted(
            (float(fused[i, j]), i * length + j) for i in range(length) for j in range(length)
        )
        for _, flat in order[: int(length * length * discard)]:
            if flat:  # the first token's attention to itself is protected
                fused[flat // length, flat % length] = 0.0
        mixed = fused + torch.eye(length, dtype=attention.dtype)
        for i in range(length):
            mixed[i] /= mixed[i].sum()
        flow = mixed @ flow
    return flow


@pytest.mark.parametrize("discard", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("fuse", ["mean", "min", "max"])
@pytest.mark.parametrize("start", [0, 1])
def test_rollout_is_the_slow_version(fuse, discard, start):
    model = build("bert", dtype=torch.float64)
    texts = sample_inputs(model)
    target = Target.predicted()
    case = Case(model, model.encode(texts, target), target)
    attention = case.record(Needs.ATTENTION).attention
    found = pellucid.explain(
        model, texts, method="rollout", fuse=fuse, discard=discard, start=start
    )
    for row, explanation in enumerate(found):
        length = len(explanation.segments)
        flow = slow_rollout(attention[:, row], fuse, discard, start, length)
        torch.testing.assert_close(flow.sum(-1), torch.ones(length, dtype=torch.float64))
        torch.testing.assert_close(explanation.scores.double(), flow[0], atol=1e-12, rtol=1e-10)


def test_rollout_without_discard_is_the_product_of_halves():
    model = build("vit", dtype=torch.float64)
    target = Target.predicted()
    case = Case(model, model.encode(sample_inputs(model)[:1], target), target)
    first, second = case.record(Needs.ATTENTION).attention[:, 0].mean(dim=1)
    eye = torch.eye(len(first), dtype=torch.float64)
    expected = ((second + eye) / 2 @ (first + eye) / 2)[0]
    found = pellucid.explain(model, sample_inputs(model)[0], method="rollout")
    torch.testing.assert_close(found.scores, expected)


def test_rollout_is_the_same_for_every_class():
    model = build("vit")
    image = sample_inputs(model)[0]
    one, other = (pellucid.explain(model, image, method="rollout", target=c) for c in (0, 2))
    assert torch.equal(one.scores, other.scores)
    assert one.label != other.label


@pytest.mark.parametrize(
    ("params", "words"),
    [({"discard": 1.0}, "discard=1.0"), ({"start": 2}, "no such block"), ({"fuse": "sum"}, "fuse")],
)
def test_rollout_refuses_nonsense(params, words):
    model = build("bert")
    with pytest.raises(ArgumentError, match=words):
        pellucid.explain(model, "the film", method="rollout", **params)


# ---- gradient times input ------------------------------------------------------------------------


class LinearImage(nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = nn.Parameter(torch.randn(3, 3, 6, 8))

    def forward(self, pixels):
        return torch.einsum("bchw,kchw->bk", pixels, self.weights)


def test_gradient_x_input_is_exact_for_a_linear_model():
    torch.manual_seed(0)
    module = LinearImage().eval().double()
    model = pellucid.adapt(module, Resize((6, 8)), labels=["x", "y", "z"])
    image = torch.rand(6, 8, 3).numpy()
    found = pellucid.explain(model, image, target=1)
    pixels = model.encode([image], Target()).inputs["pixel_values"][0]
    torch.testing.assert_close(found.scores, (pixels * module.weights[1]).sum(0).detach())
    assert found.scores.sum().item() == pytest.approx(found.value)  # complete


def test_gradient_x_input_of_a_text_is_a_directional_derivative():
    model = build("bert", dtype=torch.float64)
    target = Target.logit(0)
    case = Case(model, model.encode(["the film is fine"], target), target)
    x = case.input()
    found = pellucid.explain(model, "the film is fine", target=0)
    for token in range(x.shape[1]):
        step = torch.zeros_like(x)
        step[:, token] = 1e-6 * x[:, token]
        with torch.no_grad():
            slope = (case.score_from(x + step) - case.score_from(x - step)) / 2e-6
        assert found.scores[token].item() == pytest.approx(slope.item(), rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("family", ["vit", "swin", "timm-like"])
def test_gradient_x_input_agrees_with_captum(family):
    attr = pytest.importorskip("captum.attr", reason="captum is an optional peer")
    model = build(family, dtype=torch.float64)
    target = Target.logit(1)
    batch = model.encode(sample_inputs(model), target)
    pixels = batch.inputs["pixel_values"]

    def forward(x):
        return model.rows(model.output(model.with_pixels(batch, x)), batch)[:, 0]

    expected = attr.InputXGradient(forward).attribute(pixels.clone().requires_grad_(), target=1)
    found = pellucid.explain(model, sample_inputs(model), target=1)
    torch.testing.assert_close(torch.stack([f.scores for f in found]), expected.sum(1).detach())


# ---- random, and methods of one's own ------------------------------------------------------------


def test_random_depends_on_seed_and_input_alone():
    model = build("bert")
    first = pellucid.explain(model, "the film is fine", method="random", seed=1)
    again = pellucid.explain(
        model, ["a great plot", "the film is fine"], method="random", seed=1, batch_size=1
    )[1]
    other_seed = pellucid.explain(model, "the film is fine", method="random", seed=2)
    other_text = pellucid.explain(model, "the film is great", method="random", seed=1)
    assert torch.equal(first.scores, again.scores)
    assert not torch.equal(first.scores, other_seed.scores)
    assert not torch.equal(first.scores, other_text.scores)


def test_random_is_standard_normal():
    model = build("swin")
    image = sample_inputs(model)[0]
    scores = torch.stack(
        [pellucid.explain(model, image, method="random", seed=s).scores for s in range(20)]
    )
    assert abs(scores.mean().item()) < 0.03  # 20,480 draws: one standard error is 0.007
    assert scores.std().item() == pytest.approx(1.0, abs=0.02)


def test_a_function_is_a_method():
    def distance_from_the_start(case: Case, *, power: int = 1):
        """Later tokens get more."""
        positions = torch.arange(case.mask.shape[1]).float() ** power
        scores = positions.expand(case.mask.shape)
        return Attribution(scores, {"twice": 2 * scores}, [("a note",)] * len(case.batch))

    found = pellucid.explain(build("bert"), "a film", method=distance_from_the_start, power=2)
    assert found.method == "distance_from_the_start"
    assert found.params == {"power": 2}
    assert found.scores.tolist() == [0, 1, 4, 9]
    assert found.extras["twice"].tolist() == [0, 2, 8, 18]
    assert found.notes == ("a note",)


def test_a_partial_is_a_configured_method():
    from functools import partial

    from pellucid.methods.rollout import rollout

    model = build("bert")
    found = pellucid.explain(model, "the film is fine", method=partial(rollout, fuse="max"))
    assert found.params["fuse"] == "max"


def test_a_method_cannot_ask_for_more_than_it_declared():
    @pellucid.method(needs=Needs.GRADIENTS, signed=False)
    def greedy(case):
        return case.record(Needs.ATTENTION).attention.sum((0, 2, 3))

    with pytest.raises(ArgumentError, match="did not declare"):
        pellucid.explain(build("bert"), "the film", method=greedy)
