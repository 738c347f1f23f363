"""Words from tokens: whole in every script, nothing lost, whatever the tokenizer reports."""

from dataclasses import replace

import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import pellucid
from pellucid import InputError, Target
from pellucid._words import align, group_by_word, word_spans
from pellucid.adapters import adapt

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"  # man, joiner, woman, joiner, girl
THUMB = "\U0001f44d\U0001f3fd"  # with a skin tone
FRANCE, GERMANY = "\U0001f1eb\U0001f1f7", "\U0001f1e9\U0001f1ea"
ENGLAND = "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
HEART = "\u2764\ufe0f\u200d\U0001f525"  # heart, emoji style, joiner, fire
KEYCAP = "1\ufe0f\u20e3"
PERSIAN = (
    "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"  # one word with a zero-width non-joiner
)

# ---- the words of a text -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a fine film", ["a", "fine", "film"]),
        ("  two\t\nwords  ", ["two", "words"]),
        (" \t\n", []),
        ("don't it\u2019s l'\u00e9t\u00e9", ["don't", "it\u2019s", "l'\u00e9t\u00e9"]),
        ("'quoted' dogs'", ["'", "quoted", "'", "dogs", "'"]),
        ("well-known", ["well", "-", "known"]),
        ("snake_case __init__", ["snake_case", "__init__"]),
        ("x2 007", ["x2", "007"]),
        ("3.14", ["3", ".", "14"]),
        ("https://a.org", ["https", ":", "/", "/", "a", ".", "org"]),
        ("cafe\u0301 nai\u0308ve", ["cafe\u0301", "nai\u0308ve"]),
        ("co\u00adoperate", ["co\u00adoperate"]),  # a soft hyphen is invisible
        (f"{FAMILY}{FAMILY}", [FAMILY, FAMILY]),
        (f"ok{THUMB}ok", ["ok", THUMB, "ok"]),
        (f"{FRANCE}{GERMANY}", [FRANCE, GERMANY]),
        (f"{ENGLAND}!", [ENGLAND, "!"]),
        (f"{HEART} {KEYCAP}", [HEART, KEYCAP]),
        ("كِتَابٌ جَمِيل", ["كِتَابٌ", "جَمِيل"]),
        (PERSIAN, [PERSIAN]),
        ("我喜欢。", ["我", "喜", "欢", "。"]),
        ("良い film です", ["良", "い", "film", "で", "す"]),
        ("か\u3099く", ["か\u3099", "く"]),  # a voicing mark of its own
        ("한국어 영화", ["한국어", "영화"]),
        ("\u1112\u1161\u11ab글", ["\u1112\u1161\u11ab글"]),  # Hangul in parts
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
    ],
)
def test_words_of_a_text(text, words):
    assert [text[a:b] for a, b in word_spans(text)] == words


def test_direction_marks_belong_to_no_word():
    text = "\u200fمرحبا\u200f بك\u200e"
    assert [text[a:b].strip("\u200e\u200f") for a, b in word_spans(text)] == ["مرحبا", "بك"]


@given(st.text(max_size=40))
def test_words_are_in_order_and_hold_all_that_is_seen(text):
    spans = word_spans(text)
    edges = [edge for span in spans for edge in span]
    assert edges == sorted(edges)
    assert all(a < b for a, b in spans)
    outside = set(range(len(text))) - {i for a, b in spans for i in range(a, b)}
    assert not any(text[i].isalnum() for i in outside)


# ---- tokens to words -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "spans", "groups"),
    [
        ("finely", [(0, 4), (4, 6)], [[0, 1]]),
        ("a b", [(0, 1), (2, 3)], [[0], [1]]),
        ("a b", [(0, 3)], [[0]]),  # one token over two words makes them one
        ("ab cd ef", [(0, 1), (1, 4), (4, 5), (6, 8)], [[0, 1, 2], [3]]),
        ("\U0001f600!", [(0, 1)] * 4 + [(1, 2)], [[0, 1, 2, 3], [4]]),  # the bytes of an emoji
        ("b a", [(2, 3), (0, 1)], [[1], [0]]),
    ],
)
def test_groups_of_tokens(text, spans, groups):
    assert [tokens for _, tokens in group_by_word(text, spans)] == groups


SENTENCES = [
    ("the film is finely unfine", ["the", "film", "is", "finely", "unfine"]),
    ("  the   film  ", ["the", "film"]),
    ("don't waste the time", ["don't", "waste", "the", "time"]),
    ("電影 很好.", ["電", "影", "很", "好", "."]),
    ("snake_case 12 x2", ["snake_case", "12", "x2"]),
    (f"{FAMILY} {THUMB} \U0001f600", [FAMILY, THUMB, "\U0001f600"]),
    ("كِتَابٌ جَمِيل", ["كِتَابٌ", "جَمِيل"]),
    ("cafe\u0301 nai\u0308ve", ["cafe\u0301", "nai\u0308ve"]),
    ("한국어 영화", ["한국어", "영화"]),
]
TOKENIZED = {"bert": "WordPiece", "gpt2": "byte BPE", "llama": "SentencePiece"}


