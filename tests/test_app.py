"""What the app does, without a page: models, people at work, explanations, walks, questions."""

import os
import sys
import threading
import time

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import pellucid
from pellucid import ArgumentError, InputError, ModelError
from pellucid._target import Target
from pellucid._types import Picture
from pellucid.adapters.image import patch_segments
from pellucid.app import compare, explain, explore, forecasts, what_if
from pellucid.app.desk import raw_of, told
from pellucid.app.launch import _environment
from pellucid.app.models import Served, Shelf
from pellucid.app.picking import drawn, enlargement, patch_at, pieces, toggled
from pellucid.app.pieces import framed, message, table
from pellucid.app.session import Explained, Session, Stopped, alone
from pellucid.cli import main
from pellucid.explorer.explore import Halt
from pellucid.explorer.state import Outcome
from pellucid.metrics import METRICS
from pellucid.models import sample_images
from pellucid.testing.contract import assert_unchanged, fingerprint
from pellucid.testing.tiny import build, sample_inputs

TEXT = "not very good , but it was fine at all"
MARKUP = "<img src=x onerror=alert(1)>"


def explained(adapter, raw, *methods, **options):
    found = tuple(pellucid.explain(adapter, raw, method=name, **options) for name in methods)
    return Explained(adapter.name, raw, found)


# ---- models --------------------------------------------------------------------------------------


def counting(loaded):
    def load(name):
        loaded.append(name)
        time.sleep(0.05)
        return build("bert")

    return load


def test_a_model_is_loaded_once_whoever_asks():
    loaded: list[str] = []
    shelf = Shelf(["a", "b"], counting(loaded), others=False)
    found = []
    people = [threading.Thread(target=lambda: found.append(shelf.get("a"))) for _ in range(4)]
    for one in people:
        one.start()
    for one in people:
        one.join()
    assert loaded == ["a"]
    assert len(set(map(id, found))) == 1


def test_few_models_are_kept_and_those_asked_for_last():
    loaded: list[str] = []
    shelf = Shelf(["0"], counting(loaded), others=True)
    for name in ("0", "1", "2", "3", "0", "4", "0", "1"):
        shelf.get(name)
    assert loaded == ["0", "1", "2", "3", "4", "1"]  # "1" had to go for "4"; "0" never


def test_names_that_are_not_offered_are_refused_without_looking_for_them():
    loaded: list[str] = []
    shelf = Shelf(["pellucid/reviews-bert"], counting(loaded), others=False)
    for name in ("/etc", "../models", "someone/model", "pellucid/digits-vit"):
        with pytest.raises(ArgumentError, match="one of: pellucid/reviews-bert"):
            shelf.get(name)
    for nothing in ("", "  ", None):
        with pytest.raises(ArgumentError, match="no model is chosen"):
            shelf.get(nothing)
    assert loaded == []


def test_a_model_that_cannot_be_loaded_is_asked_for_again():
    answers = [ModelError("no"), build("bert")]

    def load(_):
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    shelf = Shelf(["a"], load, others=False)
    with pytest.raises(ModelError):
        shelf.get("a")
    assert shelf.get("a").adapter.name == "bert"


# ---- people at work ------------------------------------------------------------------------------


def test_one_person_at_a_time_has_the_model():
    served, order = Served(build("bert")), []

    def work(name):
        with alone(served, threading.Event()):
            order.append(("in", name))
            time.sleep(0.05)
            order.append(("out", name))

    people = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for one in people:
        one.start()
    for one in people:
        one.join()
    assert [what for what, _ in order] == ["in", "out"] * 3
    assert all(a[1] == b[1] for a, b in zip(order[::2], order[1::2], strict=True))


def test_waiting_can_be_given_up():
    served, stop = Served(build("bert")), threading.Event()
    threading.Timer(0.1, stop.set).start()
    with alone(served, threading.Event()), pytest.raises(Stopped), alone(served, stop):
        pytest.fail("two people had the model")


