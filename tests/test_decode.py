"""Decoding: what a walk looks like as pictures and texts, against truths written by hand."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers
from tokenizers import Tokenizer

import pellucid
from pellucid import ArgumentError, ModelError, Rectangle, Target, UnsupportedCombination
from pellucid.explorer.alternatives import trend
from pellucid.explorer.candidates import readable_tokens
from pellucid.record.places import recorded
from pellucid.testing.contract import assert_unchanged, fingerprint
from pellucid.testing.tiny import build, sample_inputs, word_piece

IMAGES = ["vit", "deit-distilled", "dinov2-registers", "timm-like", "plain-image"]
CLASSIFIERS = ["bert", "roberta", "distilbert", "electra", "modernbert", "gpt2", "llama", "qwen2"]
CLASSIFIERS += ["plain-text"]
TEXTS = [*CLASSIFIERS, "bert-mlm", "gpt2-lm", "llama-lm"]
PREDICTED = Target.predicted()


def walk(adapter, raw=None, **options):
    raw = sample_inputs(adapter)[0] if raw is None else raw
    return pellucid.explore(adapter, raw, **{"steps": 2, "save_every": 1} | options)


def through(trajectory, *states):
    """The trajectory with other saved points: rows of states of all tokens (t d each)."""
    points = torch.stack([s[list(trajectory.tokens)].to(trajectory.points.dtype) for s in states])
    count = len(points)
    return replace(
        trajectory,
        points=points,
        iterations=torch.arange(count),
        probabilities=trajectory.probabilities[:1].repeat(count, 1),
        predicted=trajectory.predicted[:1] * count,
    )


def states_of(adapter, raw, space="embedding"):
    """The states of another input (t d)."""
    at = {"word": "input"}.get(space, space)
    return adapter.value_at(adapter.encode([raw], PREDICTED), at)[0]


def of_ids(adapter, item, ids):
    """What the model itself says of ids (all probabilities), one at a time."""
    text = replace(item, rows={**item.rows, "input_ids": tuple(ids)})
    batch = adapter.batch([text], PREDICTED)
    with torch.no_grad():
        return adapter.rows(adapter.output(batch), batch)[0, 0].double().softmax(dim=-1)


# ---- the start is the input ----------------------------------------------------------------------


@pytest.mark.parametrize("space", ["embedding", "word"])
@pytest.mark.parametrize("family", TEXTS)
def test_texts_at_the_start_are_the_input(tiny, family, space):
    adapter = tiny(family)
    for raw in sample_inputs(adapter)[:2]:
        trajectory = walk(adapter, raw, space=space)
        found = trajectory.decode(using="nearest", fallback_original=False)
        assert found.texts[0] == raw
        assert tuple(found.token_ids[0].tolist()) == trajectory.item.rows["input_ids"]
        assert not found.changed[0].any()
        assert found.agrees[0]
        assert found.quality["distance"][0] < 1e-5
        torch.testing.assert_close(
            found.probabilities[0], trajectory.probabilities[0], atol=1e-5, rtol=0
        )


@pytest.mark.parametrize("space", ["embedding", "pixels"])
@pytest.mark.parametrize("family", IMAGES)
def test_pictures_at_the_start_are_the_input(tiny, family, space):
    trajectory = walk(tiny(family), space=space)
    found = trajectory.decode()
    np.testing.assert_array_equal(found.frames[0], trajectory.item.view)
    assert found.using == ("inverse" if space == "embedding" else "pixels")
    assert not found.changed[0].any()
    assert found.quality["clipped"][0] == 0
    assert found.quality["difference"][0] < 1e-5
    assert found.frames.dtype == np.uint8
    assert found.frames.shape == (len(found.iterations), *trajectory.item.view.shape)


def test_an_image_model_without_patches_is_decoded_from_its_pixels(tiny):
    trajectory = walk(tiny("swin"), space="pixels", goal="leave")
    found = trajectory.decode()
    np.testing.assert_array_equal(found.frames[0], trajectory.item.view)
    assert found.changed.shape == (len(found.iterations), 1)


# ---- pictures ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("patch", "width"), [(2, 32), (4, 48)], ids=["wider", "square"])
def test_pictures_against_the_absolute_inverse(patch, width):
    """Where E has full column rank: x = E^+ (y - b - position), here row by row in float64."""
    adapter = build("vit", dtype=torch.float64, patch_size=patch, hidden_size=width)
    first, second, _ = sample_inputs(adapter)
    trajectory = walk(adapter, first, tokens=Rectangle(1, 2, 5, 8))
    other = adapter.read(second, PREDICTED)
    mixed = states_of(adapter, first) * 0.318 + states_of(adapter, second) * 0.682
    found = through(trajectory, states_of(adapter, second), mixed).decode()

    embeddings = adapter.module.vit.embeddings
    conv = embeddings.patch_embeddings.projection
    inverse = np.linalg.pinv(conv.weight.detach().flatten(1).numpy())
    expected = trajectory.item.view.copy()
    for token in trajectory.tokens:
        top, left, bottom, right = trajectory.segments[token].box
        y = mixed[token] - conv.bias - embeddings.position_embeddings[0, token]
        pixels = (inverse @ y.detach().numpy()).reshape(3, patch, patch)
        mean = np.array(adapter.reader.preprocessing.mean)[:, None, None]
        std = np.array(adapter.reader.preprocessing.std)[:, None, None]
        shown = ((pixels * std + mean) * 255).round().clip(0, 255)
        expected[top:bottom, left:right] = shown.transpose(1, 2, 0)
        np.testing.assert_array_equal(
            found.frames[0][top:bottom, left:right], other.view[top:bottom, left:right]
        )
    np.testing.assert_array_equal(found.frames[1], expected)
    assert found.quality["off_manifold"].max() < 1e-9
    assert found.quality["clipped"].max() == 0


def test_pictures_by_the_smallest_change_where_pixels_outnumber_the_state():
    adapter = build("vit", dtype=torch.float64)  # 192 pixels a patch, 32 numbers a token
    trajectory = walk(adapter, tokens=[3])
    move = 0.05 * torch.randn(32, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    start = states_of(adapter, sample_inputs(adapter)[0])
    point = start.clone()
    point[3] += move
    found = through(trajectory, start, point).decode()
    kernel = adapter.module.vit.embeddings.patch_embeddings.projection.weight.detach().flatten(1)
    change = np.linalg.lstsq(kernel.numpy(), move.numpy(), rcond=None)[0].reshape(3, 8, 8)
    change = (change * np.array(adapter.reader.preprocessing.std)[:, None, None]).transpose(1, 2, 0)
    top, left, bottom, right = trajectory.segments[3].box
    expected = trajectory.item.view.copy()
    exact = expected[top:bottom, left:right] + 255 * change
    expected[top:bottom, left:right] = exact.round().clip(0, 255)
    np.testing.assert_array_equal(found.frames[1], expected)
    assert found.changed.tolist() == [[False], [True]]


def test_what_no_pixels_can_make_is_measured_and_not_shown():
    adapter = build("vit", dtype=torch.float64, patch_size=2)
    trajectory = walk(adapter, tokens=[3, 4])
    kernel = adapter.module.vit.embeddings.patch_embeddings.projection.weight.detach().flatten(1)
    off = torch.linalg.svd(kernel).U[:, -2:]  # outside of what E reaches
    point = states_of(adapter, sample_inputs(adapter)[0])
    point[3] += 3 * off[:, 0]
    point[4] += 4 * off[:, 1]
    found = through(trajectory, point).decode()
    assert float(found.quality["off_manifold"]) == pytest.approx(5, abs=1e-9)
    np.testing.assert_array_equal(found.frames[0], trajectory.item.view)


def test_clipped_pixels_are_counted_among_those_that_walked(digits):
    """Space "pixels": one patch far brighter than white, one as it was, in a grey picture."""
    raw = pellucid.models.sample_images()[0]
    trajectory = walk(digits, raw, space="pixels", tokens=Rectangle(0, 0, 1, 2))
    start = trajectory.points[0].clone()
    bright = start.clone()
    bright[0] += 100.0
    found = replace(trajectory, points=torch.stack([start, bright, start])).decode()
    assert found.quality["clipped"].tolist() == [0, 0.5, 0]
    assert "up to 50% of the walked pixels" in found.notes[0]
    assert trajectory.decode().notes == ()
    top, left, bottom, right = trajectory.segments[trajectory.tokens[0]].box
    assert (found.frames[1][top:bottom, left:right] == 255).all()
    expected = trajectory.item.view.copy()
    expected[top:bottom, left:right] = 255
    np.testing.assert_array_equal(found.frames[1], expected)
    assert found.frames.shape[-1] == 1


def test_a_border_that_no_patch_covers_stays(tiny):
    """42 x 50 pixels under patches of 4: two rows and two columns at the end are in no patch."""
    adapter = build("vit", image_size=(42, 50), patch_size=4)
    trajectory = walk(adapter, goal="leave", steps=3)
    found = trajectory.decode()
    assert found.changed[-1].any()
    np.testing.assert_array_equal(found.frames[-1][40:], trajectory.item.view[40:])
    np.testing.assert_array_equal(found.frames[-1][:, 48:], trajectory.item.view[:, 48:])


def test_decoded_pictures_are_what_is_predicted(digits):
    raw = pellucid.models.sample_images()[3]
    trajectory = walk(digits, raw, goal="leave", steps=20, save_every=5)
    found = trajectory.decode(batch_size=2)
    for i, frame in enumerate(found.frames):
        batch = digits.encode([frame], PREDICTED)
        with torch.no_grad():
            p = digits.rows(digits.output(batch), batch)[0, 0].double().softmax(dim=-1)
        torch.testing.assert_close(found.probabilities[i], p, atol=1e-6, rtol=0)
        assert found.predicted[i] == digits.label_name(int(p.argmax()))
        assert bool(found.agrees[i]) == (found.predicted[i] == trajectory.predicted[i])
        gap = (p - trajectory.probabilities[i]).abs().max()
        assert float(found.quality["difference"][i]) == pytest.approx(float(gap), abs=1e-6)
    assert found.expected == trajectory.predicted


# ---- texts: the nearest tokens -------------------------------------------------------------------


@pytest.mark.parametrize("space", ["embedding", "word"])
@pytest.mark.parametrize("family", TEXTS)
def test_the_states_of_another_text_are_decoded_to_it(tiny, family, space):
    adapter = tiny(family)
    blank = "[MASK]" if adapter.task == "masked" else "fine"
    raw, other = f"the film is {blank}", f"the film at {blank}"
    trajectory = walk(adapter, raw, space=space)
    read = adapter.read(other, PREDICTED)
    assert len(read.segments) == len(trajectory.segments)
    found = through(trajectory, states_of(adapter, other, space)).decode(using="nearest")
    assert tuple(found.token_ids[0].tolist()) == read.rows["input_ids"]
    assert found.texts == (other,)
    assert found.changed[0].sum() == sum(
        a != b
        for a, b in zip(read.rows["input_ids"], trajectory.item.rows["input_ids"], strict=True)
    )
    p = of_ids(adapter, read, read.rows["input_ids"])[list(trajectory.classes)]
    torch.testing.assert_close(found.probabilities[0], p, atol=1e-6, rtol=0)
    assert found.quality["retokenised"].tolist() == [0]


def random_points(trajectory, count=3, scale=0.5):
    generator = torch.Generator().manual_seed(1)
    start = trajectory.points[0]
    noise = torch.randn(count, *start.shape, generator=generator, dtype=torch.float64)
    points = (start.double() + scale * noise).to(start.dtype)
    return replace(
        trajectory,
        points=points,
        iterations=torch.arange(count),
        probabilities=trajectory.probabilities[:1].repeat(count, 1),
        predicted=trajectory.predicted[:1] * count,
    )


@pytest.mark.parametrize("space", ["embedding", "word"])
def test_nearest_tokens_against_every_token_in_turn(space):
    """Literally: |e(v, s) - x| for each token and place, with BERT's own sum and LayerNorm."""
    adapter = build("bert", dtype=torch.float64)
    trajectory = random_points(walk(adapter, "not very good , but slow", space=space))
    found = trajectory.decode(top=4)
    tokenizer, own = adapter.reader.tokenizer, adapter.module.bert.embeddings
    specials = set(tokenizer.all_special_ids)
    with torch.no_grad():
        for s, point in enumerate(trajectory.points):
            for m, token in enumerate(trajectory.tokens):
                distances = {}
                for v in range(len(tokenizer)):
                    e = own.word_embeddings.weight[v]
                    if space == "embedding":
                        e = e + own.position_embeddings.weight[token]
                        e = own.LayerNorm(e + own.token_type_embeddings.weight[0])
                    if v not in specials:
                        distances[v] = float((e - point[m]).norm())
                best = sorted(distances, key=distances.get)[:4]
                assert [name for name, _ in found.candidates[s][m]] == [
                    tokenizer.decode([v]) for v in best
                ]
                assert [score for _, score in found.candidates[s][m]] == pytest.approx(
                    [distances[v] for v in best], abs=1e-9
                )
                assert found.token_ids[s, token] == best[0]
            mean = sum(lists[0][1] for lists in found.candidates[s]) / len(trajectory.tokens)
            assert float(found.quality["distance"][s]) == pytest.approx(mean)
    assert found.token_ids[:, [0, -1]].unique(dim=0).tolist() == [[2, 3]]  # [CLS] and [SEP]


