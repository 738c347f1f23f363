"""What the attention methods must have in common, on every kind of readout, norm and projection."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import pellucid
from pellucid import ArgumentError, Needs, Resize, Target
from pellucid._case import Case
from pellucid.methods import METHODS, _bidirectional, tam
from pellucid.methods._path import mean_gradient
from pellucid.methods.vtranm import _Weights
from pellucid.record.attention import AttentionWatch
from pellucid.testing.tiny import InlineBlock, PatchTransformer, build, sample_inputs

READOUTS = [
    "vit",
    "deit-distilled",
    "dinov2-registers",
    "clip-vision",
    "bert",
    "modernbert",
    "gpt2",
]
CLASS_AGNOSTIC = ["raw_attention", "rollout"]
CLASS_SPECIFIC = ["grad_cam", "transformer_mm", "attcat", "vtranm", "tam", "bt_t", "bt_h"]
SEEN = Needs.ATTENTION | Needs.VALUES | Needs.BRANCHES | Needs.PROJECTION | Needs.STREAM


def case_of(family, target=None, **options):
    adapter = build(family, dtype=torch.float64)
    target = target or Target.predicted("logit")
    return Case(adapter, adapter.encode(sample_inputs(adapter), target), target, **options)


def followed(updates):
    """The whole product of I + A over the blocks, the first one on the right (l b t s)."""
    flow = torch.eye(updates.shape[-1], dtype=updates.dtype).expand(updates.shape[1:])
    for layer in updates:
        flow = flow + layer @ flow
    return flow


# ---- between methods -----------------------------------------------------------------------------


@pytest.mark.parametrize("family", READOUTS)
def test_vtranm_without_lengths_and_directions_is_transformer_mm(family):
    """The feed-forward parts double what passes through them, and that is all."""
    case = case_of(family, Target.predicted("probability"))
    blocks = len(case.adapter.anatomy.blocks)
    ours, theirs = METHODS["vtranm"](case, rung="af"), METHODS["transformer_mm"](case)
    torch.testing.assert_close(ours, 2**blocks * theirs, rtol=1e-12, atol=1e-14)


class Fixed:
    """A trace in which every gradient is one, and the feed-forward parts are as asked."""

    def __init__(self, trace, silent=False):
        self._trace, self._silent = trace, silent

    def at(self, of, layer):
        found = self._trace.at(of, layer)
        return torch.zeros_like(found) if self._silent and of == "mlp_branch" else found

    def each(self, of):
        return [self.at(of, i) for i in range(len(self._trace.recording.layers[of]))]

    def gradients(self, of, first=0):
        return [torch.ones_like(found) for found in self.each(of)[first:]]


def fixed(case, **options):
    """A case that records such a trace."""
    trace = Fixed(case.record(SEEN, gradients=True), **options)
    return SimpleNamespace(
        **{name: getattr(case, name) for name in ("mask", "content", "kind", "readout", "read")},
        record=lambda what, gradients=False: trace,
        batch=case.batch,
    )


@pytest.mark.parametrize("family", READOUTS)
def test_transformer_mm_without_gradients_is_rollout_without_norms(family):
    case = case_of(family)
    expected = case.read(followed(case.record(Needs.ATTENTION).attention.mean(dim=2)))
    torch.testing.assert_close(METHODS["transformer_mm"](fixed(case)), expected)


@pytest.mark.parametrize("family", READOUTS)
def test_vtranm_of_joined_heads_by_length_alone_is_the_perception_of_bt_t(family, monkeypatch):
    case = case_of(family)
    monkeypatch.setattr(
        _bidirectional,
        "mean_gradient",
        lambda case, steps: torch.ones_like(case.record(SEEN).at("attention", -1)),
    )
    perception = METHODS["bt_t"](fixed(case), start=0)
    settings = {"rung": "af_l", "init": "identity", "reference": "residual", "per_head": False}
    found = METHODS["vtranm"](fixed(case, silent=True), **settings)
    torch.testing.assert_close(found, perception)


@pytest.mark.parametrize("family", READOUTS)
def test_the_first_state_of_tam_is_raw_attention(family, monkeypatch):
    case = case_of(family)
    ones = torch.ones_like(case.record(Needs.ATTENTION).attention[-1])
    monkeypatch.setitem(tam.function.__globals__, "mean_gradient", lambda case, steps: ones)
    found = METHODS["tam"](fixed(case), first_state=True)
    torch.testing.assert_close(found, METHODS["raw_attention"](case))


@pytest.mark.parametrize("method", CLASS_AGNOSTIC + CLASS_SPECIFIC)
def test_a_map_for_each_class_or_one_for_all(method):
    model = build("vit")
    image = sample_inputs(model)[0]
    one, other = (pellucid.explain(model, image, method=method, target=c) for c in (0, 2))
    assert torch.equal(one.scores, other.scores) == (method in CLASS_AGNOSTIC)
    assert METHODS[method].class_specific == (method in CLASS_SPECIFIC)


# ---- one row beside the whole product ------------------------------------------------------------


@pytest.mark.parametrize("family", READOUTS)
def test_the_row_that_is_read_is_that_of_the_whole_map(family):
    case = case_of(family)
    trace = case.record(SEEN, gradients=True)
    gradient = trace.gradient("attention").clamp(min=0)
    relevance = case.read(followed((gradient * trace.attention).mean(dim=2)))
    torch.testing.assert_close(METHODS["transformer_mm"](case), relevance)
    weights = _Weights(trace, case.mask, "full", "normed", True)
    flow = torch.diag_embed(trace.stream[0].norm(dim=-1))
    for layer in range(len(gradient)):
        w = weights.of_attention(layer)
        update = (gradient[layer] * trace.attention[layer] * w[:, :, None]).mean(dim=1)
        flow = flow + update @ flow
        flow = flow + weights.of_feed_forward(layer)[:, :, None] * flow
    torch.testing.assert_close(METHODS["vtranm"](case), case.read(flow))


@pytest.mark.parametrize("family", READOUTS)
def test_bt_weights_every_row_that_is_read_by_its_own_feedback(family):
    case = case_of(family)
    feedback = mean_gradient(case, 3).clamp(min=0).mean(dim=1)
    trace = case.record(SEEN, gradients=True)
    vectors = torch.einsum(
        "lbhtc,lhcd->lbtd", trace.values, torch.stack(trace.each("projection"))
    ).norm(dim=-1)
    growth = vectors / trace.stream[:-1].norm(dim=-1).clamp(min=1e-8)  # registers begin at zero
    perceived = followed(trace.attention.mean(dim=2) * growth[:, :, None])
    expected = case.read(perceived * feedback)
    torch.testing.assert_close(METHODS["bt_t"](case, start=0, steps=3), expected)


def test_grad_cam_of_a_text_weights_a_head_by_its_whole_map():
    case = case_of("bert")
    trace = case.record(Needs.ATTENTION, gradients=True)
    found = METHODS["grad_cam"](case).scores
    maps, gradients = trace.attention[-1], trace.gradient("attention")[-1]
    for row, length in enumerate(case.mask.sum(1).tolist()):
        own = maps[row, :, :length, :length], gradients[row, :, :length, :length]
        cam = sum(g.mean() * a for a, g in zip(*own, strict=True)) / 4
        torch.testing.assert_close(found[row, :length], cam.relu()[0])


@pytest.mark.parametrize("family", ["deit-distilled", "clip-vision"])
def test_grad_cam_of_an_image_reads_the_rows_that_the_model_reads(family):
    case = case_of(family)
    trace = case.record(Needs.ATTENTION, gradients=True)
    maps, gradients = trace.attention[-1], trace.gradient("attention")[-1]
    prefix = case.adapter.anatomy.prefix
    a, g = (torch.einsum("bt,bhts->bhs", case.readout.double(), x) for x in (maps, gradients))
    expected = (g[..., prefix:].mean(-1, keepdim=True) * a).mean(1).relu()
    torch.testing.assert_close(METHODS["grad_cam"](case).scores, expected)


# ---- transformation weights ----------------------------------------------------------------------


@pytest.mark.parametrize("reference", ["normed", "residual"])
@pytest.mark.parametrize("family", ["vit", "bert", "modernbert", "gpt2"])
def test_directions_share_out_one_among_the_tokens(family, reference):
    case = case_of(family)
    trace = case.record(SEEN, gradients=True)
    full, lengths = (_Weights(trace, case.mask, r, reference, True) for r in ("full", "af_l"))
    for layer in range(len(trace.attention)):
        for kind in ("of_attention", "of_feed_forward"):
            necc = getattr(full, kind)(layer) / getattr(lengths, kind)(layer)
            necc = necc.view(len(case.mask), -1, case.mask.shape[1])  # b h t
            for row, mask in zip(necc, case.mask, strict=True):
                torch.testing.assert_close(row.sum(-1), torch.ones(len(row)).double())
                tokens = int(mask.sum())
                assert row[:, mask].min() >= math.exp(-2) / tokens
                assert row.max() <= math.exp(2) / tokens
                assert (row[:, ~mask] == 0).all()


def test_vectors_that_all_turn_alike_weigh_alike():
    mask = torch.ones(1, 5, dtype=torch.bool)
    original = torch.rand(1, 5, 3, dtype=torch.float64)
    length, inner = 2 * original.norm(dim=-1), 2 * (original**2).sum(-1)  # twice the vector
    found = _Weights(None, mask, "full", "normed", True)._weights(original, length, inner)
    torch.testing.assert_close(found, torch.full_like(found, 2 / 5))


def test_vtranm_of_a_block_that_normalises_afterwards():
    """BERT, from the library's own maps and modules: E is the stream, E~ has no norm in it."""
    case = case_of("bert", Target.probability(1))
    case.adapter.module.set_attn_implementation("eager")
    seen = {}
    for index, block in enumerate(case.adapter.anatomy.blocks):
        attention = block.attention
        for name, part in (
            ("v", attention.self.value),
            ("m", attention.output.LayerNorm),
            ("f", block.output.dense),
        ):

            def keep(module, args, out, key=(name, index)):
                seen[key] = out.detach()

            part.register_forward_hook(keep)
    inputs = {name: tensor[1:2] for name, tensor in case.batch.inputs.items()}
    out = case.adapter.module(**inputs, output_attentions=True, output_hidden_states=True)
    gradients = torch.autograd.grad(out.logits.softmax(-1)[0, 1], out.attentions)
    flow = torch.diag(out.hidden_states[0][0].norm(dim=-1))
    eye = torch.eye(len(flow), dtype=torch.float64)
    real = case.mask[1]

    def measured(original, vectors):
        cosine = nn.functional.cosine_similarity(original, vectors, dim=-1)
        necc = cosine.exp() * real / (cosine.exp() * real).sum()
        return vectors.norm(dim=-1) / original.norm(dim=-1) * necc

    for index, block in enumerate(case.adapter.anatomy.blocks):
        x, maps = out.hidden_states[index][0], out.attentions[index][0]
        update = torch.zeros_like(flow)
        for h in range(4):
            own = slice(8 * h, 8 * h + 8)
            vectors = seen["v", index][0][:, own] @ block.attention.output.dense.weight[:, own].T
            update += gradients[index][0, h].relu() * maps[h] * measured(x, vectors) / 4
        flow = (eye + update) @ flow
        flow = (eye + torch.diag(measured(seen["m", index][0], seen["f", index][0]))) @ flow
    found = METHODS["vtranm"](case)[1]
    torch.testing.assert_close(found, flow[0].detach() * real, rtol=1e-5, atol=1e-7)


