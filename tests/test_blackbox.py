"""Functions from texts or images to scores: what can be asked of them, and what cannot."""

import numpy as np
import pytest
import torch
from PIL import Image

import pellucid
from pellucid import ArgumentError, InputError, ModelError, NumericalError, UnsupportedCombination
from pellucid.methods import METHODS

WEIGHTS = {"good": 2.0, "fine": 1.0, "bad": -3.0, "not": -1.0}


def judge(texts):
    """The log-odds of "positive" are the sum of the weights of the words."""
    words = [text.replace(".", " ").replace(",", " ").split() for text in texts]
    return [[0.0, sum(WEIGHTS.get(word, 0.0) for word in row)] for row in words]


def brightness(images):
    means = [image.mean() / 255 for image in images]
    return np.array([[0.0, 10 * mean] for mean in means])


@pytest.fixture
def box():
    return pellucid.blackbox(judge, kind="text", labels=["negative", "positive"], gives="logits")


@pytest.fixture
def lamp():
    return pellucid.blackbox(
        brightness, kind="image", labels=["dark", "light"], size=(8, 12), split=4
    )


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# ---- predictions ---------------------------------------------------------------------------------


def test_scores_are_logits(box):
    found = pellucid.explain(box, "a good film, not bad", method="random", target="positive")
    assert found.value == -2.0
    assert found.label == "positive"
    assert found.prediction == pytest.approx({"positive": sigmoid(-2), "negative": sigmoid(2)})
    assert list(found.prediction) == ["negative", "positive"]


def test_words_are_the_pieces(box):
    found = pellucid.explain(box, "Good, isn't it?", method="random")
    assert [s.text for s in found.segments] == ["Good", ",", "isn't", "it", "?"]
    assert [w.text for w in found.words()] == ["Good", ",", "isn't", "it", "?"]


@pytest.mark.parametrize(
    "answer",
    [
        lambda n: [[1.0, 2.0]] * n,
        lambda n: np.full((n, 2), [1, 2], np.float16),
        lambda n: np.full((n, 2), [1, 2]),
        lambda n: torch.tensor([[1.0, 2.0]]).repeat(n, 1).requires_grad_(),
        lambda n: torch.tensor([[1.0, 2.0]], dtype=torch.bfloat16).repeat(n, 1),
        lambda n: [torch.tensor([1.0, 2.0])] * n,
        lambda n: ((1, 2),) * n,
    ],
)
def test_scores_in_any_numeric_form(answer):
    box = pellucid.blackbox(lambda texts: answer(len(texts)), kind="text", labels=["a", "b"])
    for found in pellucid.explain(box, ["x y", "z"], method="random", target="b"):
        assert found.value == 2.0


def test_the_function_gets_lists_of_what_was_given():
    seen = []

    def function(inputs):
        seen.append(inputs)
        return [[0.0]] * len(inputs)

    text = pellucid.blackbox(function, kind="text", labels=["a"])
    pellucid.explain(text, ["one  text", ("a pair", "of two")], method="random", batch_size=1)
    assert seen == [["one  text"], [("a pair", "of two")]]
    seen.clear()
    image = pellucid.blackbox(function, kind="image", labels=["a"], size=(2, 3))
    pixels = np.arange(18, dtype=np.uint8).reshape(2, 3, 3) * 14
    pellucid.explain(image, pixels, method="random")
    (batch,) = seen
    assert isinstance(batch, list)
    assert batch[0].dtype == np.uint8
    np.testing.assert_array_equal(batch[0], pixels)


def test_images_arrive_in_their_size(lamp):
    found = pellucid.explain(lamp, Image.new("RGB", (100, 90), "white"), method="random")
    assert found.item.view.shape == (8, 12, 3)
    assert found.item.grid == (2, 3)
    assert found.value == 10.0
    assert found.label == "light"