def test_many_points_equal_their_members(tiny):
    trajectory = random_points(walk(tiny("bert")), count=5)
    whole = trajectory.decode()
    for i in range(5):
        part = {"points": trajectory.points[i : i + 1], "iterations": trajectory.iterations[:1]}
        part |= {"probabilities": trajectory.probabilities[:1], "predicted": ("x",)}
        one = replace(trajectory, **part).decode()
        assert one.texts[0] == whole.texts[i]
        torch.testing.assert_close(one.probabilities[0], whole.probabilities[i])


def test_candidates_are_what_a_person_reads(tiny):
    adapter = tiny("bert")
    tokenizer = adapter.reader.tokenizer
    every = readable_tokens(adapter, punctuation=True)
    words = readable_tokens(adapter, punctuation=False)
    assert len(every) == len(tokenizer)
    left_out = {tokenizer.decode([i]) for i in (~every).nonzero()[:, 0].tolist()}
    assert left_out == {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}
    marks = {tokenizer.decode([i]) for i in (every & ~words).nonzero()[:, 0].tolist()}
    assert marks == {",", ".", "!", "?", "😀"}
    bytes_ = tiny("gpt2")
    readable = readable_tokens(bytes_, punctuation=True)
    pieces = [bytes_.reader.tokenizer.decode([i]) for i in range(len(readable))]
    assert any("\ufffd" in piece for piece in pieces)
    assert not any(
        "\ufffd" in p or not p.strip() for p, r in zip(pieces, readable, strict=True) if r
    )