@pytest.mark.parametrize("method", ["occlusion", "integrated_gradients", "tis"])
def test_a_method_is_stopped_before_its_next_pass_and_leaves_nothing(method):
    served, stop, passes = Served(build("bert")), threading.Event(), []
    _ = served.adapter.offers
    before = fingerprint(served.adapter)

    def count(number):
        passes.append(number)
        if number == 3:
            stop.set()

    with pytest.raises(Stopped), alone(served, stop, count) as adapter:
        pellucid.explain(adapter, TEXT, method=method, batch_size=1)
    assert passes == [1, 2, 3]
    assert_unchanged(before, fingerprint(served.adapter), "by a method that was stopped")
    assert not served.lock.locked()
    with alone(served, threading.Event()) as adapter:
        again = pellucid.explain(adapter, TEXT, method=method)
    assert torch.equal(again.scores, pellucid.explain(build("bert"), TEXT, method=method).scores)


def test_what_goes_wrong_is_told_and_never_traced(caplog):
    def stopped():
        raise Stopped

    def wrong():
        raise InputError(f"the input {MARKUP}\n  got:      x")

    def broken():
        raise ZeroDivisionError(MARKUP)
        yield

    found = [next(told(work)) for work in (stopped, wrong, broken)]
    assert "Stopped." in found[0]
    assert "got:" in found[1]
    assert "ZeroDivisionError" in found[2]
    for html in found:
        assert MARKUP not in html
        assert "Traceback" not in html
    assert "ZeroDivisionError" in caplog.text  # for whoever runs the app


def test_nobody_begins_with_the_session_of_another():
    from copy import deepcopy

    first = Session()
    first.stop.set()
    first.explained = explained(build("bert"), TEXT, "random")
    second = deepcopy(first)
    assert second is not first
    assert second.explained is None
    assert not second.stop.is_set()


def test_text_or_image_is_what_the_model_reads(tiny):
    assert raw_of(tiny("bert"), TEXT, "x.png") == TEXT
    assert raw_of(tiny("vit"), TEXT, "x.png") == "x.png"
    with pytest.raises(InputError, match="no image"):
        raw_of(tiny("vit"), TEXT, None)


# ---- explanations --------------------------------------------------------------------------------


def test_one_method_that_fails_does_not_take_the_others_with_it(tiny):
    found = list(explain.explanations(tiny("swin"), sample_inputs(tiny("swin"))[0],
                                      ["gradient", "rollout", "random"]))  # fmt: skip
    assert [type(one).__name__ for one in found] == ["Explanation", "Failed", "Explanation"]
    html = explain.shown(found)
    assert "iframe" in html
    assert "rollout" in html
    assert 'class="problem"' in html


def test_a_method_is_offered_or_refused_with_its_reason(tiny):
    for family in ("bert", "vit", "swin"):
        adapter = tiny(family)
        listing = pellucid.list_methods(adapter)
        assert explain.offered(adapter) == [one.name for one in listing if one.fits]
        html = explain.refused(adapter)
        for one in listing:
            assert (f"<td>{one.name}</td>" in html) == (not one.fits)


def test_costs_are_those_of_the_provenance(tiny):
    found = explained(tiny("bert"), TEXT, "random", "occlusion").found
    html = explain.costs(found)
    for one in found:
        assert f"<td>{one.provenance.forwards}</td><td>{one.provenance.backwards}</td>" in html


def test_no_method_and_no_metric_is_said(tiny):
    made = explained(tiny("bert"), TEXT, "random")
    with pytest.raises(ArgumentError, match="no method"):
        next(explain.explanations(tiny("bert"), TEXT, []))
    with pytest.raises(ArgumentError, match="no metric"):
        next(compare.compared(tiny("bert"), made, []))


def test_classes_without_names_have_numbers(tiny):
    assert explain.classes(tiny("bert")) == [("LABEL_0", 0), ("LABEL_1", 1), ("LABEL_2", 2)]
    assert explain.classes(tiny("bert-mlm")) == []


# ---- comparing -----------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["bert", "vit"])
def test_the_table_holds_what_measure_says(family, tiny):
    adapter = tiny(family)
    raw = sample_inputs(adapter)[0]
    made = explained(adapter, raw, "gradient_x_input", "rollout")
    names = [spec.name for spec in compare.usable(adapter)][:2]
    *_, whole = compare.compared(adapter, made, names)
    assert whole.methods == ("gradient_x_input", "rollout", "random")
    assert [spec.name for spec in whole.metrics] == names
    baseline = pellucid.explain(adapter, raw, method="random", target=made.found[0].index)
    for one, row in zip((*made.found, baseline), whole.values, strict=True):
        expected = [pellucid.measure(adapter, one, metric=name).value for name in names]
        assert list(row) == expected