@pytest.mark.parametrize(
    ("gives", "answer"),
    [
        ("logits", lambda x: np.stack([0 * x, x], axis=1)),
        ("logits", lambda x: np.stack([0 * x + 3, x + 3], axis=1)),
        ("log_probabilities", lambda x: np.stack([-np.log1p(np.exp(x)), -np.log1p(np.exp(-x))], 1)),
        ("probabilities", lambda x: np.stack([sigmoid(-x), sigmoid(x)], axis=1)),
        ("log_odds", lambda x: x),
        ("log_odds", lambda x: x[:, None]),
    ],
)
def test_every_kind_of_answer_is_one_distribution(gives, answer):
    def function(texts):
        return answer(np.array([row[1] for row in judge(texts)]))

    box = pellucid.blackbox(function, kind="text", labels=["no", "yes"], gives=gives)
    for text, odds in [("good", 2.0), ("a bad film", -3.0)]:
        found = pellucid.explain(
            box, text, method="occlusion", target=pellucid.Target.log_odds("yes")
        )
        assert found.value == pytest.approx(odds)
        assert found.prediction["yes"] == pytest.approx(sigmoid(odds))
        expected = [WEIGHTS.get(word, 0.0) for word in text.split()]
        assert found.scores.tolist() == pytest.approx(expected)


def test_log_odds_explain_either_label_by_half():
    box = pellucid.blackbox(
        lambda texts: [row[1] for row in judge(texts)],
        kind="text",
        labels=["no", "yes"],
        gives="log_odds",
    )
    for label, half in [("yes", -1.5), ("no", 1.5)]:
        target = pellucid.Target.logit(label)
        found = pellucid.explain(box, "a bad film", method="occlusion", target=target)
        assert found.value == half
        assert found.scores.tolist() == [0, half, 0]


@pytest.mark.parametrize(
    ("gives", "row", "error"),
    [
        ("probabilities", [0.5, 0.6], ModelError),
        ("probabilities", [-0.5, 1.5], ModelError),
        ("probabilities", [0.0, 1.0], NumericalError),
        ("probabilities", [np.nan, 1.0], NumericalError),
        ("log_probabilities", [0.5, 0.5], ModelError),
        ("log_probabilities", [-np.inf, 0.0], NumericalError),
        ("log_odds", [0.5, 0.5], ModelError),
        ("logits", [0.0, -np.inf], NumericalError),
        (None, [0.25, 0.75], ModelError),
    ],
)
def test_answers_that_are_not_what_was_said(gives, row, error):
    box = pellucid.blackbox(
        lambda texts: [row] * len(texts), kind="text", labels=["no", "yes"], gives=gives
    )
    with pytest.raises(error) as caught:
        pellucid.explain(box, "a film", method="random")
    assert "got:" in str(caught.value)
    assert "instead:" in str(caught.value)


def test_probabilities_in_few_digits_are_probabilities():
    row = torch.tensor([0.3, 0.7], dtype=torch.bfloat16)
    box = pellucid.blackbox(
        lambda texts: row.repeat(len(texts), 1),
        kind="text",
        labels=["no", "yes"],
        gives="probabilities",
    )
    found = pellucid.explain(box, "a film", method="random")
    assert found.prediction["yes"] == pytest.approx(0.7, abs=3e-3)