def test_unused_tokens_are_no_candidates():
    adapter = build("bert")
    before = readable_tokens(adapter, punctuation=True)
    adapter.reader.tokenizer.add_tokens(["[unused7]", "<unused12>", "films"])
    assert readable_tokens(adapter, punctuation=True).tolist() == [*before, False, False, True]


def test_without_punctuation_a_mark_stands_only_where_one_stood(tiny):
    trajectory = random_points(walk(tiny("bert"), "good , but slow"), count=20, scale=2)
    found = trajectory.decode(top=30, punctuation=False)
    for lists in found.candidates:
        for token, candidates in zip(trajectory.tokens, lists, strict=True):
            marks = {name for name, _ in candidates} & {",", ".", "!", "?", "😀"}
            assert marks <= ({","} if trajectory.segments[token].text == "," else set())


def test_all_candidates_at_most(tiny):
    found = walk(tiny("bert")).decode(top=10_000)
    assert len(found.candidates[0][0]) == int(readable_tokens(tiny("bert"), punctuation=True).sum())


# ---- texts: language models ----------------------------------------------------------------------


def literal_bert(mlm, x, *, encoder):
    """The probabilities of every token at every place (t v), of the states x (t d)."""
    module = mlm.module
    with torch.no_grad():
        stream = x[None]
        if encoder:
            for layer in module.bert.encoder.layer:
                stream = layer(stream)
                stream = stream[0] if isinstance(stream, tuple) else stream
        return module.cls(stream)[0].double().softmax(dim=-1)