def test_random_scores_are_not_shown_twice(tiny):
    made = explained(tiny("bert"), TEXT, "random", "gradient")
    *_, whole = compare.compared(tiny("bert"), made, ["text_deletion"])
    assert whole.methods == ("random", "gradient")


def test_metrics_that_need_a_truth_are_not_offered(tiny):
    for family in ("bert", "vit"):
        assert all(spec.truth is None for spec in compare.usable(tiny(family)))
    assert METRICS["pointing_game"] not in compare.usable(tiny("vit"))


def test_the_best_of_a_column_follows_its_direction():
    specs = (METRICS["deletion"], METRICS["insertion"])
    values = ((0.1, 0.1), (0.3, 0.7), (0.1, 0.7), (None, None))
    found = compare.Comparison(("a", "b", "c", "d"), specs, values, ())
    assert found.best(0) == {0, 2}  # lower is better
    assert found.best(1) == {1, 2}
    assert compare.Comparison(("a",), specs, ((0.1, 0.2),), ()).best(0) == frozenset()


def test_an_input_that_was_not_explained_says_what_to_press(tiny):
    session = Session()
    for _ in range(2):
        with pytest.raises(ArgumentError, match="press Explain"):
            session.explained_for("bert", TEXT)
        session.explained = explained(tiny("bert"), "another text", "random")
    session.explained = explained(tiny("bert"), TEXT, "random")
    assert session.explained_for("bert", TEXT) is session.explained
    with pytest.raises(ArgumentError):
        session.explained_for("another model", TEXT)


# ---- walks ---------------------------------------------------------------------------------------


def walk_of(family, tmp_path, steps=200, **changes):
    options = explore.options_of("stay", steps, "embedding", False, frozenset()) | changes
    return explore.begun(family, sample_inputs(build(family))[0], options, tmp_path)


@pytest.mark.parametrize("family", ["bert", "vit"])
def test_a_paused_walk_goes_on_to_the_same_bits(family, tmp_path):
    adapter, session = build(family, dtype=torch.float64), Session()
    walk = walk_of(family, tmp_path)

    def pause(done, _):
        if done == 90:
            session.pause.set()

    part = explore.walked(adapter, session, walk, pause)
    assert part.steps == 92  # the next point that is kept
    assert part.outcome == Outcome.HALTED.value
    assert not part.completed
    assert session.walk is walk
    session.pause.clear()
    whole = explore.walked(adapter, session, walk, lambda *_: None)
    expected = pellucid.explore(adapter, walk.raw, **walk.options)
    assert torch.equal(whole.points, expected.points)
    for name in expected.series:
        assert torch.equal(whole.series[name], expected.series[name]), name
        assert torch.equal(part.series[name], expected.series[name][:93]), name
    assert session.walk is None
    assert not list(tmp_path.iterdir())


def test_a_walk_that_is_stopped_is_gone(tmp_path):
    session = Session()

    def stop(done, _):
        if done == 50:
            session.stop.set()

    with pytest.raises(Stopped):
        explore.walked(build("vit"), session, walk_of("vit", tmp_path), stop)
    assert session.walk is None
    assert not list(tmp_path.iterdir())


def test_a_person_who_leaves_leaves_no_files(tmp_path):
    session = Session()
    session.pause.set()
    explore.walked(build("vit"), session, walk_of("vit", tmp_path), lambda *_: None)
    assert list(tmp_path.iterdir())
    session.leave()
    assert session.stop.is_set()
    assert not list(tmp_path.iterdir())


def test_walks_that_fail_leave_no_files(tmp_path):
    session = Session()
    walk = walk_of("vit", tmp_path, space="nowhere")
    with pytest.raises(ArgumentError):
        explore.walked(build("vit"), session, walk, lambda *_: None)
    assert session.walk is None
    assert not list(tmp_path.iterdir())


