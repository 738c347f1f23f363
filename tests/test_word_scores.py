"""Scores of words that are given: by characters, nothing lost, the first word included."""

from dataclasses import replace

import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import pellucid
from pellucid import ArgumentError, InputError, Target
from pellucid._types import Segment, Text
from pellucid._words import word_scores

TOKENIZED = ("bert", "gpt2", "llama")


def spans_of(words):
    """Where each word stands in " ".join(words), by counting."""
    starts = [sum(len(word) + 1 for word in words[:i]) for i in range(len(words))]
    return [(start, start + len(word)) for start, word in zip(starts, words, strict=True)]


def of_tokens(model, text, tokens):
    """An explanation whose tokens and scores are these: (score, start, end), None for special."""
    base = pellucid.explain(model, text, method="random")
    segments = tuple(
        Segment("?", role="special") if start is None else Segment("?", span=(start, end))
        for _, start, end in tokens
    )
    scores = torch.tensor([score for score, *_ in tokens])
    return replace(base, item=Text((text,), segments), scores=scores)


# ---- by hand -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("how", "values"), [("sum", [-2, 5]), ("mean", [-1, 5]), ("max", [-3, 5])])
def test_tokens_of_one_word(tiny, how, values):
    base = pellucid.explain(tiny("bert"), "finely bad", method="random")
    assert [s.text for s in base.segments] == ["[CLS]", "fine", "ly", "bad", "[SEP]"]
    known = replace(base, scores=torch.tensor([100.0, 1.0, -3.0, 5.0, 100.0]))
    assert word_scores(known, [(0, 6), (7, 10)], how).tolist() == values


def test_a_token_over_two_words_is_shared_by_their_characters(tiny):
    """Of "ab cde" one token holds b, the space and cd: one part and two parts of three."""
    found = of_tokens(tiny("bert"), "ab cde", [(9.0, None, 0), (1.0, 0, 1), (6.0, 1, 5)])
    assert word_scores(found, [(0, 2), (3, 6)]).tolist() == pytest.approx([1 + 2, 4])
    assert word_scores(found, [(0, 2), (3, 6)], "mean").tolist() == pytest.approx([1.5, 4])
    assert word_scores(found, [(0, 2), (3, 6)], "max").tolist() == pytest.approx([2, 4])


@pytest.mark.parametrize(
    ("start", "end", "owner"),
    [(0, 0, 0), (1, 1, 1), (1, 2, 1), (2, 2, 1), (3, 4, 2), (5, 6, 2), (6, 6, 2)],
)
def test_a_token_of_white_space_belongs_to_the_word_that_follows(tiny, start, end, owner):
    """And one behind the last word to that."""
    found = of_tokens(tiny("bert"), "a b c ", [(1.0, start, end)])
    expected = [float(word == owner) for word in range(3)]
    assert word_scores(found, [(0, 1), (2, 3), (4, 5)]).tolist() == expected


def test_a_word_without_a_token_gets_zero(tiny):
    found = of_tokens(tiny("bert"), "a  c d", [(1.0, 0, 1), (2.0, 1, 2), (4.0, 3, 4)])
    assert word_scores(found, [(0, 1), (2, 2), (3, 4), (5, 6)]).tolist() == [1, 0, 6, 0]


def test_two_halves_of_a_word_are_the_word(tiny):
    whole = of_tokens(tiny("bert"), "finely bad", [(3.0, 0, 6), (1.0, 7, 10)])
    halves = of_tokens(tiny("bert"), "finely bad", [(1.5, 0, 4), (1.5, 4, 6), (1.0, 7, 10)])
    spans = [(0, 6), (7, 10)]
    assert word_scores(whole, spans).tolist() == word_scores(halves, spans).tolist() == [3, 1]


def test_words_of_the_second_text_of_a_pair(tiny):
    base = pellucid.explain(tiny("bert"), ("the film", "finely bad"), method="random")
    scores = torch.arange(float(len(base.segments)))
    known = replace(base, scores=scores)
    second = [i for i, s in enumerate(base.segments) if s.part == 1 and s.role == "content"]
    assert word_scores(known, [(0, 6), (7, 10)], part=1).sum() == scores[second].sum()
    assert word_scores(known, [(0, 3), (4, 8)]).tolist() == scores[1:3].tolist()