@pytest.mark.parametrize("using", ["mlm", "head"])
def test_language_models_against_their_parts(using):
    adapter, mlm = (build(name, dtype=torch.float64) for name in ("bert", "bert-mlm"))
    trajectory = random_points(walk(adapter, tokens=[2, 3]))
    found = trajectory.decode(using=using, mlm=mlm, top=3, fallback_original=False)
    start = states_of(adapter, trajectory.item.parts[0])
    tokenizer = adapter.reader.tokenizer
    for s, point in enumerate(trajectory.points):
        x = start.clone()
        x[[2, 3]] = point
        p = literal_bert(mlm, x, encoder=using == "mlm")[:, : len(tokenizer)].clone()
        original = trajectory.item.rows["input_ids"]
        p[:, tokenizer.all_special_ids] = 0
        for m, token in enumerate((2, 3)):
            scores, best = p[token].topk(3)
            assert [n for n, _ in found.candidates[s][m]] == [
                tokenizer.decode([v]) for v in best.tolist()
            ]
            assert [q for _, q in found.candidates[s][m]] == pytest.approx(scores.tolist())
            assert found.token_ids[s, token] == best[0]
        others = [i for i in range(len(original)) if i not in (2, 3)]
        assert found.token_ids[s, others].tolist() == [original[i] for i in others]
        mine = of_ids(adapter, trajectory.item, found.token_ids[s].tolist())
        torch.testing.assert_close(found.probabilities[s], mine)
    assert "tokens right at the start" in found.notes[0]


