"""CLIP: both towers of one model, against the library's own similarities and promises."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
import transformers

import pellucid
from pellucid import Needs, Target
from pellucid._case import Case
from pellucid.testing import check_adapter, check_method
from pellucid.testing.tiny import word_piece

TEXTS = ["a great film", "a slow plot , not fine"]
METHODS = ["gradient_x_input", "rollout", "grad_cam", "transformer_mm", "attcat", "vtranm", "bt_t"]


def images():
    generator = torch.Generator().manual_seed(2)
    return list(torch.randint(0, 256, (2, 40, 48, 3), dtype=torch.uint8, generator=generator))


def clip(dtype=torch.float64):
    """A tiny CLIP whose text tower reads from [SEP], as CLIP does from its last token."""
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    text = {"vocab_size": 300, "max_position_embeddings": 64, "intermediate_size": 48}
    text |= {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
    config = transformers.CLIPConfig(
        text_config=sizes | text,
        vision_config=sizes | {"image_size": 32, "patch_size": 8, "intermediate_size": 48},
        projection_dim=16,
    )
    config.initializer_factor = config.text_config.initializer_factor = 4.0
    config.vision_config.initializer_factor = 4.0
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = transformers.CLIPModel(config)
        for parameter in module.parameters():
            if parameter.dim() == 1:  # with biases, even an empty text has a direction
                torch.nn.init.normal_(parameter, mean=parameter.mean().item(), std=0.2)
    picture = transformers.CLIPImageProcessorPil(
        size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}
    )
    return module.eval().to(dtype), SimpleNamespace(tokenizer=word_piece(), image_processor=picture)


def of_images(dtype=torch.float64):
    return pellucid.adapt(*clip(dtype), against=TEXTS, name="images of clip")


def of_texts(dtype=torch.float64):
    return pellucid.adapt(*clip(dtype), against=images(), name="texts of clip")


def similarities(module, processor):
    """The library's own (images, texts)."""
    pixels = pellucid.adapt(module, processor, against=TEXTS).encode(images(), Target())
    ids = processor.tokenizer(TEXTS, padding=True, return_tensors="pt")
    with torch.no_grad():
        return module(
            input_ids=ids["input_ids"],
            attention_mask=ids["attention_mask"],
            pixel_values=pixels.inputs["pixel_values"],
        ).logits_per_image


def test_both_towers_give_the_librarys_similarities():
    expected = similarities(*clip())
    for model, raw, truth in (
        (of_images(), images(), expected),
        (of_texts(), TEXTS, expected.T),
    ):
        batch = model.encode(raw, Target.predicted())
        with torch.no_grad():
            found = model.rows(model.output(batch), batch)[:, 0]
        torch.testing.assert_close(found, truth)
    assert of_images().labels == tuple(TEXTS)
    assert of_texts().labels == ("image 0", "image 1")


@pytest.mark.parametrize("build", [of_images, of_texts])
def test_towers_keep_the_promises_of_adapters(build):
    offered = build().offers
    for need in (Needs.ATTENTION, Needs.PROJECTION, Needs.READOUT, Needs.TOKENS, Needs.GRADIENTS):
        assert need in offered
    check_adapter(build)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("build", [of_images, of_texts])
def test_methods_keep_their_promises_on_towers(build, method):
    check_method(method, build)


def test_relevance_of_a_pair_is_that_of_the_whole_model():
    """Maps and gradients of the similarity from one pass of both towers, as Chefer et al. take."""
    module, processor = clip()
    model = pellucid.adapt(module, processor, against=TEXTS)
    batch = model.encode(images()[:1], Target())
    ids = processor.tokenizer(TEXTS[:1], return_tensors="pt")
    module.set_attn_implementation("eager")
    out = module(
        input_ids=ids["input_ids"],
        attention_mask=ids["attention_mask"],
        pixel_values=batch.inputs["pixel_values"],
        output_attentions=True,
    )
    for side, row, found in (
        ("vision", 0, pellucid.explain(model, images()[0], method="transformer_mm", target=0)),
        (
            "text",
            -1,  # [SEP], where a text is read
            pellucid.explain(of_texts(), TEXTS[0], method="transformer_mm", target=0),
        ),
    ):
        maps = getattr(out, f"{side}_model_output").attentions
        gradients = torch.autograd.grad(out.logits_per_image[0, 0], maps, retain_graph=True)
        flow = torch.eye(maps[0].shape[-1], dtype=torch.float64)
        for attention, gradient in zip(maps, gradients, strict=True):
            flow = flow + (gradient[0] * attention[0]).relu().mean(0) @ flow
        torch.testing.assert_close(found.scores, flow[row].detach(), rtol=1e-4, atol=1e-6)


def test_one_text_is_compared_by_value():
    module, processor = clip()
    model = pellucid.adapt(module, processor, against="a great film")
    found = pellucid.explain(model, images()[0], method="transformer_mm", preset="clip")
    assert found.label == "value"
    assert found.value == pytest.approx(float(similarities(module, processor)[0, 0]))


def test_the_readout_of_a_text_is_its_last_token():
    model = of_texts()
    case = Case(model, model.encode(TEXTS, Target()), Target())
    last = [int(mask.sum()) - 1 for mask in case.mask]
    assert case.readout.argmax(dim=1).tolist() == last


@pytest.mark.parametrize(
    ("against", "words"),
    [
        (None, "against=\\['a photo of a cat'\\]"),
        ([], "at least one"),
        (["a film", torch.zeros(3, 4, 4)], "all of one kind"),
    ],
)
def test_what_to_compare_with_must_be_said(against, words):
    with pytest.raises(pellucid.PellucidError, match=words):
        pellucid.adapt(*clip(), against=against)


def test_a_model_in_training_is_refused_before_it_compares():
    module, processor = clip()
    with pytest.raises(pellucid.ModelError, match="training"):
        pellucid.adapt(module.train(), processor, against=TEXTS)