# ---- wrong answers -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        lambda n: [0.5] * n,
        lambda n: [[0.1, 0.2, 0.3]] * n,
        lambda n: [[0.1, 0.2]] * (n + 1),
        lambda n: [],
        lambda n: None,
        lambda n: 0.5,
        lambda n: "positive",
        lambda n: [["a", "b"]] * n,
        lambda n: [[0.1, 0.2], [0.1]][:n] if n > 1 else [[[0.1], [0.2, 0.3]]],
        lambda n: [{"label": "positive", "score": 0.9}] * n,
    ],
    ids=[
        "one a row",
        "three",
        "rows",
        "none",
        "None",
        "number",
        "word",
        "words",
        "ragged",
        "dicts",
    ],
)
def test_answers_of_another_shape(answer):
    box = pellucid.blackbox(lambda texts: answer(len(texts)), kind="text", labels=["a", "b"])
    with pytest.raises(ModelError) as caught:
        pellucid.explain(box, ["a film", "a plot"], method="random")
    assert "got:" in str(caught.value)
    assert "(2, 2)" in str(caught.value)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_answers_that_are_not_finite(bad):
    box = pellucid.blackbox(lambda texts: [[0.0, bad]] * len(texts), kind="text", labels="ab")
    with pytest.raises(NumericalError):
        pellucid.explain(box, "a film", method="random")


def test_an_error_of_the_function_is_its_own():
    def broken(texts):
        raise ZeroDivisionError("mine")

    box = pellucid.blackbox(broken, kind="text", labels=["a"])
    with pytest.raises(
        ModelError, match=r"ZeroDivisionError: mine\n.*1 inputs.*'a film'"
    ) as caught:
        pellucid.explain(box, "a film", method="random")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize("passing", [KeyboardInterrupt, MemoryError])
def test_what_is_not_an_error_of_the_function_passes(passing):
    def stopped(texts):
        raise passing

    box = pellucid.blackbox(stopped, kind="text", labels=["a"])
    with pytest.raises(passing):
        pellucid.explain(box, "a film", method="random")


def test_fewer_inputs_where_memory_runs_out():
    seen = []

    def small(texts):
        seen.append(len(texts))
        if len(texts) > 2:
            raise MemoryError
        return judge(texts)

    box = pellucid.blackbox(small, kind="text", labels=["a", "b"])
    found = pellucid.explain(box, ["good"] * 4, method="random", target="b")
    assert [one.value for one in found] == [2.0] * 4
    assert max(seen[1:]) == 2


def test_no_more_inputs_at_once_than_the_function_takes():
    seen = []

    def counting(texts):
        seen.append(len(texts))
        return judge(texts)

    box = pellucid.blackbox(counting, kind="text", labels=["a", "b"], largest_batch=2)
    pellucid.explain(box, ["a good fine film"] * 5, method="occlusion", batch_size=64)
    assert max(seen) == 2


@pytest.mark.parametrize(
    "options",
    [
        {"function": 5},
        {"kind": "video"},
        {"kind": "image"},  # no size
        {"kind": "image", "size": (0, 8)},
        {"kind": "image", "size": (8, 8), "split": 9},  # no patch fits
        {"kind": "image", "size": (8, 8), "split": 0},
        {"kind": "image", "size": (8, 8), "split": -4},
        {"kind": "text", "split": 3},
        {"kind": "text", "split": "letters"},
        {"kind": "text", "size": (8, 8)},
        {"kind": "text", "mask": 3},
        {"kind": "text", "takes": "tokens"},
        {"kind": "text", "takes": "ids"},  # of which tokenizer?
        {"kind": "image", "size": (8, 8), "takes": "ids"},
        {"kind": "text", "labels": []},
        {"kind": "text", "labels": [0, 1]},
        {"kind": "text", "gives": "scores"},
        {"kind": "text", "gives": "log_odds", "labels": ["a", "b", "c"]},
        {"kind": "text", "largest_batch": 0},
    ],
    ids=str,
)
def test_black_boxes_that_cannot_be(options):
    settings = {"function": judge, "kind": "text", "labels": ["a", "b"]} | options
    with pytest.raises(ArgumentError):
        pellucid.blackbox(**settings)


# ---- splitting -----------------------------------------------------------------------------------


def test_split_by_a_function():
    box = pellucid.blackbox(
        judge, kind="text", labels=["a", "b"], split=lambda text: text.split(". ")
    )
    found = pellucid.explain(box, "A film. A good one. The end", method="random")
    assert [s.text for s in found.segments] == ["A film", "A good one", "The end"]
    assert [s.span for s in found.segments] == [(0, 6), (8, 18), (20, 27)]


