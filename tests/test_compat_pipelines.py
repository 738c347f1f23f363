"""A `transformers.pipeline` is accepted wherever a model is, and stays as it was."""

import gc
import weakref

import pytest
import torch

import pellucid
from pellucid import compat
from pellucid.testing.contract import check_no_trace
from pellucid.testing.tiny import build, sample_inputs

TASKS = {
    "text-classification": "bert",
    "image-classification": "vit",
    "fill-mask": "bert-mlm",
    "text-generation": "gpt2-lm",
}


def piped(task):
    """A pipeline, the same model adapted, and an input that both take."""
    from transformers import pipeline

    model = build(TASKS[task])
    processor = getattr(model.reader, "tokenizer", None) or model.reader.preprocessing.processor
    kind = "image_processor" if model.kind == "image" else "tokenizer"
    made = pipeline(task, model=model.module, device="cpu", **{kind: processor})
    return made, model, sample_inputs(model)[0]


@pytest.mark.parametrize("task", TASKS)
def test_a_pipeline_is_explained_and_measured(task):
    made, model, raw = piped(task)
    found, expected = (pellucid.explain(one, raw, method="rollout") for one in (made, model))
    assert torch.equal(found.scores, expected.scores)
    assert found.prediction == expected.prediction
    metric = "deletion" if task == "image-classification" else "comprehensiveness"
    numbers = [pellucid.measure(one, found, metric=metric).value for one in (made, model)]
    assert numbers[0] == numbers[1] is not None
    tables = [
        pellucid.evaluate(one, [raw], methods=["random"], metrics=[metric]) for one in (made, model)
    ]
    assert tables[0].rows[0].mean == tables[1].rows[0].mean is not None
    fitting = [[e.name for e in pellucid.list_methods(one) if e.fits] for one in (made, model)]
    assert fitting[0] == fitting[1] != []


@pytest.mark.parametrize("task", TASKS)
def test_a_pipeline_is_explored(task):
    made, model, raw = piped(task)
    found, expected = (pellucid.explore(one, raw, steps=2) for one in (made, model))
    assert torch.equal(found.points[-1], expected.points[-1])


@pytest.mark.parametrize("task", TASKS)
def test_a_pipeline_is_given_to_other_libraries(task):
    made, model, raw = piped(task)
    x, rest = compat.encoded(made, raw)
    assert torch.equal(compat.logits_module(made)(x, *rest), compat.logits_module(model)(x, *rest))
    ex = pellucid.explain(made, raw, method="random")
    assert compat.explanation(made, raw, ex.scores, method="theirs").index == ex.index


@pytest.mark.parametrize("task", TASKS)
def test_a_pipeline_answers_as_before(task):
    made, model, raw = piped(task)
    asked = torch.zeros(32, 48, 3, dtype=torch.uint8).numpy() if model.kind == "image" else raw
    if model.kind == "image":
        from PIL import Image

        asked = Image.fromarray(asked)
    options = {"max_new_tokens": 2, "do_sample": False} if task == "text-generation" else {}
    before = made(asked, **options)
    check_no_trace(model, lambda: pellucid.explain(made, raw, method="gradient_x_input"))
    assert made(asked, **options) == before


def test_a_pipeline_is_examined_once_and_let_go():
    made, model, raw = piped("text-classification")
    first = pellucid.adapters.as_adapter(made)
    assert pellucid.adapters.as_adapter(made) is first
    pellucid.explain(made, raw)
    gone = weakref.ref(made), weakref.ref(model.module)
    del made, model, first
    gc.collect()
    assert [one() for one in gone] == [None, None]


def test_a_pipeline_with_another_model_is_examined_again():
    made, _, raw = piped("text-classification")
    before = pellucid.explain(made, raw)
    other = build("distilbert")
    made.model = other.module
    found = pellucid.explain(made, raw)
    assert torch.equal(found.scores, pellucid.explain(other, raw).scores)
    assert found.provenance.weights != before.provenance.weights


def test_a_plain_module_that_was_explained_is_let_go():
    module = build("timm-like").module
    pellucid.explain(module, sample_inputs(build("timm-like"))[0], method="gradient")
    gone = weakref.ref(module)
    del module
    gc.collect()
    assert gone() is None
