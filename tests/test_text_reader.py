"""From texts to ids and back: pairs, long texts, padding, masks, continuations, dropped tokens."""

import pytest
import torch
import transformers
from torch.nn.functional import log_softmax

import pellucid
from pellucid import ArgumentError, InputError, ModelError, Target
from pellucid.adapters import adapt
from pellucid.testing.tiny import build, byte_bpe, sentence_piece, word_piece

TEXT = "the film is fine"
PREDICTED = Target.predicted()


def ids(batch, row=0):
    return batch.inputs["input_ids"][row][batch.mask[row]].tolist()


def content(explanation):
    return [s.text for s in explanation.segments if s.role == "content"]


# ---- what the model is given is what the tokenizer says ------------------------------------------


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert", "modernbert", "gpt2", "llama"])
@pytest.mark.parametrize("text", [TEXT, "Not VERY good,\n\tbut it was fine at all", "電影 😀 é"])
def test_ids_are_the_tokenizer_s_own(tiny, family, text):
    adapter = tiny(family)
    batch = adapter.encode([text], PREDICTED)
    assert ids(batch) == adapter.reader.tokenizer(text)["input_ids"]


@pytest.mark.parametrize("family", ["bert", "llama", "gpt2"])
def test_segments_quote_the_text(tiny, family):
    text = "The  film\tis finely good."
    for segment in tiny(family).encode([text], PREDICTED).items[0].segments:
        if segment.role == "content":
            assert text[slice(*segment.span)] == segment.text
        else:
            assert segment.text in ("[CLS]", "[SEP]", "<s>")
            assert segment.span is None


@pytest.mark.parametrize("family", ["bert", "roberta", "electra"])
def test_a_pair_is_encoded_as_one(tiny, family):
    adapter, pair = tiny(family), ("the film", "is not bad")
    batch = adapter.encode([pair], PREDICTED)
    own = adapter.reader.tokenizer(*pair)
    assert ids(batch) == own["input_ids"]
    kinds = batch.inputs.get("token_type_ids")
    if kinds is not None:
        assert kinds[0].tolist() == own["token_type_ids"]
    parts = [s.part for s in batch.items[0].segments if s.role == "content"]
    assert parts == sorted(parts)
    assert set(parts) == {0, 1}


def test_the_kinds_of_a_pair_matter_to_the_model(tiny):
    """The prediction is that of the model itself on the tokenizer's own encoding."""
    adapter, pair = tiny("bert"), ("the film", "is not bad")
    found = pellucid.explain(adapter, pair, method="random")
    own = adapter.reader.tokenizer(*pair, return_tensors="pt")
    with torch.no_grad():
        expected = adapter.module(**own).logits[0]
    torch.testing.assert_close(found.logits, expected)


def test_a_list_of_two_is_two_texts(tiny):
    found = pellucid.explain(tiny("bert"), ["the film", "is bad"], method="random")
    assert [one.item.parts for one in found] == [("the film",), ("is bad",)]


def test_a_model_that_reads_its_first_token_is_not_padded_on_the_left(tiny):
    with pytest.raises(ModelError, match="left"):
        tiny("bert").padded_on("left")