@pytest.mark.parametrize(
    ("split", "text", "pieces"),
    [
        ("words", "It isn't bad.", ["It", "isn't", "bad", "."]),
        ("characters", "ab c.", ["a", "b", "c", "."]),
        ("characters", "e\u0301t 👩\u200d👧 🇫🇷🇩🇪", ["e\u0301", "t", "👩\u200d👧", "🇫🇷", "🇩🇪"]),
        ("sentences", "One.  Two!? three", ["One.", "Two!?", "three"]),
        ("sentences", 'He said "no." Then 3.5 left…', ['He said "no."', "Then 3.5 left…"]),
        ("sentences", "好看。不好看!\nline", ["好看。", "不好看!", "line"]),
    ],
)
def test_splits_by_name(split, text, pieces):
    box = pellucid.blackbox(judge, kind="text", labels=["a", "b"], split=split)
    found = pellucid.explain(box, text, method="random")
    assert [s.text for s in found.segments] == pieces
    assert [text[slice(*s.span)] for s in found.segments] == pieces


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama"])
def test_split_by_a_tokenizer(tiny, family):
    tokenizer = tiny(family).reader.tokenizer
    box = pellucid.blackbox(judge, kind="text", labels=["a", "b"], split=tokenizer, gives="logits")
    text = "the film is fine"
    found = pellucid.explain(box, text, method="occlusion")
    model = tiny(family).read(text, pellucid.Target())
    own = [s.span for s in model.segments if s.role == "content"]
    assert [s.span for s in found.segments] == own


def test_a_function_of_ids(tiny):
    """It gets what the tokenizer makes of the text, without padding, and ids fewer."""
    tokenizer = tiny("bert").reader.tokenizer
    seen = []

    def function(rows):
        seen.extend(rows)
        return [[0.0, float(sum(row))] for row in rows]

    box = pellucid.blackbox(
        function, kind="text", labels=["a", "b"], takes="ids", split=tokenizer, gives="logits"
    )
    texts = ["the film is fine", "bad"]
    target = pellucid.Target.logit("b")
    found = pellucid.explain(box, texts, method="occlusion", target=target)
    for text, one in zip(texts, found, strict=True):
        ids = tokenizer(text)["input_ids"]
        assert ids in seen
        assert all(isinstance(token, int) for token in seen[0])
        assert one.value == sum(ids)
        assert one.scores.tolist() == [0.0, *ids[1:-1], 0.0]
        assert [s.role for s in one.segments][:1] == ["special"]
    masked = pellucid.explain(box, texts[0], method="occlusion", target=target, by="mask")
    ids = tokenizer(texts[0])["input_ids"]
    assert masked.scores.tolist() == [0.0, *[i - tokenizer.mask_token_id for i in ids[1:-1]], 0.0]


def test_a_function_of_ids_answers_as_the_model_does(tiny, tmp_path):
    """The same model behind a function gives the same explanation, also from a file."""
    model = tiny("bert")

    def function(rows):
        with torch.no_grad():
            return [model.module(torch.tensor([row])).logits[0] for row in rows]

    box = pellucid.blackbox(
        function,
        kind="text",
        labels=model.labels,
        takes="ids",
        split=model.reader.tokenizer,
        gives="logits",
    )
    for text in ("the film is fine", ("the film", "is fine")):
        ours = pellucid.explain(box, text, method="occlusion", target=1)
        theirs = pellucid.explain(model, text, method="occlusion", target=1)
        torch.testing.assert_close(ours.scores, theirs.scores.double(), rtol=1e-4, atol=1e-6)
        assert ours.segments == theirs.segments
    ours.save(tmp_path / "one.pellucid")
    again = pellucid.Explanation.load(tmp_path / "one.pellucid")
    first, second = (pellucid.measure(box, e, metric="text_deletion") for e in (ours, again))
    assert first.curve == second.curve


