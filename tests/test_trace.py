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
