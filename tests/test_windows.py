"""Long texts in windows: every word once, the mean of the windows that hold it, one target."""

from collections import defaultdict
from itertools import pairwise

import pytest
import torch

import pellucid
from pellucid import Attribution, InputError, Target
from pellucid._windows import merged, window_spans
from pellucid._words import word_spans
from pellucid.testing.tiny import WORDS, build

FAMILIES = ["bert", "gpt2", "llama"]  # WordPiece, byte BPE, SentencePiece
PLAIN = [word for word in WORDS if word.isascii() and word.isalpha()]
LONG = " ".join(PLAIN[(7 * i) % len(PLAIN)] for i in range(150))
MIXED = "The finely film, isn't it? 電影很好! \U0001f468\u200d\U0001f469 " * 14


def ones(case):
    """A score of one for every token of the text."""
    return case.content.float()


def place_in_window(case):
    """The number of each token in its window."""
    return torch.arange(case.mask.shape[1]).expand(case.mask.shape).float()


# ---- the words -----------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [LONG, MIXED], ids=["plain", "mixed"])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_word_stands_once_in_its_place(tiny, family, text):
    found = pellucid.explain(tiny(family), text, method="random", long="windows")
    assert len(tiny(family).encode([text], Target(), long="windows").items[0].segments) > 64
    words = found.words()
    spans = [word.span for word in words]
    assert spans == sorted(set(spans))
    assert all(a[1] <= b[0] for a, b in pairwise(spans)), "words overlap"
    assert [(w.text, w.span) for w in words] == [(text[a:b], (a, b)) for a, b in word_spans(text)]


@pytest.mark.parametrize("family", FAMILIES)
def test_windows_fit_overlap_and_cover(tiny, family):
    """Each is short enough, begins inside the one before and ends after it."""
    adapter = tiny(family)
    item = adapter.encode([LONG], Target(), long="windows").items[0]
    room = 40
    spans = window_spans(item, room)
    tokens = [s.span for s in item.segments if s.role == "content"]
    for start, end in spans:
        assert 0 < sum(start <= a and b <= end for a, b in tokens) <= room
    for (a, b), (c, d) in pairwise(spans):
        assert a < c < b < d
    assert spans[0][0] == 0
    assert spans[-1][1] == len(LONG)


def test_a_text_that_fits_is_explained_as_ever(tiny):
    for method in ("random", "gradient_x_input", "rollout"):
        plain = pellucid.explain(tiny("bert"), "the film is fine", method=method)
        asked = pellucid.explain(tiny("bert"), "the film is fine", method=method, long="windows")
        assert torch.equal(plain.scores, asked.scores)
        assert plain.segments == asked.segments
        assert plain.notes == asked.notes == ()


def test_long_and_short_texts_keep_their_order(tiny):
    texts = ["the film", LONG, "bad", MIXED]
    found = pellucid.explain(tiny("bert"), texts, method="random", long="windows")
    assert [one.item.parts[0] for one in found] == texts
    alone = pellucid.explain(tiny("bert"), LONG, method="random", long="windows")
    assert torch.equal(found[1].scores, alone.scores)


# ---- the merging ---------------------------------------------------------------------------------