def test_a_misread_token_is_kept_until_it_is_misread_as_another():
    """A language model of random weights misreads nearly everything, and always the same at k=0."""
    adapter, mlm = build("bert"), build("bert-mlm")
    trajectory = random_points(walk(adapter), count=8, scale=1.5)
    start = states_of(adapter, trajectory.item.parts[0])
    both = through(trajectory, start, *(_whole(start, trajectory, p) for p in trajectory.points))
    kept = both.decode(mlm=mlm)
    raw = both.decode(mlm=mlm, fallback_original=False)
    tokens = list(trajectory.tokens)
    original = torch.tensor(trajectory.item.rows["input_ids"])[tokens]
    first, chosen, read = (
        raw.token_ids[0, tokens],
        kept.token_ids[:, tokens],
        raw.token_ids[:, tokens],
    )
    assert (first != original).any()
    assert kept.texts[0] == trajectory.item.parts[0]
    expected = torch.where((first != original) & (read == first), original, read)
    assert torch.equal(chosen, expected)
    assert (chosen != read).any()
    assert (read != first).any()
    assert "keep their token" in kept.notes[0]
    right = int((first == original).sum())
    assert f"{right} of {len(tokens)} tokens" in raw.notes[0]
    assert "keep" not in raw.notes[0]


def _whole(start, trajectory, point):
    found = start.clone()
    found[list(trajectory.tokens)] = point.to(found)
    return found


def test_the_bundled_pair_reads_the_start_right(reviews):
    mlm = pellucid.load("pellucid/reviews-mlm")
    text = "A fine film, and a moving one."
    trajectory = walk(reviews, text, steps=20, save_every=10)
    found = trajectory.decode(mlm=mlm, fallback_original=False)
    assert found.using == "mlm"
    assert found.texts[0] == text
    assert "reads 9 of 9 tokens right" in found.notes[0]
    assert trajectory.decode().using == "nearest"


def test_a_masked_language_model_reads_itself(tiny):
    adapter = tiny("bert-mlm")
    raw = "[MASK] film is [MASK] at all"
    trajectory = walk(adapter, raw, goal=Target.at_mask("fine", mask=1))
    found = trajectory.decode()
    assert found.using == "mlm"
    assert found.texts[0] == raw
    torch.testing.assert_close(
        found.probabilities[0], trajectory.probabilities[0], atol=1e-5, rtol=0
    )
    ids = found.token_ids[:, [1, 4]]
    assert (ids == adapter.reader.tokenizer.mask_token_id).all()
    assert all(text.count("[MASK]") == 2 for text in found.texts)


def test_word_vectors_are_read_by_the_whole_language_model():
    """In space "word" the pair's own embedding module stands before its first block."""
    adapter, mlm = build("bert", dtype=torch.float64), build("bert-mlm", dtype=torch.float64)
    trajectory = random_points(walk(adapter, space="word"))
    found = trajectory.decode(mlm=mlm, top=1, fallback_original=False)
    words = states_of(adapter, trajectory.item.parts[0], "word")
    words[list(trajectory.tokens)] = trajectory.points[2]
    with torch.no_grad():
        logits = mlm.module(inputs_embeds=words[None]).logits[0]
    p = logits.softmax(dim=-1)[:, : len(adapter.reader.tokenizer)]
    p[:, adapter.reader.tokenizer.all_special_ids] = 0
    for m, token in enumerate(trajectory.tokens):
        assert found.candidates[2][m][0][1] == pytest.approx(float(p[token].max()))
        assert found.token_ids[2, token] == p[token].argmax()