# ---- how heads enter the stream ------------------------------------------------------------------

OUT = {  # family -> the module that projects, how its weight lies, and what scales it
    "vit": lambda block: block.attention.o_proj.weight.T,
    "dinov2": lambda block: block.attention.o_proj.weight.T * block.layer_scale1.lambda1,
    "llama": lambda block: block.self_attn.o_proj.weight.T,
    "gpt2": lambda block: block.attn.c_proj.weight,
    "bert": lambda block: block.attention.output.dense.weight.T,
    "plain-image": lambda block: block.attn.out_proj.weight.T,
    "plain-text": lambda block: block.self_attn.out_proj.weight.T,
}


@pytest.mark.parametrize("family", OUT)
def test_the_projection_is_the_weight_of_the_module_that_projects(family):
    case = case_of(family)
    if family == "dinov2":
        for block in case.adapter.anatomy.blocks:
            with torch.no_grad():
                block.layer_scale1.lambda1.copy_(torch.linspace(-1, 2, 32))
    projections = case.record(Needs.PROJECTION, gradients=True).each("projection")
    for block, found in zip(case.adapter.anatomy.blocks, projections, strict=True):
        torch.testing.assert_close(found.flatten(0, 1), OUT[family](block).detach())


def test_a_projection_is_recorded_with_gradients_only():
    with pytest.raises(ArgumentError, match="gradients=True"):
        case_of("vit").record(Needs.PROJECTION)


