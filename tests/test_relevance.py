"""The LRP family on whole models, against the rules applied one after the other by hand."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F
import transformers
from torch import nn

import pellucid
from pellucid import ArgumentError, Needs, Resize, Target, UnsupportedCombination
from pellucid._case import Case
from pellucid.adapters import adapt
from pellucid.record.attention import AttentionWatch
from pellucid.relevance.deep_taylor import DeepTaylor
from pellucid.relevance.gradient import GradientRules
from pellucid.testing import check_method
from pellucid.testing.tiny import FAMILIES, build, byte_bpe, sample_inputs, word_piece

LRP = ("lrp", "partial_lrp", "conservative_lrp", "transformer_attribution", "attn_lrp", "cp_lrp")


@pytest.fixture(scope="module")
def models():
    """Two models in float64 whose biases and norm weights are not what they begin with."""
    found = {}
    for family in ("vit", "bert"):
        model = build(family, dtype=torch.float64)
        generator = torch.Generator().manual_seed(1)
        with torch.no_grad():
            for parameter in model.module.parameters():
                if parameter.dim() == 1:
                    noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
                    parameter.add_(0.2 * noise)
        found[family] = model
    return found


def first_case(model, target=None):
    target = target or Target.logit(1)
    return Case(model, model.encode(sample_inputs(model)[:1], target), target)


# ---- the rules by hand ---------------------------------------------------------------------------


class Explicit:
    """AttnLRP's rules as relevance, term by term, without a stabiliser; `constant`: CP-LRP."""

    def __init__(self, constant):
        self.constant = constant

    @staticmethod
    def over(relevance, z):
        return relevance / z

    def linear(self, layer, x, relevance):
        terms = x[:, None, :] * layer.weight  # t j i
        z = terms.sum(-1) + (0 if layer.bias is None else layer.bias)
        return (terms / z[..., None] * relevance[..., None]).sum(1)

    def patches(self, layer, pixels, relevance):
        (size, _), (rows, columns) = layer.kernel_size, (pixels.shape[1] // 8, pixels.shape[2] // 8)
        found = torch.zeros_like(pixels)
        flat = nn.Linear(1, 1)
        flat.weight, flat.bias = nn.Parameter(layer.weight.flatten(1)), layer.bias
        for patch in range(rows * columns):
            r, c = size * (patch // columns), size * (patch % columns)
            x = pixels[:, r : r + size, c : c + size]
            share = self.linear(flat, x.reshape(1, -1), relevance[patch : patch + 1])
            found[:, r : r + size, c : c + size] = share.view(x.shape)
        return found

    def add(self, u, v, relevance):
        return u / (u + v) * relevance, v / (u + v) * relevance

    def norm(self, layer, x, relevance):
        centred = x - x.mean(-1, keepdim=True)
        std = (centred.pow(2).mean(-1, keepdim=True) + layer.eps).sqrt()
        width = x.shape[-1]
        jacobian = (torch.eye(width).double() - 1 / width) * layer.weight[:, None] / std[..., None]
        terms = jacobian * x[:, None, :]  # t j i
        y = centred / std * layer.weight + layer.bias
        return (terms / y[..., None] * relevance[..., None]).sum(1)

    def product(self, a, v, relevance):
        """Of matrices (h t k) and (h k d): to each operand half of each term's share."""
        half = 1.0 if self.constant else 0.5
        terms = a[..., None] * v[:, None]  # h t k d
        shares = terms / terms.sum(2, keepdim=True) * relevance[:, :, None] * half
        return (0 if self.constant else shares.sum(3)), shares.sum(1)

    def scores(self, q, k, relevance):
        of_q, of_k = self.product(q, k.transpose(1, 2), relevance)
        return of_q, of_k.transpose(1, 2)

    def softmax(self, scores, a, relevance):
        return scores * (relevance - a * relevance.sum(-1, keepdim=True))

    def begin(self, logits, index):
        return F.one_hot(torch.tensor([index]), logits.shape[-1]) * logits


class Classical(Explicit):
    """The alpha-beta rules with alpha = 1 (joint: Chefer et al.'s variant of two of them)."""

    def __init__(self, joint):
        super().__init__(constant=False)
        self.joint = joint

    @staticmethod
    def over(relevance, z):
        return torch.where(z == 0, 0.0, relevance / (z + 1e-9 * torch.where(z < 0, -1.0, 1.0)))

    def linear(self, layer, x, relevance):
        up = x.clamp(min=0)[:, None] * layer.weight.clamp(min=0)  # t j i
        down = x.clamp(max=0)[:, None] * layer.weight.clamp(max=0)
        z1, z2 = up.sum(-1), down.sum(-1)
        if self.joint:
            z1 = z2 = z1 + z2
        shares = up * self.over(relevance, z1)[..., None]
        return (shares + down * self.over(relevance, z2)[..., None]).sum(1)

    def patches(self, layer, pixels, relevance):
        low, high = pixels.min(), pixels.max()
        found = torch.zeros_like(pixels)
        size, columns = layer.kernel_size[0], pixels.shape[2] // layer.kernel_size[0]
        for patch in range(len(relevance)):
            r, c = size * (patch // columns), size * (patch % columns)
            x, w = pixels[:, r : r + size, c : c + size], layer.weight  # o c h w
            terms = x * w - low * w.clamp(min=0) - high * w.clamp(max=0)
            shares = self.over(relevance[patch], terms.flatten(1).sum(1))
            found[:, r : r + size, c : c + size] = (terms * shares[:, None, None, None]).sum(0)
        return found

    def add(self, u, v, relevance):
        share = self.over(relevance, u + v)
        a, b = u * share, v * share
        if not self.joint:
            return a, b
        of_a, of_b, all_of_it = a.sum(), b.sum(), relevance.sum()
        size = of_a.abs() + of_b.abs()
        return (
            a * self.over(self.over(of_a.abs(), size) * all_of_it, of_a),
            b * self.over(self.over(of_b.abs(), size) * all_of_it, of_b),
        )

    def norm(self, layer, x, relevance):
        return relevance

    def softmax(self, scores, a, relevance):
        return relevance

    def product(self, a, v, relevance):
        share = self.over(relevance, a @ v)
        return 0.5 * a * (share @ v.transpose(1, 2)), 0.5 * v * (a.transpose(1, 2) @ share)

    def begin(self, logits, index):
        return F.one_hot(torch.tensor([index]), logits.shape[-1]).double()


@dataclass
class Attention:
    """One layer of attention of a Hugging Face model, with its arithmetic laid out."""

    q: nn.Linear
    k: nn.Linear
    v: nn.Linear
    o: nn.Linear
    heads: int = 4

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(0, 1)  # h t d

    def forward(self, x):
        q, k, v = (self.split(layer(x)) for layer in (self.q, self.k, self.v))
        scores = q @ k.transpose(1, 2) * q.shape[-1] ** -0.5
        a = scores.softmax(-1)
        mixed = (a @ v).transpose(0, 1).flatten(1)
        return self.o(mixed), (x, q, k, v, scores, a, mixed)

    def back(self, rules, kept, relevance, maps):
        x, q, k, v, scores, a, mixed = kept
        of_mixed = self.split(rules.linear(self.o, mixed, relevance))
        of_a, of_v = rules.product(a, v, of_mixed)
        maps.append(of_a)
        found = rules.linear(self.v, x, of_v.transpose(0, 1).flatten(1))
        if rules.constant:
            return found
        of_scores = rules.softmax(scores, a, of_a)
        of_q, of_k = rules.scores(q, k, of_scores)
        for layer, part in ((self.q, of_q), (self.k, of_k)):
            found = found + rules.linear(layer, x, part.transpose(0, 1).flatten(1))
        return found


@torch.no_grad()
def vit_by_hand(module, pixels, rules, index):
    """Relevance of the pixels (c h w) of one image, and of all attention maps."""
    table, saved = module.vit.embeddings, []
    tokens = table.patch_embeddings.projection(pixels[None]).flatten(2).transpose(1, 2)[0]
    entered = torch.cat([table.cls_token[0], tokens])
    x = entered + table.position_embeddings[0]
    for block in module.vit.layers:
        part = block.attention
        attention = Attention(part.q_proj, part.k_proj, part.v_proj, part.o_proj)
        mixed, kept = attention.forward(block.layernorm_before(x))
        m = x + mixed
        normed = block.layernorm_after(m)
        inner = block.mlp.fc1(normed)
        out = block.mlp.fc2(F.gelu(inner))
        saved.append((block, attention, x, mixed, kept, m, normed, inner, out))
        x = m + out
    last = module.vit.layernorm(x)
    logits = module.classifier(last[:1])
    r = rules.linear(module.classifier, last[:1], rules.begin(logits, index))
    r = rules.norm(module.vit.layernorm, x, torch.cat([r, torch.zeros_like(last[1:])]))
    maps = []
    for block, attention, x, mixed, kept, m, normed, inner, out in reversed(saved):
        of_m, of_out = rules.add(m, out, r)
        of_inner = rules.linear(block.mlp.fc2, F.gelu(inner), of_out)
        of_normed = rules.linear(block.mlp.fc1, normed, of_inner)
        r = of_m + rules.norm(block.layernorm_after, m, of_normed)
        of_x, of_mixed = rules.add(x, mixed, r)
        of_normed = attention.back(rules, kept, of_mixed, maps)
        r = of_x + rules.norm(block.layernorm_before, x, of_normed)
    r = entered * rules.over(r, entered + table.position_embeddings[0])
    r = r[1:]  # of the patches
    return rules.patches(table.patch_embeddings.projection, pixels, r), maps[::-1]


@torch.no_grad()
def bert_by_hand(module, ids, rules, index):
    """Relevance of the word embeddings (t d) of one text, and of all attention maps."""
    table, saved = module.bert.embeddings, []
    words = table.word_embeddings(ids)
    rest = table.position_embeddings.weight[: len(ids)] + table.token_type_embeddings.weight[0]
    x = table.LayerNorm(words + rest)
    for block in module.bert.encoder.layer:
        own, end = block.attention.self, block.attention.output
        attention = Attention(own.query, own.key, own.value, end.dense)
        mixed, kept = attention.forward(x)
        m = end.LayerNorm(mixed + x)
        inner = block.intermediate.dense(m)
        out = block.output.dense(F.gelu(inner))
        saved.append((block, attention, x, mixed, kept, m, inner, out))
        x = block.output.LayerNorm(out + m)
    pooled = module.bert.pooler.dense(x[:1])
    logits = module.classifier(pooled.tanh())
    r = rules.linear(module.classifier, pooled.tanh(), rules.begin(logits, index))
    r = rules.linear(module.bert.pooler.dense, x[:1], r)
    r = torch.cat([r, torch.zeros_like(x[1:])])
    maps = []
    for block, attention, x, mixed, kept, m, inner, out in reversed(saved):
        r = rules.norm(block.output.LayerNorm, out + m, r)
        of_out, of_m = rules.add(out, m, r)
        of_inner = rules.linear(block.output.dense, F.gelu(inner), of_out)
        r = of_m + rules.linear(block.intermediate.dense, m, of_inner)
        r = rules.norm(block.attention.output.LayerNorm, mixed + x, r)
        of_mixed, of_x = rules.add(mixed, x, r)
        r = of_x + attention.back(rules, kept, of_mixed, maps)
    r = rules.norm(table.LayerNorm, words + rest, r)
    part = words + table.token_type_embeddings.weight[0]  # positions are added last
    r = part * rules.over(r, words + rest)
    return words * rules.over(r, part), maps[::-1]


def by_hand(model, rules, index=1):
    batch = first_case(model).batch
    if model.kind == "image":
        return vit_by_hand(model.module, batch.inputs["pixel_values"][0], rules, index)
    return bert_by_hand(model.module, batch.inputs["input_ids"][0], rules, index)


def agree(found, expected, tolerance):
    """To a fraction of the largest number."""
    found = found.double()
    assert found.shape == expected.shape
    assert float((found - expected).abs().max() / expected.abs().max()) < tolerance


# ---- each method against the rules by hand -------------------------------------------------------


@pytest.mark.parametrize("family", ["vit", "bert"])
@pytest.mark.parametrize("method", ["attn_lrp", "cp_lrp"])
def test_explicit_rules_are_the_efficient_backward(method, family, models):
    model = models[family]
    relevance, _ = by_hand(model, Explicit(constant=method == "cp_lrp"))
    expected = relevance.sum(0) if family == "vit" else relevance.sum(-1)
    explained = pellucid.explain(model, sample_inputs(model)[0], method=method, target=1)
    agree(explained.scores, expected, 1e-7)


@pytest.mark.parametrize("family", ["vit", "bert"])
def test_lrp_is_the_classical_rules(family, models):
    model = models[family]
    relevance, _ = by_hand(model, Classical(joint=False))
    expected = relevance.sum(0) if family == "vit" else relevance.sum(-1)
    raw = sample_inputs(model)[0]
    explained = pellucid.explain(model, raw, method="lrp", target=1, preset="chefer")
    agree(explained.scores, expected, 1e-6)


@pytest.mark.parametrize("family", ["vit", "bert"])
def test_partial_lrp_reads_the_last_map(family, models):
    model = models[family]
    _, maps = by_hand(model, Classical(joint=False))
    expected = maps[-1].clamp(min=0).mean(0)[0]
    raw = sample_inputs(model)[0]
    explained = pellucid.explain(model, raw, method="partial_lrp", target=1, preset="chefer")
    agree(explained.scores, expected, 1e-6)


@pytest.mark.parametrize("settings", [{}, {"start": 1}, {"start": -1, "normalise": True}])
@pytest.mark.parametrize("family", ["vit", "bert"])
def test_transformer_attribution_is_gradient_times_relevance(family, settings, models):
    model = models[family]
    _, maps = by_hand(model, Classical(joint=True))
    gradients = first_case(model).record(Needs.ATTENTION, gradients=True).gradient("attention")
    tokens = maps[0].shape[-1]
    flow = torch.eye(tokens).double()
    for gradient, relevance in list(zip(gradients[:, 0], maps, strict=True))[
        settings.get("start", 0) :
    ]:
        block = torch.eye(tokens) + (gradient * relevance).clamp(min=0).mean(0)
        if settings.get("normalise"):
            block = block / block.sum(-1, keepdim=True)
        flow = block @ flow
    raw = sample_inputs(model)[0]
    explained = pellucid.explain(model, raw, method="transformer_attribution", target=1, **settings)
    agree(explained.scores, flow[0], 1e-6)


@pytest.mark.parametrize("family", ["vit", "bert"])
def test_transformer_attribution_of_the_maps_themselves_is_the_generic_relevancy(
    family, models, monkeypatch
):
    """With R := A it is Transformer-MM: R <- R + mean over heads of (G * A)⁺ R."""
    model = models[family]
    trace = first_case(model).record(Needs.ATTENTION, gradients=True)
    attention, gradient = trace.attention[:, 0], trace.gradient("attention")[:, 0]
    expected = torch.eye(attention.shape[-1]).double()
    for a, g in zip(attention, gradient, strict=True):
        expected = expected + (g * a).clamp(min=0).mean(0) @ expected
    real = Case.record

    def with_maps_as_relevance(case, what, *, gradients=False, rules=None):
        found = real(case, what, gradients=gradients)
        if rules is not None:
            found.gradient = lambda of: found.attention
        return found

    monkeypatch.setattr(Case, "record", with_maps_as_relevance)
    found = pellucid.methods.METHODS["transformer_attribution"](first_case(model))
    agree(found[0], expected[0], 1e-12)


def test_the_blocks_of_transformer_attribution_are_counted(models):
    raw = sample_inputs(models["vit"])[0]
    for start in (2, -3):
        with pytest.raises(ArgumentError, match=f"start={start}"):
            pellucid.explain(models["vit"], raw, method="transformer_attribution", start=start)


# ---- conservation --------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["conservative_lrp", "cp_lrp"])
@pytest.mark.parametrize("family", ["vit", "bert", "distilbert", "dinov2-registers", "modernbert"])
def test_cp_lrp_conserves_without_biases(family, method):
    """Nothing but biases, positions and the model's own tokens keeps relevance."""
    model = build(family, dtype=torch.float64)
    with torch.no_grad():
        for name, parameter in model.module.named_parameters():
            constant = name.endswith("bias")
            if method == "cp_lrp":
                constant |= any(part in name for part in ("position", "cls_", "register_", "type"))
            if constant:
                parameter.zero_()
    target = Target.logit(0)
    case = Case(model, model.encode(sample_inputs(model), target), target)
    found = pellucid.methods.METHODS[method](case)
    gap = (found.scores.flatten(1).sum(1) - case.value).abs()
    assert float((gap / case.value.abs()).max()) < 1e-10
    assert torch.allclose(found.extras["absorbed"].abs(), gap)


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3-lm", "swin"])
def test_cp_lrp_conserves_through_gates_and_inline_norms(family):
    """As far as norms that are computed in float32 allow."""
    model = build(family, dtype=torch.float64)
    target = Target.logit(0)
    case = Case(model, model.encode(sample_inputs(model), target), target)
    found = pellucid.methods.METHODS["cp_lrp"](case)
    assert float((found.extras["absorbed"] / case.value).abs().max()) < 1e-5
    taylor = pellucid.methods.METHODS["attn_lrp"](case)
    assert float((taylor.extras["absorbed"] / case.value).abs().min()) > 1e-3


class Straight(nn.Module):
    """A model that is linear."""

    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 8, 4, 4)
        self.head = nn.Linear(8, 3)
        self.num_classes = 3

    def forward(self, pixels):
        return self.head(self.patches(pixels).flatten(2).mean(-1))


@pytest.mark.parametrize("method", ["cp_lrp", "attn_lrp"])
def test_on_a_linear_model_it_is_gradient_times_input(method):
    torch.manual_seed(0)
    model = adapt(Straight().eval(), Resize((8, 12)), labels=["x", "y", "z"])
    raw = torch.randint(0, 256, (8, 12, 3), dtype=torch.uint8).numpy()
    found = pellucid.explain(model, raw, method=method)
    expected = pellucid.explain(model, raw, method="gradient_x_input")
    assert torch.equal(found.scores, expected.scores)


# ---- the model is as it was ----------------------------------------------------------------------


@pytest.mark.parametrize("rules", [DeepTaylor(joint=True), GradientRules(gamma=0.25)])
@pytest.mark.parametrize("family", FAMILIES)
def test_outputs_are_the_same_bit_for_bit(family, rules):
    """With frozen weights: torch folds some products only where a weight requires a gradient."""
    model = build(family)
    model.module.requires_grad_(False)
    batch = model.encode(sample_inputs(model), Target.predicted())
    x = model.value_at(batch, "input")
    with AttentionWatch(), torch.no_grad():
        plain = model.rows(model.output_from(batch, "input", x), batch)
    leaf = x.clone().requires_grad_()
    with model.following(rules):
        found = model.rows(model.output_from(batch, "input", leaf), batch)
    assert found.requires_grad
    assert torch.equal(found, plain)


def test_an_eager_model_gives_its_own_outputs_bit_for_bit():
    model = build("bert")
    model.module.set_attn_implementation("eager")
    target = Target.predicted()
    batch = model.encode(sample_inputs(model), target)
    with torch.no_grad():
        plain = model.output(batch).logits
    x = model.value_at(batch, "input").requires_grad_()
    with model.following(GradientRules()):
        found = model.output_from(batch, "input", x).logits
    assert torch.equal(found, plain)


@pytest.mark.parametrize("method", LRP)
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_any_implementation_of_attention_gives_the_same(implementation, method):
    model, other = build("gpt2", dtype=torch.float64), build("gpt2", dtype=torch.float64)
    other.module.set_attn_implementation(implementation)
    raw = sample_inputs(model)[1]
    one = pellucid.explain(model, raw, method=method)
    two = pellucid.explain(other, raw, method=method)
    agree(one.scores, two.scores.double(), 1e-6)


def test_states_may_be_other_than_the_unchanged_one(models):
    """Rules are followed from any state, as gradients are taken at any state."""
    case = first_case(models["bert"])
    x = case.input()
    rules = GradientRules()
    assert torch.equal(case.gradient(x.clone(), rules=rules), case.gradient(x, rules=rules))
    assert not torch.allclose(case.gradient(2 * x, rules=rules), case.gradient(x, rules=rules))


@pytest.mark.parametrize("method", LRP)
def test_other_classes_have_other_relevance(method, models):
    raw = sample_inputs(models["vit"])[0]
    one, two = (pellucid.explain(models["vit"], raw, method=method, target=c) for c in (0, 1))
    assert not torch.allclose(one.scores, two.scores)


def test_going_back_may_end_at_the_last_layers(models):
    trace = first_case(models["bert"]).record(Needs.ATTENTION, gradients=True)
    whole = trace.gradient("attention")
    assert torch.equal(trace.gradients("attention", first=-1)[0], whole[-1])
    assert trace.gradient("attention") is whole


SETTINGS = [
    ("attn_lrp", {"attention": "constant", "gamma": 0.05, "conv_gamma": 0.25}),
    ("cp_lrp", {"gamma": 1.0}),
    ("conservative_lrp", {"gamma": 0.25}),
    ("conservative_lrp", {"activations": "gradient"}),
    ("lrp", {"alpha": 2.0}),
]


@pytest.mark.parametrize("family", ["vit", "gpt2", "plain-image"])
@pytest.mark.parametrize(("method", "settings"), SETTINGS)
def test_settings_keep_the_promises(method, settings, family):
    check_method(method, lambda dtype: build(family, dtype=dtype), **settings)


# ---- what a model may ask for and what it may not ------------------------------------------------

HEADS = {
    "ElectraForMaskedLM": ("electra", word_piece),
    "ModernBertForMaskedLM": ("modernbert", word_piece),
    "RobertaForMaskedLM": ("roberta", word_piece),
    "Qwen2ForCausalLM": ("qwen2", byte_bpe),
    "Qwen3ForSequenceClassification": ("qwen3-lm", byte_bpe),
}


@pytest.mark.parametrize("head", HEADS)
def test_other_heads_have_rules(head, tiny):
    family, tokenizer = HEADS[head]
    module = getattr(transformers, head)(tiny(family).module.config)
    assert Needs.RULES in adapt(module.eval(), tokenizer(), name=head).offers


_SMALL = {"vocab_size": 300, "pad_token_id": 0, "hidden_size": 32, "initializer_range": 0.3}
_LAYERS = _SMALL | {"num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
UNSEEN = {  # families that no line of the rules was written for
    "Bloom": _SMALL | {"n_layer": 2, "n_head": 4},
    "Gemma2": _LAYERS | {"num_key_value_heads": 2, "head_dim": 8, "query_pre_attn_scalar": 8},
    "GPTNeoX": _LAYERS,
}


@pytest.mark.parametrize("family", UNSEEN)
def test_families_that_were_not_thought_of_conserve_as_well(family):
    """ALiBi in one product, capped scores and (1 + weight) norms, parallel branches."""
    settings = getattr(transformers, f"{family}Config")(**UNSEEN[family])
    torch.manual_seed(0)
    module = getattr(transformers, f"{family}ForCausalLM")(settings).eval().double()
    model = adapt(module, byte_bpe(), name=family)
    target = Target.logit(3)
    case = Case(model, model.encode(sample_inputs(model), target), target)
    found = pellucid.methods.METHODS["cp_lrp"](case)
    assert float((found.extras["absorbed"] / case.value).abs().max()) < 1e-5


@pytest.mark.parametrize("name", ["gelu", "gelu_new", "gelu_fast", "quick_gelu", "silu", "relu2"])
def test_any_activation_of_the_library_is_one_function(name):
    model = build("vit", hidden_act=name)
    assert Needs.RULES in model.offers
    assert len(model.anatomy.activations) == 2


class Sigmoidal(nn.Module):
    def forward(self, x):
        return torch.sigmoid(x)


class Cubic(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Hidden(nn.Module):
    def forward(self, x):
        return Cubic.apply(x)


@pytest.mark.parametrize(
    ("part", "reason"), [(Sigmoidal(), "sigmoid"), (Hidden(), "torch does not show")]
)
@pytest.mark.parametrize("place", ["inside", "at the end"])
def test_a_model_without_a_rule_for_all_it_does_is_refused(part, reason, place):
    module = copy.deepcopy(build("plain-image").module)
    if place == "inside":
        module.blocks[0].mlp[1] = part
    else:
        module.head = nn.Sequential(module.head, part)
    model = adapt(module.eval(), Resize((32, 48)), labels=["x", "y", "z"])
    assert Needs.GRADIENTS in model.offers
    assert reason in model.missing(Needs.RULES)
    raw = sample_inputs(model)[0]
    for method in LRP:
        with pytest.raises(UnsupportedCombination, match=reason):
            pellucid.explain(model, raw, method=method)


def test_rules_are_declared():
    """A method that follows rules must say so."""

    @pellucid.method(needs=Needs.GRADIENTS, signed=True)
    def forgetful(case):
        return case.sum_features(case.gradient(case.input(), rules=GradientRules()))

    model = build("vit")
    with pytest.raises(ArgumentError, match="did not declare"):
        pellucid.explain(model, sample_inputs(model)[0], method=forgetful)


def test_the_notice_stands_in_every_method():
    notice = "LRP is patented by its inventors. Whoever builds it into a product should check for"
    for name in LRP:
        module = __import__(f"pellucid.methods.{name}", fromlist=[name])
        assert notice in module.__doc__, name