def test_a_head_that_reads_other_widths_is_refused():
    """ELECTRA's word vectors are narrower than its stream."""
    settings = transformers.ElectraConfig(
        vocab_size=300, embedding_size=16, hidden_size=32, num_hidden_layers=2,
        num_attention_heads=4, intermediate_size=48, max_position_embeddings=64,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = transformers.ElectraForMaskedLM(settings).eval()
    adapter = pellucid.adapt(module, word_piece())
    trajectory = walk(adapter, "a [MASK] film", space="word")
    with pytest.raises(ArgumentError, match="states of width 32"):
        trajectory.decode(using="head")
    assert trajectory.decode().texts[0] == "a [MASK] film"


def test_a_causal_model_reads_by_its_own_head(tiny):
    adapter = tiny("gpt2-lm")
    trajectory = random_points(walk(adapter))
    found = trajectory.decode(using="head", top=1, fallback_original=False)
    module = adapter.module
    x = states_of(adapter, trajectory.item.parts[0])
    x[list(trajectory.tokens)] = trajectory.points[1]
    with torch.no_grad():
        p = module.lm_head(module.transformer.ln_f(x)).double().softmax(dim=-1)
    p = p[:, : len(adapter.reader.tokenizer)]
    p[:, ~readable_tokens(adapter, punctuation=True)] = 0
    for m, token in enumerate(trajectory.tokens):
        assert found.candidates[1][m][0][1] == pytest.approx(float(p[token].max()), abs=1e-5)


# ---- texts: how they are written -----------------------------------------------------------------


def test_word_pieces_are_joined(reviews):
    """Two words, then one word of two pieces: the same number of tokens."""
    raw, other = "it was fine", "unslow fine"
    ids = reviews.read(other, PREDICTED).rows["input_ids"]
    trajectory = walk(reviews, raw)
    assert len(ids) == len(trajectory.segments)
    assert any(p.startswith("##") for p in reviews.reader.tokenizer.convert_ids_to_tokens(ids))
    found = through(trajectory, states_of(reviews, other)).decode()
    assert found.texts == (other,)
    assert found.quality["retokenised"].tolist() == [0]


@pytest.mark.parametrize("family", ["roberta", "gpt2"])
def test_pieces_of_words_are_joined_by_their_tokenizer(tiny, family):
    """Unigram pieces with visible spaces, and bytes."""
    adapter = tiny(family)
    raw, other = ("fineer bad", "badly fine") if family == "roberta" else ("xyz abq", "qba zyx")
    trajectory = walk(adapter, raw)
    assert len(adapter.read(other, PREDICTED).segments) == len(trajectory.segments)
    found = through(trajectory, states_of(adapter, other)).decode()
    assert found.texts == (other,)


@pytest.mark.parametrize(
    ("family", "why"), [("clip-vision", "normalises"), ("swin", "residual stream")]
)
def test_embeddings_that_cannot_be_inverted_are_refused(tiny, family, why):
    with pytest.raises((pellucid.InputError, UnsupportedCombination), match=why):
        walk(tiny(family), goal="leave").decode()


def test_a_text_that_is_cut_otherwise_when_read_again_is_noted(tiny):
    adapter = tiny("bert")
    trajectory = walk(adapter, "a film is fine")
    tokenizer = adapter.reader.tokenizer
    ids = list(trajectory.item.rows["input_ids"])
    ids[1] = tokenizer.convert_tokens_to_ids("##er")  # begins no word
    batch = adapter.batch([trajectory.item], PREDICTED)
    batch = replace(batch, inputs={**batch.inputs, "input_ids": torch.tensor([ids])})
    found = through(trajectory, adapter.value_at(batch, "embedding")[0]).decode()
    assert found.token_ids[0].tolist() == ids
    again = len(tokenizer(found.texts[0])["input_ids"])
    assert again != len(ids)
    assert found.quality["retokenised"].tolist() == [again - len(ids)]
    assert "1 of 1 texts are cut into another number of tokens" in found.notes[-1]
    p = of_ids(adapter, trajectory.item, ids)
    torch.testing.assert_close(found.probabilities[0], p, atol=1e-6, rtol=0)


def test_both_texts_of_a_pair_are_written(tiny):
    trajectory = walk(tiny("bert"), ("the film", "is fine"))
    found = trajectory.decode()
    assert found.texts[0] == "the film | is fine"
    other = states_of(tiny("bert"), ("a film", "is bad"))
    assert through(trajectory, other).decode().texts == ("a film | is bad",)


def test_the_models_own_tokens_stay_and_are_named(tiny):
    trajectory = walk(tiny("bert"), tokens="all")
    found = trajectory.decode()
    assert found.candidates[0][0] == () == found.candidates[0][-1]
    assert not found.changed[:, [0, -1]].any()
    assert any("[CLS], [SEP]" in note for note in found.notes)
    image = walk(tiny("vit"), tokens="all", goal="leave")
    assert "[CLS]" in image.decode().notes[0]
    assert not image.decode().changed[:, 0].any()


# ---- alternative prompts -------------------------------------------------------------------------


def test_alternatives_are_the_original_with_one_token_replaced(tiny):
    adapter = tiny("bert")
    trajectory = random_points(walk(adapter, tokens=[2, 4]), count=2, scale=2)
    top = trajectory.decode(top=3)
    assert top.changed.all()
    prompts = trajectory.alternatives(top=3)
    assert len(prompts) == 2 * 2 * 3
    original = list(trajectory.item.rows["input_ids"])
    first = trajectory.labels.index(trajectory.predicted[0])
    numbers = {
        adapter.reader.tokenizer.decode([i]): i for i in range(len(adapter.reader.tokenizer))
    }
    for prompt in prompts:
        ids = list(original)
        ids[prompt.position] = numbers[prompt.token]
        p = of_ids(adapter, trajectory.item, ids)
        assert prompt.probability == pytest.approx(float(p[first]), abs=1e-6)
        assert prompt.predicted == adapter.label_name(int(p.argmax()))
        assert prompt.changed == (int(p.argmax()) != first)
        column = trajectory.tokens.index(prompt.position)
        listed = top.candidates[prompt.iteration][column][prompt.rank]
        assert (prompt.token, prompt.score) == listed
    assert {p.rank for p in prompts} == {0, 1, 2}
    assert {p.iteration for p in prompts} == {0, 1}


def test_alternatives_everywhere_have_one_prompt_a_rank(tiny):
    adapter = tiny("bert")
    trajectory = random_points(walk(adapter, tokens=[2, 4]), count=2)
    prompts = trajectory.alternatives(top=3, everywhere=True)
    assert [(p.iteration, p.rank, p.position) for p in prompts] == [
        (k, j, None) for k in range(2) for j in range(3)
    ]
    best = trajectory.decode(top=3, fallback_original=False)
    assert [p.text for p in prompts if p.rank == 0] == list(best.texts)
    assert [p.probability for p in prompts if p.rank == 0] == pytest.approx(
        best.probabilities[:, trajectory.labels.index(trajectory.predicted[0])].tolist()
    )


def test_every_different_prompt_is_evaluated_once(tiny):
    adapter = tiny("bert")
    trajectory = walk(adapter, steps=4)
    seen = []
    handle = adapter.module.classifier.register_forward_hook(lambda m, a, o: seen.append(len(o)))
    prompts = trajectory.alternatives()
    handle.remove()
    assert sum(seen) <= len({p.text for p in prompts} | {trajectory.item.parts[0]})
    assert len(prompts) == 5 * len(trajectory.tokens) * len(trajectory.iterations)


def test_the_trend_of_the_two_sets(tiny):
    trajectory = walk(tiny("bert"))
    prompts = trajectory.alternatives(top=1)  # of points at the start: the text itself
    here = [p for p in prompts if p.iteration == 0]
    assert not any(p.changed for p in here)
    (start, *_) = trend(prompts)
    assert (start.iteration, start.changed, start.stayed) == (0, 0, len(trajectory.tokens))
    assert math.isnan(start.probability_changed)
    p0 = float(trajectory.probabilities[0].max())
    assert start.probability_stayed == pytest.approx(p0, abs=1e-6)
    mixed = [replace(p, changed=i % 2 == 0, probability=float(i)) for i, p in enumerate(here)]
    (both,) = trend(mixed)
    assert both.probability_changed == np.mean(range(0, len(here), 2))
    assert both.probability_stayed == np.mean(range(1, len(here), 2))


# ---- a pass that ends at a place -----------------------------------------------------------------


@pytest.mark.parametrize("family", [*IMAGES, "clip-vision", *CLASSIFIERS])
def test_a_state_is_read_without_what_comes_behind_it(tiny, family):
    adapter = tiny(family)
    batch = adapter.encode(sample_inputs(adapter)[:1], PREDICTED)
    with torch.no_grad(), adapter._unfused(), recorded({"e": adapter.anatomy.embedding}) as seen:
        adapter.output(batch)
    before, ran = fingerprint(adapter), []
    handle = adapter.anatomy.blocks[-1].register_forward_hook(lambda *_: ran.append(1))
    found = adapter.value_at(batch, "embedding")
    handle.remove()
    assert torch.equal(found, seen["e"])
    assert ran == []
    assert_unchanged(before, fingerprint(adapter), "by decoding")


# ---- other kinds of models -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes", [{"num_labels": 1}, {"problem_type": "multi_label_classification"}]
)
def test_values_and_independent_classes(changes):
    adapter = build("bert", **changes)
    found = walk(adapter, goal="leave").decode()
    batch = adapter.encode(sample_inputs(adapter)[:1], PREDICTED)
    with torch.no_grad():
        logits = adapter.output(batch).logits[0].double()
    expected = logits if "num_labels" in changes else logits.sigmoid()
    torch.testing.assert_close(found.probabilities[0], expected, atol=1e-5, rtol=0)
    assert found.agrees[0]