def test_the_mean_over_windows_by_hand(tiny):
    """Each window explained alone; a word's score is the mean of those that hold it."""
    adapter = tiny("bert")
    item = adapter.encode([LONG], Target(), long="windows").items[0]
    spans = window_spans(item, adapter.longest - 2)
    assert len(spans) > 2
    target = Target.logit(1)
    parts = [
        pellucid.explain(adapter, LONG[a:b], method="gradient_x_input", target=target)
        for a, b in spans
    ]
    scores = defaultdict(list)
    for (offset, _), part in zip(spans, parts, strict=True):
        for word in part.words():
            scores[word.span[0] + offset].append(word.score)
    assert max(map(len, scores.values())) == 2
    assert min(map(len, scores.values())) == 1
    expected = [sum(scores[start]) / len(scores[start]) for start in sorted(scores)]
    found = pellucid.explain(
        adapter, LONG, method="gradient_x_input", target=target, long="windows"
    )
    torch.testing.assert_close(found.scores, torch.tensor(expected), rtol=1e-4, atol=1e-5)
    assert found.value == pytest.approx(sum(p.value for p in parts) / len(parts), rel=1e-4)
    assert sum(found.prediction.values()) == pytest.approx(1.0)
    for label in found.prediction:
        mean = sum(p.prediction[label] for p in parts) / len(parts)
        assert found.prediction[label] == pytest.approx(mean, rel=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_constant_stays_the_number_of_tokens(tiny, family):
    """Scores of one: a word's score is how many tokens it has, in however many windows."""
    found = pellucid.explain(tiny(family), LONG, method=ones, long="windows")
    whole = tiny(family).encode([LONG], Target(), long="windows").items[0]
    content = sum(segment.role == "content" for segment in whole.segments)
    if family == "bert":  # whose words are the same wherever a window begins
        assert float(found.scores.sum()) == content
    assert (found.scores >= 1).all()


def test_all_windows_explain_one_class(tiny):
    """Where windows disagree, scores of different classes must not be averaged into one."""
    adapter = build("bert")
    for seed in range(30):
        generator = torch.Generator().manual_seed(seed)
        order = torch.randint(len(PLAIN), (150,), generator=generator).tolist()
        text = " ".join(PLAIN[i] for i in order)
        spans = window_spans(adapter.encode([text], Target(), long="windows").items[0], 62)
        parts = pellucid.explain(adapter, [text[a:b] for a, b in spans], method="random")
        if len({part.index for part in parts}) > 1:
            break
    else:
        pytest.fail("no text was found on which windows disagree")
    found = pellucid.explain(adapter, text, method="gradient_x_input", long="windows")
    fixed = pellucid.explain(
        adapter, text, method="gradient_x_input", target=found.index, long="windows"
    )
    torch.testing.assert_close(found.scores, fixed.scores, rtol=1e-4, atol=1e-5)
    assert found.value == pytest.approx(fixed.value, rel=1e-4)


def test_predictions_are_listed_from_the_most_probable(tiny):
    found = pellucid.explain(tiny("bert"), LONG, method="random", long="windows")
    probabilities = list(found.prediction.values())
    assert probabilities == sorted(probabilities, reverse=True)


def test_what_belongs_to_one_window_is_not_said_of_the_text(tiny):
    """Extras have the tokens of a window; passes through the model are those of all windows."""

    def method(case):
        return Attribution(case.randn(), {"places": place_in_window(case)})

    item = tiny("bert").encode([LONG], Target(), long="windows").items[0]
    windows = len(window_spans(item, 62))
    found = pellucid.explain(tiny("bert"), LONG, method=method, long="windows")
    for tensor in found.extras.values():
        assert tensor.shape[0] == len(found.segments)
    assert found.provenance.forwards >= windows


def test_the_note_says_how_many_windows(tiny):
    item = tiny("bert").encode([LONG], Target(), long="windows").items[0]
    windows = len(window_spans(item, 62))
    found = pellucid.explain(tiny("bert"), LONG, method="random", long="windows")
    assert [note for note in found.notes if "windows" in note] == [
        f"{windows} overlapping windows of the text, merged by words"
    ]


def test_merging_two_windows_that_share_a_word(tiny):
    text = "the film is"
    parts = pellucid.explain(tiny("bert"), ["the film", "film is"], method=place_in_window)
    whole = tiny("bert").encode([text], Target()).items[0]
    found = merged(whole, [(0, 8), (4, 11)], parts)
    assert [(w.text, w.score) for w in found.words()] == [("the", 1), ("film", 1.5), ("is", 2)]


# ---- what does not fit ---------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["alone", "at the beginning", "in the middle", "at the end"])
def test_one_enormous_word(tiny, where):
    """It is read as far as there is room; it keeps its place, and the reader is told."""
    enormous = "finely" * 60
    before = "the film is " * 30 if where in ("in the middle", "at the end") else ""
    after = " the plot was" * 30 if where in ("in the middle", "at the beginning") else ""
    text = (before + enormous + after).strip()
    found = pellucid.explain(tiny("gpt2"), text, method="random", long="windows")
    assert [word.text for word in found.words()] == text.split()
    assert any("truncated" in note for note in found.notes)


def test_no_window_is_cut_in_silence(tiny):
    """A window may have more tokens by itself than it had in the whole text."""
    for family in FAMILIES:
        text = "waste" * 3 + " " + "great slower " * 40
        found = pellucid.explain(tiny(family), text, method="random", long="windows")
        assert not any("truncated" in note for note in found.notes)
        assert [word.text for word in found.words()] == text.split()


def test_a_pair_is_refused(tiny):
    with pytest.raises(InputError, match=r"pair(.|\n)*long='truncate'"):
        pellucid.explain(tiny("bert"), (LONG, "the film"), method="random", long="windows")


def test_a_pair_that_fits_is_read(tiny):
    pair = ("the film", "the plot")
    plain = pellucid.explain(tiny("bert"), pair, method="random")
    assert torch.equal(
        plain.scores, pellucid.explain(tiny("bert"), pair, method="random", long="windows").scores
    )


def test_a_blank_in_a_long_text(tiny):
    """Windows without the [MASK] have nothing to predict: so this is refused, by its name."""
    text = "the film is [MASK] " + "very good " * 50
    with pytest.raises(InputError, match="window"):
        pellucid.explain(tiny("bert-mlm"), text, method="random", long="windows")


def test_an_explanation_in_windows_is_saved_and_measured_or_refused(tiny, tmp_path):
    """Its scores are words', the model's tokens are others: a designed error, no wrong number."""
    found = pellucid.explain(tiny("bert"), LONG, method="random", long="windows")
    again = pellucid.Explanation.load(found.save(tmp_path / "x"))
    assert again.words() == found.words()
    with pytest.raises(pellucid.PellucidError):
        pellucid.measure(tiny("bert"), found, metric="text_deletion")
