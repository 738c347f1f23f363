"""Stream, branches, places and Jacobians, against the modules' own outputs."""

from __future__ import annotations

import pytest
import torch

from pellucid import Needs, Target
from pellucid._case import Case
from pellucid.testing.tiny import build, sample_inputs

BRANCHES = {  # family -> (module in a block whose output the attention branch is, the MLP's)
    "vit": ("attention", "mlp"),
    "dinov2": ("layer_scale1", "layer_scale2"),
    "bert": ("attention.output.dropout", "output.dropout"),
    "gpt2": ("attn", "mlp"),
    "llama": ("self_attn", "mlp"),
    "modernbert": ("attn", "mlp"),
    "timm-like": ("proj", "mlp"),
}


def case_of(family, target=None, **options):
    adapter = build(family, dtype=torch.float64, **options)
    target = target or Target.predicted()
    return Case(adapter, adapter.encode(sample_inputs(adapter), target), target)


@pytest.mark.parametrize("family", BRANCHES)
def test_branches_are_what_the_modules_return(family):
    case = case_of(family)
    outputs = {0: [], 1: []}
    handles = [
        block.get_submodule(name).register_forward_hook(
            lambda m, a, out, kind=kind: outputs[kind].append(
                out[0] if isinstance(out, tuple) else out
            )
        )
        for block in case.adapter.anatomy.blocks
        for kind, name in enumerate(BRANCHES[family])
    ]
    attention, mlp = case.record(Needs.BRANCHES).branches
    for handle in handles:
        handle.remove()
    torch.testing.assert_close(attention, torch.stack(outputs[0]).detach(), atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(mlp, torch.stack(outputs[1]).detach(), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("family", ["bert", "vit", "gpt2-lm", "llama"])
def test_stream_equals_the_hidden_states_of_the_library(family):
    case = case_of(family)
    trace = case.record(Needs.STREAM)
    with torch.no_grad():
        output = case.adapter.module(**case.batch.inputs, output_hidden_states=True)
    last = len(case.adapter.anatomy.blocks)  # theirs may have the final normalisation in it
    for ours, theirs in zip(trace.stream[:last], output.hidden_states[:last], strict=True):
        torch.testing.assert_close(ours[case.mask], theirs[case.mask])


@pytest.mark.parametrize("family", ["vit", "bert", "gpt2"])
def test_gradients_of_the_stream_are_those_from_each_place(family):
    case = case_of(family)
    trace = case.record(Needs.STREAM | Needs.ATTENTION, gradients=True)
    found = trace.gradient("stream")
    for layer in range(len(found)):
        at = f"hidden:{layer}"
        torch.testing.assert_close(found[layer], case.gradient(case.input(at), at))
    assert trace.gradient("attention").shape == trace.attention.shape
    assert case.meter.backwards == 2 + len(found)


def test_gradients_need_no_parameter_that_requires_them():
    case = case_of("vit")
    case.adapter.module.requires_grad_(False)
    frozen = case.record(Needs.ATTENTION, gradients=True).gradient("attention")
    other = case_of("vit").record(Needs.ATTENTION, gradients=True).gradient("attention")
    assert torch.equal(frozen, other)


@pytest.mark.parametrize("family", ["vit", "bert"])
@pytest.mark.parametrize("at", ["input", "embedding", "hidden:1"])
def test_jacobian_agrees_with_dense_truth(family, at):
    case = case_of(family)
    jacobian = case.jacobian(at=at)
    v = torch.randn(jacobian.x.shape, generator=torch.Generator().manual_seed(0)).double()

    def logits(step):
        with torch.no_grad():
            output = case.adapter.output_from(case.batch, at, jacobian.x + step * v)
        return case.adapter.rows(output, case.batch).flatten(1)

    difference = (logits(1e-5) - logits(-1e-5)) / 2e-5
    torch.testing.assert_close(jacobian.jvp(v).detach(), difference, atol=1e-6, rtol=1e-6)
    rows = jacobian.rows()
    assert rows.shape == (len(v), jacobian.y.shape[1], *v.shape[1:])
    u = torch.randn(jacobian.y.shape, generator=torch.Generator().manual_seed(1)).double()
    combined = torch.einsum("bq,bq...->b...", u, rows)
    torch.testing.assert_close(jacobian.vjp(u), combined)


@pytest.mark.parametrize("family", ["vit", "deit-distilled", "dinov2-registers", "clip-vision"])
def test_a_dropped_patch_is_as_if_it_were_not_attended_to(family):
    from pellucid.record.attention import AttentionWatch

    case = case_of(family)
    stays = case.mask.clone()
    stays[:, case.adapter.anatomy.prefix + 3] = False
    dropped = case.adapter.keep(case.batch, stays)
    assert all(len(item.segments) == stays.shape[1] - 1 for item in dropped.items)
    if case.adapter.anatomy.readout.patches:
        return  # the hidden patch would still be in the mean that is read
    with torch.no_grad(), AttentionWatch(blocked=~stays):
        hidden = case.adapter.output(case.batch).logits
    with torch.no_grad():
        short = case.adapter.output(dropped).logits
    torch.testing.assert_close(short, hidden, atol=1e-9, rtol=1e-9)


def test_readout_of_a_function_is_found_by_its_gradient():
    case = case_of("bert", Target.of(lambda output: output.logits[:, 0]))
    expected = torch.zeros_like(case.mask, dtype=torch.float32)
    expected[:, 0] = 1.0
    torch.testing.assert_close(case.readout, expected)


READ = {
    "vit": lambda n, p: {0: 1.0},
    "deit-distilled": lambda n, p: {0: 0.5, 1: 0.5},
    "clip-vision": lambda n, p: dict.fromkeys(range(p, n), 1 / (n - p)),
    "dinov2": lambda n, p: {0: 0.5} | dict.fromkeys(range(p, n), 0.5 / (n - p)),
}


@pytest.mark.parametrize("family", READ)
def test_image_models_are_read_where_their_heads_read(family):
    case = case_of(family)
    tokens, prefix = case.mask.shape[1], case.adapter.anatomy.prefix
    expected = torch.zeros(tokens)
    for position, weight in READ[family](tokens, prefix).items():
        expected[position] = weight
    torch.testing.assert_close(case.readout[0], expected)


@pytest.mark.parametrize(
    ("family", "position"),
    [
        ("bert", lambda m: 0),
        ("gpt2", lambda m: int(m.sum()) - 1),
        ("llama-lm", lambda m: int(m.sum()) - 1),
    ],
)
def test_text_models_are_read_where_their_heads_read(family, position):
    case = case_of(family)
    for weights, mask in zip(case.readout, case.mask, strict=True):
        assert int(weights.argmax()) == position(mask)
        assert weights.sum() == 1


def test_the_mean_is_over_real_tokens_only():
    case = case_of("modernbert")
    torch.testing.assert_close(case.readout, case.mask / case.mask.sum(1, keepdim=True))


@pytest.mark.parametrize("family", ["vit", "bert", "gpt2"])
@pytest.mark.parametrize("branch", ["attention_branch", "mlp_branch"])
def test_gradients_of_branches_are_finite_differences(family, branch):
    """Add a little to what a block's branch returns, and watch the explained number."""
    case = case_of(family, Target.logit(1))
    gradient = case.record(Needs.BRANCHES, gradients=True).gradient(branch)
    kind = ("attention_branch", "mlp_branch").index(branch)
    generator = torch.Generator().manual_seed(0)
    for layer, block in enumerate(case.adapter.anatomy.blocks):
        step = 1e-5 * torch.randn(gradient[layer].shape, generator=generator).double()
        part = block.get_submodule(BRANCHES[family][kind])

        def nudged(sign, part=part, step=step):
            def add(module, args, out):
                if isinstance(out, tuple):
                    return (out[0] + sign * step, *out[1:])
                return out + sign * step

            handle = part.register_forward_hook(add)
            try:
                return case.score_of(case.batch, torch.arange(len(case.batch)))
            finally:
                handle.remove()

        difference = (nudged(1) - nudged(-1)) / 2
        expected = (gradient[layer] * step).flatten(1).sum(1)
        torch.testing.assert_close(difference, expected, rtol=1e-4, atol=1e-10)


@pytest.mark.parametrize("kind", ["parallel", "norm after the branch"])
def test_branches_of_other_block_kinds_are_refused(kind):
    from torch import nn

    from pellucid import adapt
    from pellucid.testing.tiny import InlineBlock, PatchTransformer

    class Other(InlineBlock):
        def attend(self, x):
            q, k, v = self.qkv(x).unflatten(-1, (3, 4, -1)).permute(2, 0, 3, 1, 4)
            maps = (q @ k.transpose(-2, -1)).softmax(-1)
            return self.proj((maps @ v).transpose(1, 2).flatten(2))

        def forward(self, x):
            if kind == "parallel":
                return x + self.attend(self.norm1(x)) + self.mlp(self.norm2(x))
            x = x + self.norm1(self.attend(x))
            return x + self.norm2(self.mlp(x))

    torch.manual_seed(0)
    module = PatchTransformer(inline=True)
    module.blocks = nn.Sequential(Other(32), Other(32))
    from pellucid import Resize

    model = adapt(module.eval(), Resize((32, 48)), labels=["x", "y", "z"])
    assert Needs.ATTENTION in model.offers
    assert Needs.BRANCHES not in model.offers


def test_dropping_twice_is_dropping_both():
    case = case_of("vit")
    tokens = case.mask.shape[1]
    once = case.mask.clone()
    once[:, [3, 7]] = False
    first = case.mask.clone()
    first[:, 3] = False
    second = torch.ones(len(first), tokens - 1, dtype=torch.bool)
    second[:, 6] = False  # the token that was number 7
    adapter = case.adapter
    together = adapter.keep(case.batch, once)
    in_turn = adapter.keep(adapter.keep(case.batch, first), second)
    assert torch.equal(together.kept, in_turn.kept)
    with torch.no_grad():
        one, other = (adapter.output(batch).logits for batch in (together, in_turn))
    assert torch.equal(one, other)


def test_dropping_never_takes_the_models_own_tokens():
    case = case_of("vit")
    patches = case.content.clone()
    patches[:, 5] = False
    with_cls = patches | ~case.content
    torch.testing.assert_close(case.drop(patches), case.drop(with_cls))


@pytest.mark.parametrize("mask", [0, 1])
def test_the_same_mask_is_read_after_tokens_are_dropped(mask):
    adapter = build("bert-mlm", dtype=torch.float64)
    target = Target.at_mask("good", mask=mask, quantity="probability")
    case = Case(adapter, adapter.encode(["the [MASK] is [MASK] at all"], target), target)
    torch.testing.assert_close(case.drop(case.mask), case.value)
    with pytest.raises(ValueError, match="cannot be dropped"):
        adapter.keep(case.batch, case.content)  # which leaves out every [MASK]


def test_an_empty_text_is_the_token_that_begins_or_ends_one():
    case = case_of("gpt2-lm")
    start = case.adapter.reader.tokenizer.eos_token_id
    with torch.no_grad():
        logits = case.adapter.module(torch.tensor([[start]])).logits[:, 0]
    expected = case.objective.of_rows(logits[:, None].expand(len(case.batch), -1, -1))
    torch.testing.assert_close(case.drop(torch.zeros_like(case.mask)), expected)
    case.adapter.reader.tokenizer.eos_token = None
    with pytest.raises(ValueError, match="nothing is left"):
        case.drop(torch.zeros_like(case.mask))
    bert = case_of("bert")
    assert torch.isfinite(bert.drop(torch.zeros_like(bert.mask))).all()  # [CLS] and [SEP] stay


def test_a_word_table_that_is_read_twice_offers_no_gradients():
    from torch import nn

    from pellucid import adapt
    from pellucid.testing.tiny import word_piece

    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.head = nn.Embedding(300, 8), nn.Linear(8, 2)

        def forward(self, input_ids, attention_mask):
            first, second = self.table(input_ids), self.table(input_ids.flip(1))
            return self.head(first.mean(1) - second[:, 0])

    model = adapt(Twice().eval(), word_piece(), labels=["x", "y"])
    assert Needs.GRADIENTS not in model.offers
    assert "more than once" in model.missing(Needs.GRADIENTS)


def test_the_jacobian_counts_its_passes():
    case = case_of("bert")
    jacobian = case.jacobian()
    before = case.meter.forwards.tolist(), case.meter.backwards
    v = torch.zeros_like(jacobian.x)
    jacobian.jvp(v)
    jacobian.rows()
    after = case.meter.forwards.tolist(), case.meter.backwards
    assert [a - b for a, b in zip(after[0], before[0], strict=True)] == [2, 2, 2]
    assert after[1] - before[1] == jacobian.y.shape[1]
    assert not jacobian.jvp(v).requires_grad
    torch.testing.assert_close(jacobian.rows(chunk=2), jacobian.rows())