def test_a_trajectory_from_a_file_is_decoded_by_a_model_in_hand(tiny):
    adapter = tiny("roberta")
    trajectory = walk(adapter)
    read = replace(trajectory, model=None, item=replace(trajectory.item, rows=None))
    with pytest.raises(ArgumentError, match="decoding needs the model"):
        read.decode()
    assert read.decode(adapter).texts == trajectory.decode().texts


@pytest.mark.parametrize(
    ("family", "using"), [("bert", "nearest"), ("bert-mlm", "mlm"), ("vit", None)]
)
def test_nothing_is_left_behind(tiny, family, using):
    adapter = tiny(family)
    trajectory = walk(adapter)
    before, random = fingerprint(adapter), torch.get_rng_state()
    one, two = (trajectory.decode(using=using) for _ in range(2))
    assert_unchanged(before, fingerprint(adapter), "by decoding")
    assert torch.equal(random, torch.get_rng_state())
    assert torch.equal(one.probabilities, two.probabilities)
    assert one.texts == two.texts


# ---- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"using": "nearst"}, "did you mean 'nearest'"),
        ({"using": "inverse"}, "unknown way of decoding"),
        ({"using": "mlm"}, "as mlm="),
        ({"using": "head"}, "as mlm="),
        ({"top": 0}, "integer of at least 1"),
        ({"batch_size": 0}, "integer of at least 1"),
    ],
)
def test_options_that_cannot_be(tiny, options, said):
    with pytest.raises(ArgumentError, match=said):
        walk(tiny("bert")).decode(**options)