def test_halt_ends_a_call_of_several_batches_where_it_is(tmp_path):
    """Those that had begun are returned; the same call goes on with all of them."""
    adapter = build("vit", dtype=torch.float64)
    raw = sample_inputs(adapter)[:2]
    options = {"steps": 6, "save_every": 2, "batch_size": 1, "checkpoint": tmp_path / "walk"}

    def halt(done, _):
        if done == 4:
            raise Halt

    (part,) = pellucid.explore(adapter, raw, progress=halt, **options)
    assert part.steps == 4
    whole = pellucid.explore(adapter, raw, **options)
    expected = pellucid.explore(adapter, raw, **options | {"checkpoint": None})
    for one, other in zip(whole, expected, strict=True):
        assert torch.equal(one.points, other.points)
    assert not list(tmp_path.iterdir())


def test_a_walk_moves_what_was_chosen(tiny):
    options = explore.options_of(1, 20, "embedding", True, frozenset({3, 2}))
    assert options["tokens"] == [2, 3]
    assert options["within"] == "bounds"
    assert explore.options_of("stay", 20, "pixels", True, frozenset())["within"] is None
    found = pellucid.explore(tiny("bert"), TEXT, **options)
    assert found.tokens == (2, 3)
    html = explore.shown(found, paused=True)
    assert "Paused after" in html
    assert "sandbox" in html


@pytest.mark.parametrize("family", ["bert", "vit"])
def test_spaces_that_are_offered_can_be_walked_and_decoded(family, tiny):
    adapter = tiny(family)
    for space in explore.SPACES[adapter.kind]:
        options = explore.options_of("stay", 4, space, False, frozenset())
        pellucid.explore(adapter, sample_inputs(adapter)[0], **options).decode()


# ---- what if -------------------------------------------------------------------------------------


class LinearPixels(nn.Module):
    """Logits that are linear in the pixels: an attribution's forecast is then exact."""

    def __init__(self):
        super().__init__()
        self.patch_embed = nn.Conv2d(3, 4, 8, 8)
        self.head = nn.Linear(3 * 16 * 16, 3)

    def forward(self, pixels):
        return self.head(pixels.flatten(1))


@pytest.fixture(scope="module")
def linear():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = LinearPixels().eval().double()
    black_is_zero = pellucid.Resize((16, 16), mean=(0.0,) * 3, std=(1.0,) * 3)
    return pellucid.adapt(module, black_is_zero, labels=["x", "y", "z"])


def gridded(adapter, raw):
    """A picture with patches, whatever the model has."""
    item = adapter.read(raw, Target.predicted())
    return Picture(item.view, patch_segments((2, 2), (8, 8), ["[CLS]"]), (2, 2))


@pytest.mark.parametrize("method", ["gradient_x_input", "integrated_gradients"])
def test_sums_foretell_a_linear_model_exactly(method, linear):
    """Blackening is exactly what is taken away where black is zero."""
    raw = np.random.default_rng(0).integers(0, 256, (16, 16, 3), dtype=np.uint8)
    one = pellucid.explain(linear, raw, method=method, target=1)
    item = gridded(linear, raw)
    one = pellucid.Explanation(**{**vars(one), "item": item})
    for chosen in (frozenset({1}), frozenset({2, 3}), frozenset({1, 2, 3, 4})):
        changed = what_if.without(linear, item, chosen, "delete")
        (forecast,) = forecasts.answered(linear, changed, [one], chosen).forecasts
        assert forecast.explains == "logit of y"
        assert forecast.before == pytest.approx(one.value)
        assert forecast.foretold == pytest.approx(forecast.found, abs=1e-5)


@pytest.mark.parametrize("family", ["bert", "roberta", "gpt2", "bert-mlm", "gpt2-lm"])
def test_occlusion_foretells_single_tokens_exactly(family, tiny):
    """By its definition: a token's score is what the probability loses without it."""
    adapter = tiny(family)
    raw = sample_inputs(adapter)[0]
    one = pellucid.explain(adapter, raw, method="occlusion")
    content = [i for i, s in enumerate(one.segments) if s.role == "content"]
    for token in content[:-1]:  # the last of a language model is read
        if one.segments[token].text == "[MASK]":
            continue
        chosen = frozenset({token})
        changed = what_if.without(adapter, one.item, chosen, "delete")
        (forecast,) = forecasts.answered(adapter, changed, [one], chosen).forecasts
        assert forecast.foretold == pytest.approx(forecast.found, abs=1e-5)
        assert forecast.explains.startswith("probability of ")