@pytest.mark.parametrize("family", TOKENIZED)
@pytest.mark.parametrize(("text", "words"), SENTENCES)
def test_words_of_an_explanation(tiny, family, text, words):
    explanation = pellucid.explain(tiny(family), text, method="random")
    assert [word.text for word in explanation.words()] == words
    assert [text[slice(*word.span)] for word in explanation.words()] == words


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_a_space_of_its_own_opens_the_next_word(tiny, family):
    """As it does where "▁dove" is one token."""
    base = pellucid.explain(tiny(family), "the dove", method="random")
    own = [s.role == "content" for s in base.segments]
    spaces = [s.text for s in base.segments if s.role == "content" and not s.text.strip()]
    assert spaces == [" "]
    before = torch.tensor([s.span is not None and s.span[1] <= 3 for s in base.segments])
    marked = replace(base, scores=torch.where(before & torch.tensor(own), 1.0, 100.0))
    assert marked.words()[0].score == int(before.sum())


MARKS = ("\u0301", "\u064e", "\u200f")
PIECES = st.sampled_from(
    [*"abz .,'-_ 1é電かك한", "fine", "film ", "  ", *MARKS, FAMILY, THUMB, FRANCE, "\U0001f600"]
)


@pytest.mark.parametrize("family", TOKENIZED)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pieces=st.lists(PIECES, min_size=1, max_size=12))
def test_sums_are_kept_and_tokens_are_whole(tiny, family, pieces):
    adapter, text = tiny(family), "".join(pieces)
    try:
        item = adapter.encode([text], Target.predicted()).items[0]
    except InputError:
        assume(False)
    base = pellucid.explain(adapter, "the film", method="random")
    scores = torch.arange(1.0, len(item.segments) + 1) ** 2  # every subset has a sum of its own
    words = replace(base, item=item, scores=scores).words()
    content = torch.tensor([segment.role == "content" for segment in item.segments])
    assert sum(word.score for word in words) == pytest.approx(float(scores[content].sum()))
    edges = [edge for word in words for edge in word.span]
    assert edges == sorted(edges), "words overlap"
    for a, b in (segment.span for segment in item.segments if segment.role == "content"):
        touched = [word.span for word in words if word.span[0] < b and a < word.span[1]]
        assert len(touched) <= 1, "a token was cut"
        start, end = touched[0] if touched else (b, b)
        assert not any(character.isalnum() for character in text[a:start] + text[end:b])


def test_aggregates_by_hand(tiny):
    base = pellucid.explain(tiny("bert"), "finely bad", method="random")
    assert [s.text for s in base.segments] == ["[CLS]", "fine", "ly", "bad", "[SEP]"]
    known = replace(base, scores=torch.tensor([100.0, 1.0, -3.0, 5.0, 100.0]))
    for aggregate, values in (("sum", [-2, 5]), ("mean", [-1, 5]), ("max", [-3, 5])):
        assert [word.score for word in known.words(aggregate)] == values


def test_words_of_a_pair(tiny):
    pair = ("the film is fine", "the finely film")
    explanation = pellucid.explain(tiny("bert"), pair, method="random")
    words = explanation.words()
    assert [(word.part, word.text) for word in words] == [
        *((0, word) for word in pair[0].split()),
        *((1, word) for word in pair[1].split()),
    ]
    assert all(pair[word.part][slice(*word.span)] == word.text for word in words)
    content = [s.role == "content" for s in explanation.segments]
    total = explanation.scores[torch.tensor(content)].double().sum()
    assert sum(word.score for word in words) == pytest.approx(float(total))


# ---- tokenizers that report no offsets, or wrong ones --------------------------------------------


class Misreporting:
    """A tokenizer whose offsets went through `change`."""

    def __init__(self, tokenizer, change, is_fast=True):
        self._tokenizer, self._change, self.is_fast = tokenizer, change, is_fast

    def __getattr__(self, name):
        return getattr(self._tokenizer, name)

    def __call__(self, *texts, **options):
        encoded = self._tokenizer(*texts, **options)
        if "offset_mapping" in encoded:
            encoded["offset_mapping"] = [self._change(a, b) for a, b in encoded["offset_mapping"]]
        return encoded


CHANGES = {
    "none": (lambda a, b: (a, b), False),
    "empty": (lambda a, b: (a, a), True),
    "zero": (lambda a, b: (0, 0), True),
    "outside": (lambda a, b: (a + 90, b + 90), True),
    "partly empty": (lambda a, b: (a, a if b - a > 2 else b), True),  # BPE with ignore_merges
    "backwards": (lambda a, b: (b, a), True),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("family", TOKENIZED)
@pytest.mark.parametrize(
    "text",
    ["unfinely fine film", "Waste of time, at all!", "film 電 fine"],
)
def test_words_without_good_offsets(tiny, family, change, text):
    model = tiny(family)
    alter, fast = CHANGES[change]
    wrapped = adapt(model.module, Misreporting(model.reader.tokenizer, alter, fast))
    found = pellucid.explain(wrapped, text, method="random").words()
    assert [word.text for word in found] == [text[a:b] for a, b in word_spans(text)]


@pytest.mark.parametrize(
    ("text", "pieces", "spans"),
    [
        ("A Fine film", ["a", " fine", "film"], [(0, 1), (2, 6), (7, 11)]),
        ("unfine fine", ["un", "##fine", "fine"], [(0, 2), (2, 6), (7, 11)]),
        ("die Straße Film", ["die", "Straße", "Film"], [(0, 3), (4, 10), (11, 15)]),
        ("a \U0001f600 b", ["a", "\ufffd", "\ufffd", "b"], [(0, 1), None, None, (4, 5)]),
        ("ab", ["ab", "x", "y"], [(0, 2), None, None]),
    ],
)
def test_align(text, pieces, spans):
    found = align(text, pieces)
    assert all(0 <= a <= b <= len(text) for a, b in found)
    for got, span in zip(found, spans, strict=True):
        assert span is None or got == span