# ---- with tokenizers -----------------------------------------------------------------------------


def by_characters(explanation, spans):
    """A literal version: a token lies on its characters evenly, and a word has its characters'."""
    total = [0.0] * len(spans)
    owner = {i: word for word, (a, b) in enumerate(spans) for i in range(a, b)}
    for segment, score in zip(explanation.segments, explanation.scores.tolist(), strict=True):
        if segment.role == "special":
            continue
        own = [i for i in range(*segment.span) if i in owner]
        if not own:
            following = [i for i in owner if i >= segment.span[0]]
            own = [min(following) if following else max(owner)]
        for i in own:
            total[owner[i]] += score / len(own)
    return total


WORDS = st.lists(
    st.sampled_from(
        ["the", "finely", "film.", "don't", "電影", "e\u0301", "\U0001f600", "1,5", "@x"]
    ),
    min_size=1,
    max_size=8,
)


@pytest.mark.parametrize("family", TOKENIZED)
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=WORDS)
def test_every_content_token_is_in_a_word(tiny, family, words):
    text, spans = " ".join(words), spans_of(words)
    assert [text[a:b] for a, b in spans] == words
    adapter = tiny(family)
    try:
        item = adapter.encode([text], Target.predicted()).items[0]
    except InputError:
        assume(False)
    scores = torch.arange(1.0, len(item.segments) + 1).double() ** 2
    base = pellucid.explain(adapter, "the film", method="random")
    found = replace(base, item=item, scores=scores)
    assert word_scores(found, spans).tolist() == pytest.approx(by_characters(found, spans))
    content = torch.tensor([segment.role == "content" for segment in item.segments])
    assert float(word_scores(found, spans).sum()) == pytest.approx(float(scores[content].sum()))


@pytest.mark.parametrize("family", TOKENIZED)
@pytest.mark.parametrize("marked", range(4))
def test_each_word_gets_its_own_tokens(tiny, family, marked):
    """No word is one off, nor is the first one dropped."""
    words = ["the", "unfine", "don't", "film"]
    spans = spans_of(words)
    base = pellucid.explain(tiny(family), " ".join(words), method="random")
    inside = [
        s.role == "content" and s.span[0] >= spans[marked][0] and s.span[1] <= spans[marked][1]
        for s in base.segments
    ]
    assert any(inside)
    found = word_scores(replace(base, scores=torch.tensor(inside).double()), spans)
    assert found.nonzero().flatten().tolist() == [marked]


# ---- what does not fit ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spans", "fragment"),
    [
        ([], "'finelybad' of the text in none"),
        ([(0, 6)], "'bad' of the text in none"),
        ([(7, 10)], "'finely' of the text in none"),
        ([(0, 6), (7, 11)], "end after the 10 characters"),
        ([(0, 7), (6, 10)], "overlap"),
        ([(7, 10), (0, 6)], "overlap"),
    ],
)
def test_words_of_another_text_are_refused(tiny, spans, fragment):
    base = pellucid.explain(tiny("bert"), "finely bad", method="random")
    if not spans:
        base = replace(base, item=replace(base.item, parts=("finelybad",)))
    with pytest.raises(ArgumentError, match=fragment):
        word_scores(base, spans)


def test_other_arguments_that_do_not_fit(tiny):
    base = pellucid.explain(tiny("bert"), "finely bad", method="random")
    with pytest.raises(ArgumentError, match="how='median'"):
        word_scores(base, [(0, 6), (7, 10)], "median")
    with pytest.raises(ArgumentError, match="part=1"):
        word_scores(base, [(0, 6), (7, 10)], part=1)
    picture = pellucid.explain(tiny("vit"), torch.zeros(32, 48, 3, dtype=torch.uint8))
    with pytest.raises(ArgumentError, match="of picture"):
        word_scores(picture, [(0, 6)])
