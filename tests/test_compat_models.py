"""Models and methods as other libraries want them: tensors in, tensors out, nothing left behind."""

import copy

import numpy as np
import pytest
import torch

import pellucid
from pellucid import ArgumentError, InputError, Target, UnsupportedCombination, compat
from pellucid.compat.spread import spread
from pellucid.testing.contract import check_no_trace
from pellucid.testing.tiny import build, sample_inputs

TEXTS = ["bert", "roberta", "distilbert", "gpt2", "llama", "bert-mlm", "gpt2-lm", "plain-text"]
IMAGES = ["vit", "deit-distilled", "swin", "timm-like", "plain-image"]


def rows_of(model, raw):
    """The logits by the library's own way."""
    batch = model.encode(raw, Target.predicted())
    with torch.no_grad():
        return model.rows(model.output(batch), batch)[:, 0]


# ---- the model -----------------------------------------------------------------------------------


@pytest.mark.parametrize("family", [*TEXTS, *IMAGES])
def test_the_module_gives_the_logits_of_the_model(family, tiny):
    model = tiny(family)
    raw = sample_inputs(model)
    x, rest = compat.encoded(model, raw)
    found = compat.logits_module(model)(x, *rest)
    torch.testing.assert_close(found, rows_of(model, raw))


@pytest.mark.parametrize("family", TEXTS)
def test_ids_and_embeddings_give_the_same(family, tiny):
    model = tiny(family)
    module = compat.logits_module(model)
    x, rest = compat.encoded(model, sample_inputs(model))
    ids, _ = compat.encoded(model, sample_inputs(model), at="ids")
    assert ids.dtype == torch.long
    torch.testing.assert_close(module(ids, *rest), module(x, *rest))


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert", "gpt2", "llama", "gpt2-lm"])
def test_embeddings_without_ids_know_their_padding(family, tiny):
    model = tiny(family)
    x, (mask, kinds, _, positions) = compat.encoded(model, sample_inputs(model))
    found = compat.logits_module(model)(x, mask, kinds, None, positions)
    torch.testing.assert_close(found, rows_of(model, sample_inputs(model)))