@pytest.mark.parametrize(
    ("family", "side"),
    [("gpt2", "left"), ("llama", "left"), ("gpt2", "right"), ("llama", "right"), ("bert", "right")],
)
def test_padding_changes_no_prediction(family, side):
    """On the left, positions have to be counted from the first real token."""
    adapter = build(family, dtype=torch.float64).padded_on(side)
    texts = [TEXT, "bad", "a very good film , but not at all fine !"]
    together = pellucid.explain(adapter, texts, method="random")
    for text, one in zip(texts, together, strict=True):
        own = adapter.reader.tokenizer(text, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            expected = adapter.module(own).logits[0]
        torch.testing.assert_close(one.logits.double(), expected, rtol=0, atol=1e-6)


# ---- texts that are too long ---------------------------------------------------------------------


def test_a_long_text_is_refused_with_its_numbers(tiny):
    text = "film " * 100  # 102 tokens with [CLS] and [SEP], for 64 places
    with pytest.raises(InputError) as caught:
        pellucid.explain(tiny("bert"), text, method="random")
    message = str(caught.value)
    assert "102 tokens" in message
    assert "at most 64" in message
    assert "long='truncate'" in message
    assert "long='windows'" in message


def test_a_text_of_just_the_length_is_read(tiny):
    text = "film " * 62
    assert len(pellucid.explain(tiny("bert"), text, method="random").segments) == 64
    with pytest.raises(InputError):
        pellucid.explain(tiny("bert"), text + "film", method="random")


def test_truncation_reads_the_beginning_and_says_so(tiny):
    text = " ".join(["fine"] * 60 + ["bad"] * 20)
    found = pellucid.explain(tiny("bert"), text, method="random", long="truncate")
    assert len(found.segments) == 64
    assert content(found) == ["fine"] * 60 + ["bad"] * 2
    assert [note for note in found.notes if "truncated" in note] == [
        "truncated: 64 of 82 tokens were read"
    ]
    own = tiny("bert").reader.tokenizer(text, truncation=True, max_length=64, return_tensors="pt")
    with torch.no_grad():
        torch.testing.assert_close(found.logits, tiny("bert").module(**own).logits[0])


def test_a_text_that_fits_has_no_note(tiny):
    assert not pellucid.explain(tiny("bert"), TEXT, method="random", long="truncate").notes


def test_truncation_leaves_room_for_a_continuation(tiny):
    target = Target.continuation(" great film")
    found = pellucid.explain(
        tiny("gpt2-lm"), "film " * 200, method="random", target=target, long="truncate"
    )
    assert len(found.segments) == 64
    assert found.segments[-1].role == "continuation"


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        ("bert", {"max_position_embeddings": 20}),
        ("roberta", {"max_position_embeddings": 20}),  # padding index 0: one place is lost
        ("roberta", {"max_position_embeddings": 20, "pad_token_id": 1}),  # two places
        ("distilbert", {"max_position_embeddings": 20}),
        ("gpt2", {"n_positions": 20}),
        ("electra", {"max_position_embeddings": 20}),
    ],
)
def test_the_longest_text_is_what_the_model_can_run(family, changes):
    """One token more than `longest` has no position in the model."""
    adapter = build(family, **changes)
    longest = adapter.longest

    def run(tokens):
        with torch.no_grad():
            return adapter.module(input_ids=torch.full((1, tokens), 7)).logits

    assert torch.isfinite(run(longest)).all()
    with pytest.raises((IndexError, RuntimeError)):
        run(longest + 1)


def test_a_model_of_relative_positions_reads_any_length_but_its_own_axes_are_refused():
    """XLNet says -1 for its positions, and its states are (tokens, batch, width)."""
    config = transformers.XLNetConfig(
        vocab_size=300, d_model=16, n_layer=2, n_head=2, d_inner=16, num_labels=3
    )
    model = transformers.XLNetForSequenceClassification(config).eval()
    adapter = pellucid.adapt(model, word_piece())
    assert adapter.longest == word_piece().model_max_length
    assert len(pellucid.explain(adapter, "the film is fine", method="random").words()) == 4
    with pytest.raises(pellucid.UnsupportedCombination, match="first axis is not the batch"):
        pellucid.explain(adapter, "the film is fine", method="gradient_x_input")


# ---- padding without a padding token -------------------------------------------------------------


@pytest.fixture(scope="module")
def unpadded():
    module = build("gpt2").module
    module.config.pad_token_id = None
    return adapt(module, byte_bpe(pad=False), name="unpadded")


