"""The engine: batches, memory, budgets, precision, wrappers, placement, threads."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch

import pellucid
from pellucid import ArgumentError, BudgetExceeded, Needs, Target
from pellucid._case import Case
from pellucid._needs import obstacle
from pellucid.methods import METHODS
from pellucid.record.places import replaced
from pellucid.testing.contract import assert_same, quick
from pellucid.testing.tiny import FAMILIES, build, byte_bpe, sample_inputs

# ---- batches -------------------------------------------------------------------------------------


FOR_TEXTS = [name for name, spec in METHODS.items() if "text" in spec.kinds]


def test_one_input_gives_one_and_a_list_gives_a_list():
    model = build("bert")
    assert isinstance(pellucid.explain(model, "the film"), pellucid.Explanation)
    assert isinstance(pellucid.explain(model, ["the film"]), list)
    assert pellucid.explain(model, []) == []
    assert len(pellucid.explain(model, (text for text in ("the film", "a plot")))) == 2
    pair = pellucid.explain(model, ("the film", "is fine"))
    assert [segment.part for segment in pair.segments if segment.role == "content"] == [0, 0, 1, 1]


def test_batches_are_halved_when_memory_runs_out():
    model = build("bert")
    sizes = []

    def hungry(case):
        sizes.append(len(case.batch))
        if len(case.batch) > 2:
            raise torch.OutOfMemoryError("no memory left")
        return case.randn()

    texts = [f"the film is {word}" for word in ("fine", "bad", "great", "slow", "good")]
    found = pellucid.explain(model, texts, method=hungry, batch_size=8)
    assert [one.item.parts[0] for one in found] == texts
    assert sizes == [5, 2, 3, 1, 2]
    assert torch.equal(found[3].scores, pellucid.explain(model, texts[3], method=hungry).scores)


def test_memory_that_runs_out_on_one_input_is_an_error():
    def starving(case):
        raise torch.OutOfMemoryError("no memory left")

    with pytest.raises(torch.OutOfMemoryError):
        pellucid.explain(build("bert"), ["the film", "a plot"], method=starving)


def test_texts_of_similar_length_share_a_batch():
    model = build("bert")
    shapes = []

    def looking(case):
        shapes.append(tuple(case.mask.shape))
        return case.randn()

    texts = ["the film is fine and great", "a plot", "the actor was not very good", "we you"]
    pellucid.explain(model, texts, method=looking, batch_size=2)
    assert shapes == [(2, 4), (2, 8)]


def test_progress_is_told_truthfully():
    told = []
    model = build("bert")
    pellucid.explain(
        model,
        ["the film"] * 5,
        batch_size=2,
        progress=lambda done, total: told.append((done, total)),
    )
    assert told == [(2, 5), (4, 5), (5, 5)]


def test_progress_is_silent_off_a_terminal(capsys):
    pellucid.explain(build("bert"), ["the film"] * 3)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_the_budget_is_counted_for_each_input():
    model = build("bert")

    def sampling(case):
        for _ in range(10):
            case.drop(case.mask)
        return case.randn()

    found = pellucid.explain(model, ["the film", "a plot"], method=sampling, budget=11)
    assert [one.provenance.forwards for one in found] == [11, 11]  # one of them unchanged
    with pytest.raises(BudgetExceeded, match="budget=10"):
        pellucid.explain(model, "the film", method=sampling, budget=10)


@pytest.mark.parametrize(
    ("method", "passes"), [("gradient_x_input", (1, 1)), ("rollout", (1, 0)), ("random", (1, 0))]
)
@pytest.mark.parametrize("family", ["vit", "bert", "gpt2-lm"])
def test_methods_cost_what_they_must(family, method, passes):
    model = build(family)
    found = pellucid.explain(model, sample_inputs(model)[0], method=quick(method))
    assert (found.provenance.forwards, found.provenance.backwards) == passes


# ---- padding -------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", FOR_TEXTS)
@pytest.mark.parametrize("family", ["gpt2", "gpt2-lm", "llama", "qwen2", "bert-mlm", "modernbert"])
def test_padding_on_the_left_changes_nothing(family, method):
    model = build(family, dtype=torch.float64)
    texts = sample_inputs(model)
    right = pellucid.explain(model, texts, method=quick(method))
    left = pellucid.explain(model.padded_on("left"), texts, method=quick(method))
    for one, other in zip(right, left, strict=True):
        # rotary tables are float32 whatever the weights; attcat's terms are 100 times their sum
        bound = 1e-4 if method == "attcat" else 1e-5
        assert_same(one, other, bound, "padding on the right and on the left")


def test_models_that_cannot_be_padded_on_the_left_say_so():
    with pytest.raises(pellucid.ModelError, match="padded on the left"):
        build("bert").padded_on("left")


def test_a_model_without_padding_takes_one_text_at_a_time():
    from transformers import GPT2Config, GPT2ForSequenceClassification

    sizes = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "vocab_size": 300}
    config = GPT2Config(**sizes, bos_token_id=1, eos_token_id=1)
    model = pellucid.adapt(GPT2ForSequenceClassification(config).eval(), byte_bpe(pad=False))
    found = pellucid.explain(model, ["the film", "a great great film at all"], method="rollout")
    assert len(found) == 2
    pellucid.measure(model, found, metric="text_deletion", grid="tokens:2")


# ---- precision -----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("family", FAMILIES)
def test_bfloat16_models_give_finite_float32_scores(family, method):
    model = build(family, dtype=torch.bfloat16)
    if obstacle(model, METHODS[method]):
        pytest.skip("not offered by this family")
    for found in pellucid.explain(model, sample_inputs(model), method=quick(method)):
        assert found.scores.dtype == torch.float32
        assert torch.isfinite(found.scores).all()
        assert found.provenance.dtype == "bfloat16"


def test_bfloat16_rollout_is_close_to_float32():
    rough, fine = build("bert", dtype=torch.bfloat16), build("bert")
    text = "the film is not very good at all"
    one, other = (pellucid.explain(m, text, method="rollout") for m in (rough, fine))
    assert_same(one, other, 0.1, "bfloat16 and float32")


NEARLY_CANCEL = ("gradient_x_input", "attcat", "grad_cam")  # sums of signed terms, under a norm


@pytest.mark.parametrize("method", FOR_TEXTS)
def test_autocast_is_respected(method):
    model = build("bert")
    texts = sample_inputs(model)
    plain = pellucid.explain(model, texts, method=quick(method))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cast = pellucid.explain(model, texts, method=quick(method))
    for one, other in zip(plain, cast, strict=True):
        assert torch.isfinite(other.scores).all()
        assert other.scores.dtype == torch.float32
        assert other.provenance.dtype == "float32, autocast bfloat16"
        if method not in NEARLY_CANCEL:
            assert_same(one, other, 0.2, "autocast and float32")


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode, torch.enable_grad])
@pytest.mark.parametrize("method", FOR_TEXTS)
def test_the_callers_gradient_mode_does_not_matter(method, context):
    expected = pellucid.explain(build("bert"), "the film is fine", method=quick(method))
    model = build("bert")
    with context():
        found = pellucid.explain(model, "the film is fine", method=quick(method))
    assert torch.equal(found.scores, expected.scores)
    assert not found.scores.is_inference()


# ---- wrappers and placement ----------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")
@pytest.mark.parametrize("method", FOR_TEXTS)
def test_peft_wrapped_models_are_ordinary(method):
    peft = pytest.importorskip("peft", reason="peft is an optional dependency")
    base = build("bert", dtype=torch.float64)
    config = peft.LoraConfig(task_type="SEQ_CLS", r=2, target_modules=["query", "value"])
    wrapped = peft.get_peft_model(base.module, config).eval()
    model = pellucid.adapt(wrapped, base.reader.tokenizer)
    assert model.offers == build("bert").offers
    text = "the film is not fine"
    untrained = pellucid.explain(model, text, method=quick(method))  # LoRA starts as the identity
    expected = pellucid.explain(build("bert", dtype=torch.float64), text, method=quick(method))
    assert_same(untrained, expected, 1e-9, "a fresh LoRA and its base")


@pytest.mark.parametrize("method", FOR_TEXTS)
def test_models_dispatched_by_accelerate_are_ordinary(method):
    accelerate = pytest.importorskip("accelerate", reason="accelerate is an optional dependency")
    model = build("bert", dtype=torch.float64)
    text = "the film is not fine"
    expected = pellucid.explain(model, text, method=quick(method))
    accelerate.cpu_offload(model.module, execution_device=torch.device("cpu"))
    found = pellucid.explain(
        pellucid.adapt(model.module, model.reader.tokenizer), text, method=quick(method)
    )
    assert_same(found, expected, 1e-9, "a dispatched model and the plain one")


def test_frozen_models_are_explained_without_being_thawed():
    model = build("bert")
    expected = pellucid.explain(model, "the film is fine")
    model.module.requires_grad_(False)
    assert torch.equal(pellucid.explain(model, "the film is fine").scores, expected.scores)
    assert not any(parameter.requires_grad for parameter in model.module.parameters())


@pytest.mark.parametrize("task", ["text-classification", "image-classification", "fill-mask"])
def test_pipelines_are_models(task):
    from transformers import pipeline

    family = {"text-classification": "bert", "image-classification": "vit", "fill-mask": "bert-mlm"}
    model = build(family[task])
    kind = "image_processor" if model.kind == "image" else "tokenizer"
    processor = getattr(model.reader, "tokenizer", None) or model.reader.preprocessing.processor
    made = pipeline(task, model=model.module, device="cpu", **{kind: processor})
    found = pellucid.explain(made, sample_inputs(model)[0], method="rollout")
    expected = pellucid.explain(model, sample_inputs(model)[0], method="rollout")
    assert torch.equal(found.scores, expected.scores)


@pytest.mark.parametrize("method", FOR_TEXTS)
def test_threads_do_not_disturb_each_other(method):
    model = build("bert", dtype=torch.float64)
    texts = sample_inputs(model) * 20
    expected = [pellucid.explain(model, text, method=quick(method)).scores for text in texts]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(3) as pool:
            found = list(
                pool.map(lambda t: pellucid.explain(model, t, method=quick(method)).scores, texts)
            )
    finally:
        sys.setswitchinterval(interval)
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


def test_the_users_own_passes_in_another_thread_are_left_alone():
    model = build("bert", dtype=torch.float64)
    target = Target.predicted()
    batch = model.encode(["the film is fine"], target)
    with torch.no_grad():
        expected = model.module(**batch.inputs).logits
    changed = 2 * model.value_at(batch, "embedding")
    with replaced(model.anatomy.embedding, changed), torch.no_grad(), ThreadPoolExecutor(1) as pool:
        other = pool.submit(lambda: model.module(**batch.inputs).logits.detach()).result()
        mine = model.module(**batch.inputs).logits
    assert torch.equal(other, expected)
    assert not torch.equal(mine, expected)


# ---- saved and loaded models ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "family", ["bert", "bert-mlm", "vit", "deit-distilled", "gpt2-lm", "qwen2"]
)
def test_a_saved_folder_loads_and_explains_the_same(family, tmp_path):
    model = build(family)
    model.module.save_pretrained(tmp_path)
    processor = getattr(model.reader, "tokenizer", None) or model.reader.preprocessing.processor
    processor.save_pretrained(tmp_path)
    loaded = pellucid.load(tmp_path)
    assert (loaded.task, loaded.labels, loaded.offers) == (model.task, model.labels, model.offers)
    one, other = (
        pellucid.explain(m, sample_inputs(model)[0], method="rollout") for m in (model, loaded)
    )
    assert torch.equal(one.scores, other.scores)
    assert one.provenance.weights == other.provenance.weights


def test_half_precision_checkpoints_are_loaded_in_float32(tmp_path):
    model = build("bert", dtype=torch.bfloat16)
    model.module.save_pretrained(tmp_path)
    model.reader.tokenizer.save_pretrained(tmp_path)
    assert pellucid.load(tmp_path).dtype == torch.float32
    assert pellucid.load(tmp_path, dtype="auto").dtype == torch.bfloat16
    assert pellucid.load(tmp_path, dtype=torch.float64).dtype == torch.float64


def test_the_weights_hash_follows_the_weights():
    model = build("bert")
    before = model.weights_hash()
    assert before == model.weights_hash() == build("bert").weights_hash()
    with torch.no_grad():
        next(model.module.parameters()).add_(1e-3)
    assert model.weights_hash() != before


def test_listings_say_what_fits_and_why_not():
    fits = {entry.name: entry for entry in pellucid.list_methods(build("swin"))}
    assert fits["gradient_x_input"].fits
    assert not fits["rollout"].fits
    assert "number or width" in fits["rollout"].why_not
    assert all(entry.fits for entry in pellucid.list_methods())
    assert (
        "images"
        in {e.name: e for e in pellucid.list_metrics(build("vit"))}["text_deletion"].why_not
    )
    assert Needs.ATTENTION & METHODS["rollout"].needs
    assert Target.predicted().describe() == "score of the predicted class"


def test_measuring_another_models_explanation_is_refused():
    bert, other = build("bert"), build("distilbert")
    found = pellucid.explain(bert, "the film is not very good at all")
    with pytest.raises(pellucid.ArgumentError, match="of another model"):
        pellucid.measure(other, found, metric="text_deletion")


def test_memory_that_runs_out_while_measuring_halves_the_batch():
    model = build("vit")
    image = sample_inputs(model)[0]
    found = pellucid.explain(model, image, method="random")
    expected = pellucid.measure(model, found, metric="deletion", steps=16)

    def refuse(module, args, kwargs):
        if len(kwargs["pixel_values"]) > 3:
            raise torch.OutOfMemoryError("no memory left")

    handle = model.module.register_forward_pre_hook(refuse, with_kwargs=True)
    measured = pellucid.measure(model, found, metric="deletion", steps=16)
    handle.remove()
    assert measured.value == pytest.approx(expected.value, abs=1e-6)


def test_metrics_do_not_draw_what_methods_drew():
    model = build("vit")
    target = Target.predicted()
    batch = model.encode(sample_inputs(model)[:1], target)
    from pellucid.metrics import METRICS

    method = Case(model, batch, target, spec=METHODS["random"]).generators[0]
    metric = Case(model, batch, target, spec=METRICS["deletion"]).generators[0]
    assert not torch.equal(torch.rand(4, generator=method), torch.rand(4, generator=metric))


def test_a_part_in_training_mode_is_refused():
    model = build("bert")
    model.module.bert.encoder.layer[1].train()
    with pytest.raises(pellucid.ModelError, match=r"bert\.encoder\.layer\.1\.training"):
        pellucid.explain(model, "the film")


@pytest.mark.parametrize("inputs", [["the film", "a plot"], np.array(["the film", "a plot"])])
def test_collections_of_texts_are_lists(inputs):
    assert len(pellucid.explain(build("bert"), inputs)) == 2


def test_an_explanation_prints_as_one_line(tiny):
    found = pellucid.explain(tiny("bert"), "the film", method="rollout")
    assert repr(found).startswith("<rollout on bert: 4 scores for the logit of the predicted class")
    hostile = replace(found, label="\x1b[31m\nno", method="\u202eevil")
    assert repr([hostile]).isprintable()


def test_collections_of_nothing_are_empty(tiny):
    assert pellucid.explain(tiny("bert"), []) == pellucid.explain(tiny("bert"), ()) == []


def test_collections_of_images_are_lists():
    model = build("vit")
    images = np.stack(sample_inputs(model))
    expected = [found.scores for found in pellucid.explain(model, list(images))]
    for several in (images, torch.from_numpy(images).permute(0, 3, 1, 2)):
        found = pellucid.explain(model, several)
        assert all(torch.equal(f.scores, e) for f, e in zip(found, expected, strict=True))


def test_an_error_says_which_of_several_inputs_it_is_about():
    with pytest.raises(pellucid.InputError, match="input 2 of 3: there is nothing"):
        pellucid.explain(build("bert"), ["the film", " ", "a plot"])


def test_chat_messages_are_refused_by_name():
    with pytest.raises(pellucid.InputError, match="apply_chat_template"):
        pellucid.explain(build("llama-lm"), [{"role": "user", "content": "hello"}])


# ---- presets -------------------------------------------------------------------------------------


@pellucid.method(needs=Needs.NOTHING, signed=True, presets={"paper": {"scale": 2.0, "shift": 1.0}})
def scaled(case, *, scale: float = 1.0, shift: float = 0.0):
    """Token numbers, scaled and shifted."""
    return torch.arange(case.mask.shape[1]).expand(case.mask.shape) * scale + shift


def test_a_preset_stands_for_its_parameters_and_gives_way_to_others(tiny):
    paper = pellucid.explain(tiny("bert"), "the film", method=scaled, preset="paper")
    assert paper.params == {"scale": 2.0, "shift": 1.0}
    other = pellucid.explain(tiny("bert"), "the film", method=scaled, preset="paper", shift=5.0)
    assert other.params == {"scale": 2.0, "shift": 5.0}


def test_an_unknown_preset_is_refused_with_the_nearest(tiny):
    with pytest.raises(ArgumentError, match="did you mean 'paper'"):
        pellucid.explain(tiny("bert"), "the film", method=scaled, preset="papr")