def test_a_model_that_pads_on_the_left(tiny):
    model = tiny("gpt2-lm").padded_on("left")
    x, rest = compat.encoded(model, sample_inputs(model))
    found = compat.logits_module(model)(x, *rest)
    torch.testing.assert_close(found, rows_of(model, sample_inputs(model)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("family", ["bert", "vit"])
def test_gradients_flow_and_are_those_of_the_model(family, tiny):
    model = tiny(family)
    raw = sample_inputs(model)[:1]
    x, rest = compat.encoded(model, raw)
    x = x.requires_grad_()
    (found,) = torch.autograd.grad(compat.logits_module(model)(x, *rest)[0, 1], x)
    batch = model.encode(raw, Target.logit(1))
    name = "pixel_values" if family == "vit" else "inputs_embeds"
    leaf = x.detach().clone().requires_grad_()
    others = {k: v for k, v in batch.inputs.items() if k not in ("input_ids", "pixel_values")}
    (expected,) = torch.autograd.grad(model.module(**others, **{name: leaf}).logits[0, 1], leaf)
    torch.testing.assert_close(found, expected)


def test_hooks_on_the_users_own_parts_work():
    model = build("vit")
    module, seen = compat.logits_module(model), []
    handle = module.module.get_submodule("vit.layernorm").register_forward_hook(
        lambda *args: seen.append(args[-1].shape)
    )
    module(*compat.encoded(model, sample_inputs(model))[:1])
    handle.remove()
    assert len(seen) == 1
    assert module.module is model.module


def test_a_copy_is_another_model(tiny):
    model = tiny("vit")
    module = compat.logits_module(model)
    x, _ = compat.encoded(model, sample_inputs(model))
    before = module(x)
    other = copy.deepcopy(module)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.mul_(0.5)
    assert torch.equal(module(x), before)
    assert not torch.allclose(other(x), before)
    assert other.adapter.module is other.module is not model.module
    mine = compat.attribute(other, method="gradient").attribute(x, target=0)
    assert not torch.allclose(mine, compat.attribute(model, method="gradient").attribute(x, 0))


@pytest.mark.parametrize("family", ["bert", "vit"])
def test_nothing_is_left_behind(family):
    model = build(family)
    raw = sample_inputs(model)

    def use():
        x, rest = compat.encoded(model, raw)
        module = compat.logits_module(model)
        torch.autograd.grad(module(x.requires_grad_(), *rest).sum(), x)
        at = "ids" if family == "bert" else "input"
        x, rest = compat.encoded(model, raw, at=at)
        compat.attribute(model, method="integrated_gradients", steps=2).attribute(x, 1, rest)

    check_no_trace(model, use)


def test_wrong_tensors_are_refused(tiny):
    text, image = (compat.logits_module(tiny(name)) for name in ("bert", "vit"))
    with pytest.raises(InputError, match="batch, 3 channels"):
        image(torch.zeros(3, 32, 48))
    with pytest.raises(InputError, match="batch, 3 channels"):
        image(torch.zeros(1, 3, 32, 48, dtype=torch.uint8))
    with pytest.raises(InputError, match="batch, tokens, width"):
        text(torch.zeros(1, 4))
    with pytest.raises(InputError, match="attention_mask: batch, tokens"):
        text(torch.ones(1, 4, dtype=torch.long), torch.ones(1, 3, dtype=torch.long))
    with pytest.raises(InputError, match="a masked word to predict"):
        compat.logits_module(tiny("bert-mlm"))(torch.ones(1, 4, dtype=torch.long))
    with pytest.raises(ArgumentError, match="input_ids=ids"):
        compat.logits_module(tiny("bert-mlm"))(torch.zeros(1, 4, 32))
    with pytest.raises(ArgumentError, match="at='ids'"):
        compat.encoded(tiny("vit"), sample_inputs(tiny("vit")), at="ids")
    box = pellucid.blackbox(
        lambda texts: np.zeros((len(texts), 2)), kind="text", labels=["a", "b"], gives="logits"
    )
    with pytest.raises(UnsupportedCombination, match="a black box"):
        compat.logits_module(box)


def test_one_text_at_a_time_where_padding_has_no_token():
    model = build("gpt2", pad_token_id=None)
    module = compat.logits_module(model)
    x, rest = compat.encoded(model, "the film is fine")
    torch.testing.assert_close(module(x, *rest), rows_of(model, ["the film is fine"]))
    with pytest.raises(InputError, match="one text at a time"):
        module(x.repeat(2, 1, 1), rest[0].repeat(2, 1))


# ---- the methods ---------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["bert", "roberta", "gpt2", "bert-mlm", "llama-lm"])
@pytest.mark.parametrize("method", ["gradient_x_input", "rollout", "occlusion"])
def test_scores_of_ids_are_those_of_the_texts(family, method, tiny):
    model = tiny(family)
    raw = sample_inputs(model)
    ids, rest = compat.encoded(model, raw, at="ids")
    found = compat.attribute(model, method=method).attribute(ids, additional_forward_args=rest)
    assert found.shape == ids.shape
    for row, mask, ex in zip(
        found, rest[0], pellucid.explain(model, raw, method=method), strict=True
    ):
        torch.testing.assert_close(row[mask.bool()], ex.scores, rtol=1e-4, atol=1e-6)
        assert (row[~mask.bool()] == 0).all()


@pytest.mark.parametrize("family", ["vit", "deit-distilled", "swin", "plain-image"])
def test_pixels_have_the_sum_of_their_patches(family, tiny):
    model = tiny(family)
    raw = sample_inputs(model)
    x, _ = compat.encoded(model, raw)
    method = "occlusion" if family == "swin" else "gradient_x_input"
    found = compat.attribute(model, method=method).attribute(x)
    assert found.shape == x.shape
    for one, ex in zip(found, pellucid.explain(model, raw, method=method), strict=True):
        torch.testing.assert_close(one.sum(dim=0), ex.scores, rtol=1e-4, atol=1e-6)


def test_a_patch_is_shared_evenly_and_the_models_tokens_are_left_out(tiny):
    model = tiny("vit")
    ex = pellucid.explain(model, sample_inputs(model)[0], method="random")
    found = spread(ex.scores[None], [ex.item], 3)[0]
    assert found.sum().item() == pytest.approx(ex.patches().sum().item(), abs=1e-5)
    rows, columns = ex.item.grid
    height, width = found.shape[1] // rows, found.shape[2] // columns
    first = found[:, :height, :width]
    assert (first == first[0, 0, 0]).all()
    assert first.sum().item() == pytest.approx(ex.patches()[0, 0].item(), abs=1e-6)


def test_a_border_without_patches_gets_zero():
    model = build("vit")
    ex = pellucid.explain(model, sample_inputs(model)[0], method="random")
    view = np.zeros((ex.item.view.shape[0] + 2, ex.item.view.shape[1] + 3, 3), np.uint8)
    wider = pellucid._types.Picture(view, ex.item.segments, ex.item.grid)
    found = spread(ex.scores[None], [wider], 1)[0, 0]
    assert (found[-2:] == 0).all()
    assert (found[:, -3:] == 0).all()


def test_each_input_has_its_own_target(tiny):
    model = tiny("vit")
    x, _ = compat.encoded(model, sample_inputs(model))
    tool = compat.attribute(model, method="gradient_x_input")
    alone = torch.cat([tool.attribute(x[i : i + 1], target=t) for i, t in enumerate([2, 0, 2])])
    for targets in ([2, 0, 2], torch.tensor([2, 0, 2]), np.array([2, 0, 2])):
        torch.testing.assert_close(tool.attribute(x, target=targets), alone)
    same = tool.attribute(x, target=torch.tensor(1))
    torch.testing.assert_close(tool.attribute(x, target=[Target.logit(1)]), same)


def test_what_is_drawn_does_not_depend_on_the_batch(tiny):
    model = tiny("vit")
    x, _ = compat.encoded(model, sample_inputs(model))
    tool = compat.attribute(model, method="rise", masks=8)
    whole = tool.attribute(x, target=1, seed=3)
    torch.testing.assert_close(whole[1:2], tool.attribute(x[1:2], target=1, seed=3, batch_size=1))
    assert not torch.allclose(whole, tool.attribute(x, target=1, seed=4))


def test_pixels_beyond_any_picture_are_explained_as_they_are(tiny):
    model = tiny("vit")
    x, _ = compat.encoded(model, sample_inputs(model))
    x = 5 * x
    found = compat.attribute(model, method="gradient_x_input").attribute(x, target=0)
    leaf = x.clone().requires_grad_()
    (slope,) = torch.autograd.grad(compat.logits_module(model)(leaf)[:, 0].sum(), leaf)
    torch.testing.assert_close(found.sum(dim=1), (slope * x).sum(dim=1))


def test_wrong_calls_are_refused(tiny):
    tool = compat.attribute(tiny("bert"))
    with pytest.raises(ArgumentError, match="at='ids'"):
        tool.attribute(torch.zeros(1, 4, 32))
    with pytest.raises(ArgumentError, match="2 targets for 3 inputs"):
        tool.attribute(torch.ones(3, 4, dtype=torch.long), target=[0, 1])
    with pytest.raises(ArgumentError, match="as one tensor"):
        tool.attribute(["the film"])
    with pytest.raises(ArgumentError, match="empty"):
        tool.attribute(torch.ones(0, 4, dtype=torch.long))
    with pytest.raises(ArgumentError, match="no such class"):
        tool.attribute(torch.ones(1, 4, dtype=torch.long), target=77)
    with pytest.raises(ArgumentError, match="unknown method"):
        compat.attribute(tiny("bert"), method="rolout")
    with pytest.raises(UnsupportedCombination):
        compat.attribute(tiny("swin"), method="rollout")


# ---- anyone's scores -----------------------------------------------------------------------------


def test_scores_of_another_tool_are_an_explanation(tiny, tmp_path):
    model = tiny("bert")
    ours = pellucid.explain(model, "the film is fine", method="gradient_x_input", target=1)
    own = [i for i, segment in enumerate(ours.segments) if segment.role == "content"]
    for given in (ours.scores, ours.scores.numpy(), ours.scores.tolist()):
        found = compat.explanation(
            model, "the film is fine", given, method="theirs", target=1, params={"n": 3}
        )
        assert torch.equal(found.scores, ours.scores)
        assert (found.method, found.params, found.index) == ("theirs", {"n": 3}, 1)
        assert found.value == ours.value
    fewer = compat.explanation(model, "the film is fine", ours.scores[own], method="theirs")
    assert torch.equal(fewer.scores[own], ours.scores[own])
    assert fewer.scores.count_nonzero() == len(own)
    mine, theirs = (
        pellucid.measure(model, one, metric="comprehensiveness").value for one in (ours, found)
    )
    assert mine == theirs is not None
    again = pellucid.Explanation.load(found.save(tmp_path / "theirs.safetensors"))
    assert torch.equal(again.scores, found.scores)
    pellucid.report([ours, found], tmp_path / "both.html")
    assert "theirs" in (tmp_path / "both.html").read_text(encoding="utf-8")


def test_patches_and_pixels_of_another_tool(tiny):
    model = tiny("vit")
    raw = sample_inputs(model)[0]
    ex = pellucid.explain(model, raw, method="rollout")
    grid = ex.patches()
    for given in (grid, grid.flatten()):
        found = compat.explanation(model, raw, given, method="theirs", signed=False)
        assert torch.equal(found.patches(), grid)
        assert not found.signed
    pixels = np.random.default_rng(0).normal(size=ex.item.view.shape[:2])
    found = compat.explanation(model, raw, pixels, method="theirs")
    assert np.array_equal(found.scores.numpy(), pixels)
    assert pellucid.measure(model, found, metric="deletion", steps=4).value is not None


def test_whole_numbers_are_scores_and_the_original_is_not_kept(tiny):
    given = np.arange(6)
    found = compat.explanation(tiny("bert"), "the film is fine", given, method="order")
    given[:] = 0
    assert found.scores.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (torch.zeros(3), r"\(6,\): one a token, or \(4,\)"),
        (torch.zeros(1, 6), "one input at a time"),
        (torch.full((6,), torch.nan), "6 of 6"),
        ([[1.0], [2.0, 3.0]], "these are not scores"),
        ("high", "these are not scores"),
    ],
)
def test_wrong_scores_are_refused(scores, message, tiny):
    with pytest.raises(pellucid.PellucidError, match=message):
        compat.explanation(tiny("bert"), "the film is fine", scores, method="theirs")