def test_predictions_after_are_those_of_the_changed_text(tiny):
    adapter = tiny("bert")
    one = pellucid.explain(adapter, "the film is fine", method="random")
    fine = next(p for p in pieces(one.item) if p.text == "fine")
    changed = what_if.instead_of(adapter, one.item, frozenset(fine.tokens), "very good")
    answer = forecasts.answered(adapter, changed, [one], None)
    expected = pellucid.explain(adapter, "the film is very good", method="random", target=one.index)
    assert answer.after == pytest.approx(expected.prediction)
    assert answer.before == one.prediction
    assert answer.forecasts[0].found == pytest.approx(expected.value)
    assert answer.forecasts[0].foretold is None
    assert "no score" in answer.forecasts[0].why_not
    gone = what_if.without(adapter, one.item, frozenset(fine.tokens), "delete")
    shorter = pellucid.explain(adapter, "the film is", method="random")
    assert forecasts.answered(adapter, gone, [one], frozenset(fine.tokens)).after == pytest.approx(
        shorter.prediction
    )


def test_scores_without_a_direction_foretell_nothing(tiny):
    one = pellucid.explain(tiny("bert"), TEXT, method="rollout")
    changed = what_if.without(tiny("bert"), one.item, frozenset({1}), "mask")
    (forecast,) = forecasts.answered(tiny("bert"), changed, [one], frozenset({1})).forecasts
    assert forecast.foretold is None
    assert "not in which direction" in forecast.why_not
    assert "not in which direction" in what_if.shown(
        forecasts.answered(tiny("bert"), changed, [one], frozenset({1}))
    )


def test_a_slalom_is_asked_itself(tiny):
    one = pellucid.explain(tiny("bert"), TEXT, method="slalom", samples=100)
    words = [p.tokens for p in pieces(one.item) if p.tokens]
    for chosen in (frozenset(words[0]), frozenset(words[1] + words[3])):
        changed = what_if.without(tiny("bert"), one.item, chosen, "delete")
        (forecast,) = forecasts.answered(tiny("bert"), changed, [one], chosen).forecasts
        assert forecast.foretold == one.predict(sorted(chosen))
        assert forecast.foretold != pytest.approx(one.value - forecasts.removed(one, chosen))
    words = pellucid.explain(tiny("bert"), "slower plot", method="slalom", samples=20, unit="word")
    first = next(p.tokens for p in pieces(words.item) if len(p.tokens) > 1)
    half = frozenset(first[:1])
    changed = what_if.without(tiny("bert"), words.item, half, "delete")
    (forecast,) = forecasts.answered(tiny("bert"), changed, [words], half).forecasts
    assert forecast.foretold is None
    assert "together" in forecast.why_not


def test_blackened_patches_are_black_and_nothing_else_is(tiny):
    raw = np.full((32, 48, 3), 200, np.uint8)
    item = tiny("vit").read(raw, Target.predicted())
    chosen = frozenset({2, 5})
    found = what_if.blackened(item, chosen)
    black = np.zeros((32, 48), bool)
    for number in chosen:
        top, left, bottom, right = item.segments[number].box
        black[top:bottom, left:right] = True
    assert (found.view[black] == 0).all()
    assert np.array_equal(found.view[~black], item.view[~black])
    assert (item.view != 0).any()


def test_scores_of_pixels_and_of_patches_are_summed_alike(tiny):
    raw = sample_inputs(tiny("vit"))[0]
    pixels = pellucid.explain(tiny("vit"), raw, method="gradient_x_input")
    patches = pellucid.explain(tiny("vit"), raw, method="attcat")
    assert pixels.scores.dim() == 2
    assert patches.scores.dim() == 1
    everything = frozenset(i for i, s in enumerate(pixels.segments) if s.box is not None)
    assert forecasts.removed(pixels, everything) == pytest.approx(
        float(pixels.scores.sum()), abs=1e-4
    )
    one, two = frozenset({1}), frozenset({4, 7})
    for found in (pixels, patches):
        assert forecasts.removed(found, one | two) == pytest.approx(
            forecasts.removed(found, one) + forecasts.removed(found, two), abs=1e-5
        )


def test_nothing_chosen_is_said(tiny):
    item = tiny("bert").read(TEXT, Target.predicted())
    with pytest.raises(ArgumentError, match="click on a word"):
        what_if.without(tiny("bert"), item, frozenset(), "delete")
    with pytest.raises(ArgumentError, match="click on a word"):
        what_if.instead_of(tiny("bert"), item, frozenset(), "x")