@pytest.mark.parametrize("family", ["vit", "bert", "gpt2", "modernbert"])
def test_branches_read_what_their_norms_return(family):
    trace = case_of(family).record(Needs.BRANCHES)
    stream, (attended, fed) = trace.stream, trace.branches
    for layer in range(len(attended)):
        bases = trace.at("attention_base", layer), trace.at("mlp_base", layer)
        reads = trace.at("attention_read", layer), trace.at("mlp_read", layer)
        torch.testing.assert_close(bases[0], stream[layer])
        if family == "bert":
            assert all(map(torch.equal, bases, reads))
            continue
        torch.testing.assert_close(bases[1], stream[layer] + attended[layer])
        torch.testing.assert_close(bases[1] + fed[layer], stream[layer + 1])
        if not (family == "modernbert" and layer == 0):  # whose first attention has no norm
            assert reads[0].mean(-1).abs().max() < 1e-5 < bases[0].mean(-1).abs().max()
        assert reads[1].mean(-1).abs().max() < 1e-5 < bases[1].mean(-1).abs().max()


@pytest.mark.parametrize("kind", ["a gate after the heads", "two maps of the heads"])
def test_what_is_no_projection_of_the_heads_is_not_offered(kind):
    class Other(InlineBlock):
        def forward(self, x):
            q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, 4, -1)).permute(2, 0, 3, 1, 4)
            heads = ((q @ k.transpose(-2, -1)).softmax(-1) @ v).transpose(1, 2).flatten(2)
            out = self.proj(heads)
            out = out * out.sigmoid() if kind[0] == "a" else out + self.proj(heads).tanh()
            x = x + self.same(out)
            return x + self.mlp(self.norm2(x))

    torch.manual_seed(0)
    module = PatchTransformer(inline=True)
    module.blocks = nn.Sequential(Other(32), Other(32))
    for block in module.blocks:
        block.same = nn.Identity()
    model = pellucid.adapt(module.eval(), Resize((32, 48)), labels=["x", "y", "z"])
    assert Needs.PROJECTION not in model.offers
    with pytest.raises(pellucid.UnsupportedCombination, match="linear map") as refused:
        pellucid.explain(model, sample_inputs(model)[0], method="vtranm")
    assert "missing:" in str(refused.value)