def test_without_a_padding_token_one_text_at_a_time(unpadded):
    texts = [TEXT, "a great film at all", "bad"]
    assert unpadded.largest_batch == 1
    for method in ("random", "gradient_x_input"):
        together = pellucid.explain(unpadded, texts, method=method, batch_size=8)
        for text, one in zip(texts, together, strict=True):
            alone = pellucid.explain(unpadded, text, method=method)
            assert torch.equal(one.scores, alone.scores)
    measured = pellucid.measure(unpadded, together, metric="text_deletion", grid="tokens:2")
    assert len(measured) == 3


def test_a_batch_without_a_padding_token_is_refused(unpadded):
    with pytest.raises(InputError, match="one text at a time") as caught:
        unpadded.encode([TEXT, "bad"], PREDICTED)
    assert "pad_token_id" in str(caught.value)


def test_a_language_model_pads_without_a_padding_token():
    module = build("gpt2-lm").module
    module.config.pad_token_id = None
    adapter = adapt(module, byte_bpe(pad=False))
    for one, text in zip(
        pellucid.explain(adapter, [TEXT, "bad"], method="gradient_x_input"),
        [TEXT, "bad"],
        strict=True,
    ):
        alone = pellucid.explain(adapter, text, method="gradient_x_input")
        torch.testing.assert_close(one.scores, alone.scores, rtol=1e-4, atol=1e-4)


# ---- [MASK] --------------------------------------------------------------------------------------


def masked_logits(adapter, text, mask):
    own = adapter.reader.tokenizer(text, return_tensors="pt")
    place = (own["input_ids"][0] == adapter.reader.tokenizer.mask_token_id).nonzero()[mask]
    with torch.no_grad():
        return adapter.module(**own).logits[0, int(place)]


@pytest.mark.parametrize("family", ["bert-mlm", "distilbert-mlm"])
@pytest.mark.parametrize("mask", [0, 1, -1])
def test_which_mask_is_read(tiny, family, mask):
    adapter, text = tiny(family), "the [MASK] is [MASK] at all"
    logits = masked_logits(adapter, text, mask)
    predicted = pellucid.explain(adapter, text, method="random", target=Target.at_mask(mask=mask))
    assert predicted.index == int(logits.argmax())
    assert predicted.value == pytest.approx(float(logits.max()), abs=1e-5)
    target = Target.at_mask("bad", mask=mask, quantity="log_probability")
    named = pellucid.explain(adapter, text, method="random", target=target)
    bad = adapter.reader.tokenizer.convert_tokens_to_ids("bad")
    assert named.index == bad
    assert named.value == pytest.approx(float(log_softmax(logits, -1)[bad]), abs=1e-5)


@pytest.mark.parametrize(("text", "mask"), [(TEXT, 0), ("the [MASK]", 1), ("the [MASK]", -2)])
def test_a_mask_that_is_not_there(tiny, text, mask):
    with pytest.raises(InputError, match=r"\[MASK\]"):
        pellucid.explain(tiny("bert-mlm"), text, method="random", target=Target.at_mask(mask=mask))


def test_the_blank_itself_is_not_explained(tiny):
    found = pellucid.explain(tiny("bert-mlm"), "the film is [MASK] .", method="random")
    roles = {segment.text: segment.role for segment in found.segments}
    assert roles["[MASK]"] == "special"
    assert [word.text for word in found.words()] == ["the", "film", "is", "."]


def test_masks_in_a_batch_of_different_lengths(tiny):
    adapter = tiny("bert-mlm")
    texts = ["[MASK] film", "the film is very , very [MASK] at all"]
    for text, one in zip(texts, pellucid.explain(adapter, texts, method="random"), strict=True):
        assert one.index == int(masked_logits(adapter, text, 0).argmax())


# ---- continuations and next tokens ---------------------------------------------------------------


def teacher_forced(adapter, text, continuation):
    """log p(continuation | text), one token after the other, by the definition."""
    tokenizer = adapter.reader.tokenizer
    seen = tokenizer(text)["input_ids"]
    total = 0.0
    for token in tokenizer.encode(continuation, add_special_tokens=False):
        with torch.no_grad():
            logits = adapter.module(input_ids=torch.tensor([seen])).logits[0, -1]
        total += float(log_softmax(logits.double(), -1)[token])
        seen = [*seen, token]
    return total