def test_words_become_what_the_tokenizer_has(tiny):
    assert ("[MASK]", "mask") in what_if.removals(tiny("bert"))
    assert {by for _, by in what_if.removals(tiny("gpt2"))} == {"delete", "pad"}
    item = tiny("bert").read(TEXT, Target.predicted())
    for _, by in what_if.removals(tiny("bert")):
        what_if.without(tiny("bert"), item, frozenset({2}), by)


# ---- clicking ------------------------------------------------------------------------------------


@given(text=st.text(alphabet="ab ,.'é—漢🙂\n", min_size=1, max_size=40))
def test_pieces_are_the_whole_text_and_hold_every_token_once(text):
    adapter = ADAPTERS["gpt2"]
    try:
        item = adapter.read(text, Target.predicted())
    except InputError:
        return
    found = pieces(item)
    tokens = [token for piece in found for token in piece.tokens]
    assert "".join(piece.text for piece in found) == text
    assert sorted(tokens) == [i for i, s in enumerate(item.segments) if s.role == "content"]


ADAPTERS = {"gpt2": build("gpt2")}


@given(st.frozensets(st.integers(0, 5)), st.lists(st.integers(0, 5), min_size=1))
def test_a_second_click_takes_the_first_one_back(chosen, tokens):
    once = toggled(chosen, tokens)
    assert once >= set(tokens) or not once & set(tokens)
    assert toggled(toggled(once, tokens), tokens) == once


@pytest.mark.parametrize("size", [(28, 28), (32, 48), (224, 224), (16, 600)])
def test_a_click_finds_the_patch_under_it(size):
    height, width = size
    grid = (height // 8, width // 8)
    segments = patch_segments(grid, (8, 8), ["[CLS]"])
    picture = Picture(np.zeros((height, width, 3), np.uint8), segments, grid)
    times = enlargement(picture)
    for number, segment in enumerate(segments):
        if segment.box is not None:
            top, left, bottom, right = segment.box
            for y, x in ((top, left), (bottom - 0.1, right - 0.1)):
                assert patch_at(picture, x * times, y * times) == (number,)
    assert patch_at(picture, 1e6, 1e6) == ()
    image = drawn(picture, frozenset({1}))
    assert image.size == (width * times, height * times)
    assert max(image.size) >= 400
    assert image.getpixel((times * 4, times * 4)) != image.getpixel((times * 12, times * 4))


def test_a_grey_picture_is_drawn(digits):
    item = digits.read(str(sample_images()[0]), Target.predicted())
    assert drawn(item, frozenset({1})).mode == "RGB"


# ---- what is shown -------------------------------------------------------------------------------


def test_nothing_that_is_shown_becomes_markup():
    error = ArgumentError(f"{MARKUP}\n  got:      {MARKUP}")
    for html in (message(error), table(MARKUP, [MARKUP], [[MARKUP]]), framed(MARKUP, MARKUP)):
        assert "<img" not in html
        assert "&lt;img" in html


def test_a_frame_is_of_an_origin_of_its_own():
    html = framed("<p>", "report")
    assert 'sandbox="allow-scripts"' in html
    assert "allow-same-origin" not in html


# ---- the command ---------------------------------------------------------------------------------


def test_without_gradio_the_command_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "gradio", None)
    monkeypatch.setattr(sys, "argv", ["pellucid", "app"])
    monkeypatch.setattr("signal.signal", lambda *_: None)
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert "pip install 'pellucid[app]'" in capsys.readouterr().err


@pytest.mark.parametrize("port", ["0", "-1"])
def test_ports_that_cannot_be(port, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["pellucid", "app", "--port", port])
    monkeypatch.setattr("signal.signal", lambda *_: None)
    with pytest.raises(SystemExit):
        main()
    assert f"port={port}" in capsys.readouterr().err


def test_the_environment_is_as_before(monkeypatch, tmp_path):
    monkeypatch.setenv("GRADIO_SHARE", "mine")
    before = dict(os.environ)
    with _environment(str(tmp_path)):
        assert os.environ["GRADIO_ANALYTICS_ENABLED"] == "False"
        assert os.environ["GRADIO_SHARE"] == "False"
    assert dict(os.environ) == before