# ---- the way from nothing to the input -----------------------------------------------------------


@pytest.mark.parametrize("family", ["vit", "bert"])
def test_steps_of_the_path_may_share_a_batch(family):
    case, together = case_of(family, batch_size=3), case_of(family, batch_size=100)
    torch.testing.assert_close(mean_gradient(case, 5), mean_gradient(together, 5))
    assert case.meter.forwards.tolist() == together.meter.forwards.tolist()
    forwards = 1 + 5 + (family == "bert")  # the class, the steps, and the stream of a text
    assert case.meter.forwards.tolist() == [forwards] * 3
    assert case.meter.backwards == 5
    assert together.meter.backwards == 1


def test_the_path_of_a_text_scales_what_enters_the_first_block():
    case = case_of("bert", Target.logit(1))
    total = 0.0
    for fraction in (0, 0.5, 1):
        scaled = case.input("embedding") * fraction
        seen = []
        with AttentionWatch(seen.append):
            output = case.adapter.output_from(case.batch, "embedding", scaled.requires_grad_())
        score = case.adapter.rows(output, case.batch)[:, 0, 1].sum()
        total = total + torch.autograd.grad(score, seen[-1].probabilities)[0] / 3
    torch.testing.assert_close(mean_gradient(case, 3), total)


# ---- limits --------------------------------------------------------------------------------------


class Sizes(TorchDispatchMode):
    """The largest tensor that is made, and every product of two square matrices."""

    def __init__(self, tokens):
        super().__init__()
        self.tokens, self.largest, self.products = tokens, 0, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if isinstance(out, torch.Tensor):
            self.largest = max(self.largest, out.numel())
        if "mm" in func.__name__:
            shapes = [tuple(a.shape[-2:]) for a in args if isinstance(a, torch.Tensor)]
            self.products += shapes == [(self.tokens, self.tokens)] * 2
        return out


@pytest.mark.parametrize("method", ["vtranm", "transformer_mm", "rollout", "tam"])
def test_neither_vectors_by_pairs_nor_products_of_maps_are_made(method):
    model = build("vit", image_size=(64, 64), dtype=torch.float64)
    image = sample_inputs(model)[0]
    tokens, width = 65, 32
    model.offers  # noqa: B018  # found before anything is counted
    with Sizes(tokens) as sizes:
        pellucid.explain(model, image, method=method, batch_size=1)
    assert sizes.products == 0
    assert sizes.largest < tokens**2 * width / 2


def test_vtranm_explains_the_value_of_a_regression():
    model = build("bert", num_labels=1)
    found = pellucid.explain(model, "the film is fine", method="vtranm")
    assert found.explains == "logit of the predicted value"


@pytest.mark.parametrize(
    ("method", "params", "words"),
    [
        ("raw_attention", {"layer": 2}, "no such block.*got:      layer=2"),
        ("raw_attention", {"head": -5}, "no such head.*from -4 to -1"),
        ("raw_attention", {"head": "first"}, "head='first'"),
        ("transformer_mm", {"start": 9}, "start=9"),
        ("vtranm", {"rung": "all"}, "one of 'full', 'af_l', 'af', 'baseline'"),
        ("vtranm", {"layer": -3, "rung": "baseline"}, "layer=-3"),
        ("tam", {"steps": 1}, "at least 2"),
        ("tam", {"start": -3}, "start=-3"),
        ("bt_t", {"start": 2}, "start=2"),
        ("bt_h", {"steps": 0}, "steps=0"),
    ],
)
def test_nonsense_is_refused(method, params, words):
    with pytest.raises(ArgumentError, match="(?s)" + words):
        pellucid.explain(build("bert"), "the film", method=method, **params)