@pytest.mark.parametrize(
    "split",
    [
        lambda text: ["film", "a"],  # not in their order
        lambda text: ["FILM"],
        lambda text: ["a", "", "film"],
        lambda text: [],
        lambda text: [7],
        lambda text: None,
    ],
)
def test_splits_that_are_no_pieces_of_the_text(split):
    box = pellucid.blackbox(judge, kind="text", labels=["a", "b"], split=split)
    with pytest.raises(InputError):
        pellucid.explain(box, "a film", method="random")


@pytest.mark.parametrize("text", ["", "  \n", "\u200b", "\u200f\u200e", "\x00"])
def test_texts_without_a_word(box, text):
    with pytest.raises(InputError):
        pellucid.explain(box, text, method="random")


# ---- leaving words out ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "dropped", "left"),
    [
        ("a good film", {1}, "a film"),
        ("a good film", {0}, "good film"),
        ("a good film", {2}, "a good"),
        ("a good film", {0, 1}, "film"),
        ("a good film", {0, 1, 2}, ""),
        ("a  good\n\tfilm", set(), "a good film"),
        ("good, not bad.", {1}, "good not bad."),
        ("good, not bad.", {2}, "good, bad."),
        ("good, not bad.", {0}, ", not bad."),
        ("good, not bad.", {4}, "good, not bad"),
        ("good, not bad.", {3}, "good, not ."),
        ("isn't it", {0}, "it"),
        ("很好看", {1}, "很看"),
        ("(very) good", {1}, "() good"),
    ],
)
def test_words_left_out_of_a_text(box, text, dropped, left):
    batch = box.encode([text], pellucid.Target())
    keep = torch.tensor([[i not in dropped for i in range(len(batch.items[0].segments))]])
    fewer = box.keep(batch, keep).items[0]
    assert fewer.parts == (left,)
    assert all(left[slice(*s.span)] == s.text for s in fewer.segments)
    kept = [s.text for i, s in enumerate(batch.items[0].segments) if i not in dropped]
    assert [s.text for s in fewer.segments] == kept


def test_words_left_out_of_a_pair_and_a_batch(box):
    batch = box.encode([("a good film", "not bad"), "fine"], pellucid.Target())
    keep = torch.tensor([[True, False, True, False, True], [True, True, True, True, True]])
    first, second = box.keep(batch, keep).items
    assert first.parts == ("a film", "bad")
    assert second.parts == ("fine",)
    assert [s.part for s in first.segments] == [0, 0, 1]


@pytest.mark.parametrize(
    ("text", "dropped", "left"),
    [
        ("a  good film.", {1}, "a  [?] film."),
        ("(very) good", {1, 3}, "([?]) [?]"),
        ("a b", {0, 1}, "[?] [?]"),
        ("很好看", {1}, "很[?]看"),
        (("a film", "not bad"), {1, 2}, ("a [?]", "[?] bad")),
    ],
)
def test_a_mask_in_the_place_of_words(text, dropped, left):
    box = pellucid.blackbox(judge, kind="text", labels=["a", "b"], mask="[?]")
    batch = box.encode([text], pellucid.Target())
    keep = torch.tensor([[i not in dropped for i in range(len(batch.items[0].segments))]])
    (changed,) = box.without(batch, keep, "mask").items
    assert changed.parts == (left if isinstance(left, tuple) else (left,))
    assert all(changed.parts[s.part][slice(*s.span)] == s.text for s in changed.segments)


@pytest.mark.parametrize("by", ["mask", "unk", "pad"])
def test_a_function_of_strings_has_no_tokens_to_put_in(box, by):
    with pytest.raises(ArgumentError, match=f"no {by} token"):
        pellucid.explain(box, "a good film", method="occlusion", by=by)