@pytest.mark.parametrize("family", ["gpt2-lm", "llama-lm", "qwen3-lm"])
def test_a_continuation_is_its_summed_log_probability(family):
    adapter = build(family, dtype=torch.float64)
    texts, continuation = [TEXT, "a", "not very good , but"], " great waste"
    together = pellucid.explain(
        adapter, texts, method="gradient_x_input", target=Target.continuation(continuation)
    )
    for text, one in zip(texts, together, strict=True):
        assert one.value == pytest.approx(teacher_forced(adapter, text, continuation), abs=1e-5)
        roles = [segment.role for segment in one.segments]
        extra = adapter.reader.tokenizer.encode(continuation, add_special_tokens=False)
        assert roles[-len(extra) :] == ["continuation"] * len(extra)
        assert "".join(word.text for word in one.words()) == text.replace(" ", "")
        assert continuation in one.explains


@pytest.mark.parametrize("family", ["gpt2-lm", "llama-lm"])
def test_the_next_token(tiny, family):
    adapter = tiny(family)
    own = adapter.reader.tokenizer(TEXT, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        logits = adapter.module(input_ids=own).logits[0, -1].double()
    found = pellucid.explain(adapter, TEXT, method="random")
    assert found.index == int(logits.argmax())
    word = {"gpt2-lm": "at", "llama-lm": " film"}[family]
    (token,) = adapter.reader.tokenizer.encode(word, add_special_tokens=False)
    target = Target.token(word, "probability")
    named = pellucid.explain(adapter, TEXT, method="random", target=target)
    assert named.index == token
    assert named.value == pytest.approx(float(logits.softmax(-1)[token]), rel=1e-4)


@pytest.mark.parametrize(
    ("family", "target"),
    [
        ("gpt2-lm", Target.token(" magnificent")),  # several tokens
        ("gpt2-lm", Target.token("")),
        ("gpt2-lm", Target.continuation("")),
        ("bert-mlm", Target.at_mask("magnificent")),  # no token but [UNK], which is no answer
        ("llama-lm", Target.token(" \u03a9")),  # <unk> as well
        ("bert-mlm", Target.continuation(" good")),
        ("bert", Target.continuation(" good")),
        ("bert-mlm", 300),  # ids go to 299
        ("gpt2-lm", -1),
    ],
)
def test_targets_that_are_no_token_of_the_model(tiny, family, target):
    text = "the film is [MASK]" if "mlm" in family else TEXT
    with pytest.raises(ArgumentError):
        pellucid.explain(tiny(family), text, method="random", target=target)


def test_the_unknown_token_can_be_named(tiny):
    """Whoever writes [UNK] means it."""
    target = Target.at_mask("[UNK]")
    found = pellucid.explain(tiny("bert-mlm"), "a [MASK]", method="random", target=target)
    assert found.index == tiny("bert-mlm").reader.tokenizer.unk_token_id


# ---- special tokens written by the user ----------------------------------------------------------


@pytest.mark.parametrize("typed", ["[SEP]", "[CLS]", "[PAD]", "[MASK]"])
def test_a_special_token_in_the_text_is_the_user_s(tiny, typed):
    """What was typed is part of the input and gets its own score, as the tokenizer reads it."""
    text = f"the {typed} film"
    found = pellucid.explain(tiny("bert"), text, method="random")
    assert content(found) == ["the", typed, "film"]
    assert [s.role for s in found.segments] == ["special", *["content"] * 3, "special"]
    total = found.scores[1:-1].double().sum()
    assert sum(word.score for word in found.words()) == pytest.approx(float(total))


def test_only_special_tokens_are_no_text_for_a_masked_model(tiny):
    with pytest.raises(InputError):
        pellucid.explain(tiny("bert-mlm"), "[MASK]", method="random")


# ---- dropping tokens -----------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert", "gpt2", "llama"])
def test_keep_drops_exactly(family):
    """The model sees the ids that stay, at positions counted anew."""
    adapter = build(family, dtype=torch.float64)
    texts = ["the film is not very good at all", "bad plot"]
    batch = adapter.encode(texts, PREDICTED)
    generator = torch.Generator().manual_seed(3)
    keep = batch.mask & ((torch.rand(batch.mask.shape, generator=generator) < 0.6) | ~batch.content)
    keep[:, batch.content[1].nonzero()[0]] = True
    fewer = adapter.keep(batch, keep)
    with torch.no_grad():
        rows = adapter.rows(adapter.output(fewer), fewer)[:, 0]
    for row in range(2):
        stays = batch.inputs["input_ids"][row][keep[row]]
        assert ids(fewer, row) == stays.tolist()
        own = [
            s
            for s, k in zip(batch.items[row].segments, keep[row][batch.mask[row]], strict=True)
            if k
        ]
        assert list(fewer.items[row].segments) == own
        with torch.no_grad():
            expected = adapter.module(input_ids=stays[None]).logits[0]
        torch.testing.assert_close(rows[row], expected, rtol=0, atol=1e-6)


def test_keep_moves_the_mask_and_the_continuation_along():
    for family, target in (
        ("bert-mlm", Target.at_mask()),
        ("gpt2-lm", Target.continuation(" great")),
    ):
        adapter = build(family, dtype=torch.float64)
        text = "the film is [MASK] at all" if "mlm" in family else TEXT
        batch = adapter.encode([text], target)
        keep = batch.mask.clone()
        keep[0, batch.content[0].nonzero()[:2]] = False
        fewer = adapter.keep(batch, keep)
        found = fewer.inputs["input_ids"][0].gather(0, fewer.reads[0])
        expected = batch.inputs["input_ids"][0].gather(0, batch.reads[0])
        assert torch.equal(found, expected)


# ---- tokenizers without offsets ------------------------------------------------------------------


class Slow:
    """A tokenizer in plain Python: it reports no offsets and cannot say whose a token is."""

    is_fast = False

    def __init__(self, tokenizer):
        self._tokenizer = tokenizer

    def __getattr__(self, name):
        return getattr(self._tokenizer, name)

    def __call__(self, *texts, return_offsets_mapping=False, **options):
        if return_offsets_mapping:
            raise NotImplementedError("return_offset_mapping is not available")
        return dict(self._tokenizer(*texts, **options))


@pytest.mark.parametrize("make", [word_piece, byte_bpe, sentence_piece])
def test_a_slow_tokenizer_finds_the_same_words(make):
    text = "The film is fine, not bad"
    family = {word_piece: "bert", byte_bpe: "gpt2", sentence_piece: "llama"}[make]
    fast = pellucid.explain(adapt(build(family).module, make()), text, method="random")
    slow = pellucid.explain(adapt(build(family).module, Slow(make())), text, method="random")
    assert torch.equal(fast.scores, slow.scores)
    assert [(w.text, w.score) for w in slow.words()] == [(w.text, w.score) for w in fast.words()]


@pytest.mark.parametrize("kinds", [True, False], ids=["with kinds", "without kinds"])
def test_a_slow_tokenizer_reads_a_pair(kinds):
    """Whose a token is comes from the token types; without them: right, or refused."""
    tokenizer = word_piece()
    if kinds:
        tokenizer.model_input_names = ["input_ids", "token_type_ids", "attention_mask"]
    adapter = adapt(build("bert").module, Slow(tokenizer))
    pair = ("the film", "the plot")
    try:
        words = pellucid.explain(adapter, pair, method="random").words()
    except InputError:
        assert not kinds
        return
    assert [(word.part, word.text) for word in words] == [
        *((0, word) for word in pair[0].split()),
        *((1, word) for word in pair[1].split()),
    ]