def test_language_models_are_for_texts(tiny):
    with pytest.raises(ArgumentError, match="no language model is asked"):
        walk(tiny("vit")).decode(mlm=tiny("bert-mlm"))
    with pytest.raises(ArgumentError, match="no language model is asked"):
        walk(tiny("bert")).decode(using="nearest", mlm=tiny("bert-mlm"))
    with pytest.raises(ArgumentError, match="using='inverse'"):
        walk(tiny("vit")).decode(using="pixels")
    with pytest.raises(ArgumentError, match="only texts have alternative prompts"):
        walk(tiny("vit")).alternatives()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"hidden_size": 16}, "hidden size 16, not 32"),
        ({"num_hidden_layers": 3}, "3 blocks, not 2"),
        ({"num_attention_heads": 2}, "attention heads 2, not 4"),
        ({"vocab_size": 310}, "vocabulary 310, not 300"),
        ({"max_position_embeddings": 70}, "positions 70, not 64"),
        ({"type_vocab_size": 3}, "token types 3, not 2"),
    ],
)
def test_a_pair_of_another_shape_is_refused(tiny, changes, said):
    with pytest.raises(ArgumentError, match=said):
        walk(tiny("bert")).decode(mlm=build("bert-mlm", **changes))


@pytest.mark.parametrize(
    ("family", "said"),
    [("gpt2-lm", "causal"), ("bert", "classification"), ("vit", "image model")],
)
def test_a_pair_that_is_no_masked_language_model_is_refused(tiny, family, said):
    with pytest.raises(ArgumentError, match=said):
        walk(tiny("bert")).decode(mlm=tiny(family))


def test_a_pair_with_other_tokens_is_refused(tiny):
    trajectory = walk(tiny("bert"))
    swapped, longer = word_piece(), word_piece()
    written = json.loads(swapped.backend_tokenizer.to_str())
    numbers = written["model"]["vocab"]
    numbers["film"], numbers["plot"] = numbers["plot"], numbers["film"]
    swapped._tokenizer = Tokenizer.from_str(json.dumps(written))
    longer.add_tokens(["another"])
    for tokenizer, said in ((swapped, "other numbers for 2 of"), (longer, "tokens, not")):
        mlm = pellucid.adapt(build("bert-mlm").module, tokenizer)
        with pytest.raises(ArgumentError, match=said):
            trajectory.decode(mlm=mlm)
    with pytest.raises(ArgumentError, match="architecture distilbert, not bert"):
        trajectory.decode(mlm=tiny("distilbert-mlm"))


def test_another_model_is_refused(tiny):
    trajectory = walk(tiny("bert"))
    with pytest.raises(ArgumentError, match="of another model, or of this one in other numbers"):
        trajectory.decode(build("bert", dtype=torch.float64))
    with pytest.raises(ArgumentError, match="a model of images for a walk from a text"):
        trajectory.decode(tiny("vit"))
    black_box = pellucid.blackbox(
        lambda texts: np.ones((len(texts), 2)) / 2, kind="text", labels=["a", "b"]
    )
    with pytest.raises(UnsupportedCombination, match="cannot run on this model"):
        trajectory.decode(black_box)
    with pytest.raises(ModelError):
        trajectory.decode(42)


def test_states_behind_the_first_block_are_not_decoded(tiny):
    for family in ("bert", "vit"):
        trajectory = walk(tiny(family), space="hidden:1")
        with pytest.raises(ArgumentError, match="have no inputs that they could be decoded to"):
            trajectory.decode()


@pytest.mark.parametrize("family", ["bert", "vit"])
def test_only_tokens_of_the_models_own_cannot_be_decoded(tiny, family):
    trajectory = walk(tiny(family), tokens=[0])
    with pytest.raises(ArgumentError, match="moved only"):
        trajectory.decode()


def test_points_of_another_shape_are_refused(tiny):
    trajectory = walk(tiny("bert"))
    with pytest.raises(pellucid.InputError, match="otherwise than when the walk was made"):
        replace(trajectory, points=trajectory.points[..., :-1]).decode()
    with pytest.raises(pellucid.InputError, match="finite points"):
        replace(trajectory, points=trajectory.points * torch.nan).decode()