# ---- methods and metrics -------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["gradient_x_input", "rollout"])
def test_methods_that_look_inside_are_refused(box, lamp, method):
    for model, raw in ((box, "a good film"), (lamp, np.zeros((8, 12, 3), np.uint8))):
        with pytest.raises(UnsupportedCombination) as caught:
            pellucid.explain(model, raw, method=method)
        message = str(caught.value)
        assert method in message
        assert model.name in message
        assert "a function gives scores only" in message


def test_the_list_says_what_fits(box):
    fits = {entry.name: entry.fits for entry in pellucid.list_methods(box)}
    assert fits["random"]
    assert not fits["rollout"]
    assert not fits["gradient_x_input"]
    assert set(fits) == set(METHODS)
    metrics = {entry.name: entry.fits for entry in pellucid.list_metrics(box)}
    assert metrics["text_deletion"]
    assert not metrics["deletion"]


def test_random_scores_depend_on_seed_and_input_alone(box):
    texts = ["a good film", "not a bad film at all", "a good film"]
    together = pellucid.explain(box, texts, method="random", seed=3)
    assert torch.equal(together[0].scores, together[2].scores)
    for text, one in zip(texts, together, strict=True):
        again = pellucid.explain(box, text, method="random", seed=3)
        assert torch.equal(one.scores, again.scores)
        other = pellucid.explain(box, text, method="random", seed=4)
        assert not torch.equal(one.scores, other.scores)


def test_text_deletion_by_hand(box):
    """One word kept, then two, in the order of the lowest score: 1 - mean probability."""

    def known(case):
        return torch.tensor([[3.0, 1.0, 2.0]])  # good, not, bad

    found = pellucid.explain(box, "good not bad", method=known, target="positive")
    measured = pellucid.measure(box, found, metric="text_deletion", grid="tokens:1")
    # kept: "not", then "not bad", then "good not bad"
    curve = [sigmoid(-1), sigmoid(-4), sigmoid(-2)]
    assert measured.curve == pytest.approx(curve)
    assert measured.value == pytest.approx(1 - sum(curve) / 3)
    assert measured.label == "positive"


def test_image_deletion_by_hand(lamp):
    """Of a white picture, each third that turns black takes a third of the brightness."""

    def columns(case):
        return torch.tensor([[3.0, 2.0, 1.0] * 2])

    white = np.full((8, 12, 3), 255, np.uint8)
    found = pellucid.explain(lamp, white, method=columns, target="light")
    assert found.patches().tolist() == [[3, 2, 1]] * 2
    measured = pellucid.measure(lamp, found, metric="deletion", steps=3)
    curve = [sigmoid(10 * (1 - step / 3)) for step in range(4)]
    assert measured.curve == pytest.approx(curve)
    assert measured.value == pytest.approx(np.trapezoid(curve) / 3)


def test_pixels_without_patches():
    model = pellucid.blackbox(brightness, kind="image", labels=["dark", "light"], size=(4, 6))
    found = pellucid.explain(model, np.full((4, 6, 3), 99, np.uint8), method="random")
    assert found.scores.shape == (4, 6)
    assert found.segments == ()
    measured = pellucid.measure(model, found, metric="deletion", steps=2)
    assert 0 <= measured.value <= 1


def test_a_function_in_the_place_of_a_method(box):
    """It may read the batch and leave words out, as any perturbation method does."""

    def leave_one_out(case):
        scores = torch.zeros(case.mask.shape, dtype=torch.float64)
        for token in range(case.mask.shape[1]):
            keep = case.mask.clone()
            keep[:, token] = False
            scores[:, token] = case.value - case.drop(keep)
        return scores

    texts = ["good not bad", "a fine film"]
    for text, found in zip(
        texts, pellucid.explain(box, texts, method=leave_one_out, target="positive"), strict=True
    ):
        assert found.scores.tolist() == [WEIGHTS.get(word, 0.0) for word in text.split()]
        assert found.provenance.forwards == 4
