"""What is seen of attention, against the libraries' own answers and against definitions."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from pellucid import Needs, Target
from pellucid._case import Case
from pellucid.record.attention import AttentionWatch
from pellucid.testing.tiny import PatchTransformer, build, sample_inputs

HUGGING_FACE = [
    "vit",
    "deit-distilled",
    "beit",
    "dinov2-registers",
    "clip-vision",
    "bert",
    "roberta",
    "distilbert",
    "electra",
    "modernbert",
    "gpt2",
    "gpt2-lm",
    "llama-lm",
    "qwen2",
    "qwen3-lm",
]


def encoded(adapter):
    return adapter.encode(sample_inputs(adapter), Target.predicted())


@pytest.mark.parametrize("family", HUGGING_FACE)
def test_maps_equal_those_of_eager_attention(family):
    adapter = build(family)
    batch = encoded(adapter)
    layers = adapter.record(batch, Needs.ATTENTION, differentiable=False).layers
    adapter.module.set_attn_implementation("eager")
    with torch.no_grad():
        eager = adapter.module(**batch.inputs, output_attentions=True).attentions
    assert len(eager) == len(layers["attention"])
    for ours, theirs in zip(layers["attention"], eager, strict=True):
        real = batch.mask[:, None, :, None].expand_as(ours)
        torch.testing.assert_close(ours[real], theirs[real], atol=2e-6, rtol=1e-4)


@pytest.mark.parametrize("family", ["vit", "bert", "gpt2", "llama-lm"])
def test_maps_and_values_are_the_same_whatever_the_implementation(family):
    what = Needs.ATTENTION | Needs.VALUES
    adapter = build(family, dtype=torch.float64)
    batch = encoded(adapter)
    fused = adapter.record(batch, what, differentiable=False).layers
    adapter.module.set_attn_implementation("eager")
    eager = adapter.record(batch, what, differentiable=False).layers
    for name in ("attention", "values"):
        for one, other in zip(fused[name], eager[name], strict=True):
            real = batch.mask[:, None, :, None].expand_as(one)
            torch.testing.assert_close(one[real], other[real], atol=1e-6, rtol=1e-5)


def mask_of(kind, b, h, t):
    if kind == "none":
        return {}
    if kind == "causal":
        return {"is_causal": True}
    if kind == "scale":
        return {"scale": 0.3}
    allowed = torch.rand(b, 1, t, t, generator=torch.Generator().manual_seed(1)) > 0.4
    allowed |= torch.eye(t, dtype=torch.bool)
    if kind == "bool":
        return {"attn_mask": allowed}
    return {"attn_mask": torch.zeros(b, h, t, t).masked_fill(~allowed, -torch.inf)}


@pytest.mark.parametrize("kind", ["none", "causal", "scale", "bool", "float"])
def test_watched_attention_computes_what_torch_computes(kind):
    generator = torch.Generator().manual_seed(0)
    q, k, v = torch.randn(3, 2, 4, 5, 8, generator=generator)
    options = mask_of(kind, 2, 4, 5)
    seen = []
    with AttentionWatch(seen.append):
        ours = F.scaled_dot_product_attention(q, k, v, **options)
    torch.testing.assert_close(ours, F.scaled_dot_product_attention(q, k, v, **options))
    torch.testing.assert_close(seen[0].probabilities @ seen[0].values, ours)


def test_grouped_queries_share_keys_and_values():
    q, k, v = torch.randn(2, 4, 5, 8), torch.randn(2, 2, 5, 8), torch.randn(2, 2, 5, 8)
    seen = []
    with AttentionWatch(seen.append):
        ours = F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    expected = F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    torch.testing.assert_close(ours, expected)
    assert seen[0].probabilities.shape == (2, 4, 5, 5)
    assert seen[0].values.shape == (2, 4, 5, 8)


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("mask", ["none", "square", "heads", "padding", "both"])
def test_torch_multi_head_attention_shows_its_weights(mask, batch_first):
    torch.manual_seed(0)
    module = nn.MultiheadAttention(16, 4, batch_first=batch_first).eval()
    x = torch.randn(2, 5, 16)
    x = x if batch_first else x.transpose(0, 1)
    causal = torch.ones(5, 5, dtype=torch.bool).triu(1)
    padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    options = {
        "none": {},
        "square": {"attn_mask": causal},
        "heads": {"attn_mask": causal.expand(8, 5, 5)},
        "padding": {"key_padding_mask": padding},
        "both": {"attn_mask": causal, "key_padding_mask": padding},
    }[mask]
    expected, weights = module(x, x, x, average_attn_weights=False, **options)
    seen = []
    with AttentionWatch(seen.append):
        ours, _ = module(x, x, x, need_weights=False, **options)
    torch.testing.assert_close(ours, expected, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(seen[0].probabilities, weights, atol=1e-6, rtol=1e-5)


def test_eager_attention_of_a_float64_model_is_float64():
    adapter = build("vit", dtype=torch.float64)
    adapter.module.set_attn_implementation("eager")
    batch = encoded(adapter)
    x = adapter.value_at(batch, "embedding")
    direction = torch.randn(x.shape, generator=torch.Generator().manual_seed(0)).double()
    case = Case(adapter, batch, Target.predicted())
    product = case.jacobian().jvp(direction).detach()

    def logits(step):
        with torch.no_grad(), AttentionWatch():
            return adapter.rows(
                adapter.output_from(batch, "embedding", x + step * direction), batch
            )

    difference = ((logits(1e-5) - logits(-1e-5)) / 2e-5).flatten(1)
    torch.testing.assert_close(product, difference, atol=1e-8, rtol=1e-7)


def test_gradients_reach_the_maps():
    """One inline block in plain arithmetic, differentiated with the map as an independent input."""
    torch.manual_seed(0)
    module = PatchTransformer(inline=True).eval().double()
    module.blocks = module.blocks[:1]
    block, x = module.blocks[0], torch.randn(1, 25, 32).double()
    q, k, v = block.qkv(block.norm1(x)).unflatten(-1, (3, 4, -1)).permute(2, 0, 3, 1, 4)
    maps = (q @ k.transpose(-2, -1) * 8**-0.5).softmax(-1).detach().requires_grad_()

    def tail(attention):
        y = x + block.proj((attention @ v).transpose(1, 2).flatten(2))
        y = y + block.mlp(block.norm2(y))
        return module.head(module.norm(y)[:, 0])

    (expected,) = torch.autograd.grad(tail(maps)[:, 1].sum(), maps)
    seen = []
    leaf = x.clone().requires_grad_()
    with AttentionWatch(seen.append):
        logits = module.head(module.norm(block(leaf))[:, 0])
    (found,) = torch.autograd.grad(logits[:, 1].sum(), seen[0].probabilities)
    torch.testing.assert_close(found, expected)


def test_blocked_keys_get_nothing():
    q = torch.randn(2, 4, 5, 8)
    blocked = torch.zeros(2, 5, dtype=torch.bool)
    blocked[0, 2] = True
    seen = []
    with AttentionWatch(seen.append, blocked=blocked):
        F.scaled_dot_product_attention(q, q, q)
    maps = seen[0].probabilities
    assert (maps[0, :, :, 2] == 0).all()
    torch.testing.assert_close(maps.sum(-1), torch.ones(2, 4, 5))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_maps_are_summed_in_float32(dtype):
    adapter = build("bert", dtype=dtype)
    batch = encoded(adapter)
    trace = Case(adapter, batch, Target.predicted()).record(Needs.ATTENTION)
    assert trace.attention.dtype == torch.float32
    sums = trace.attention.sum(-1)[:, batch.mask[:, None].expand(-1, 4, -1)]
    torch.testing.assert_close(sums, torch.ones_like(sums), atol=1e-5, rtol=0)


def test_no_attention_is_not_offered_but_named():
    class Mixer(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.head = nn.Embedding(300, 8), nn.Linear(8, 2)

        def forward(self, input_ids, attention_mask):
            hidden = self.table(input_ids) * attention_mask[..., None]
            return self.head(hidden.sum(1))

    from pellucid import UnsupportedCombination, adapt, explain
    from pellucid.testing.tiny import word_piece

    model = adapt(Mixer().eval(), word_piece(), labels=["x", "y"])
    assert Needs.GRADIENTS in model.offers
    with pytest.raises(UnsupportedCombination, match="no attention operation was seen"):
        explain(model, "a fine film", method="rollout")
