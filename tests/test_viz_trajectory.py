"""The look of walks: what is drawn is what was walked, at every stop of the slider."""

import base64
import hashlib
import io
import re
import shutil
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from test_viz import CHROMIUM, HOSTILE, RUNS, Reader, browse, contrast, of_text, provenance

import pellucid
from pellucid import ArgumentError, InputError
from pellucid._decoded import Decoded
from pellucid._errors import explain_error
from pellucid._trajectory import SERIES, Trajectory
from pellucid._types import Picture, Segment, Text
from pellucid._words import word_spans
from pellucid.viz import fragment, page
from pellucid.viz.chart import Axis, apart
from pellucid.viz.course import agreement, decoded_said, point_said, result, title
from pellucid.viz.curves import Curve, main_classes, thinned
from pellucid.viz.frames import differences
from pellucid.viz.terminal_walk import print_walk, sparkline
from pellucid.viz.walk import Walk
from pellucid.viz.wording import number

SHADES = 31  # of each hue of a difference

# ---- walks made by hand --------------------------------------------------------------------------


def text_item(*parts):
    segments = [Segment("[CLS]", "special")]
    for part, text in enumerate(parts):
        segments += [Segment(text[a:b], span=(a, b), part=part) for a, b in word_spans(text)]
        segments.append(Segment("[SEP]", "special"))
    return Text(parts, tuple(segments))


def image_item(size=(28, 28), channels=1):
    generator = np.random.default_rng(0)
    view = generator.integers(0, 256, (*size, channels), dtype=np.uint8)
    half = (size[0], size[1] // 2)
    boxes = [(0, 0, *half), (0, half[1], size[0], size[1])]
    patches = [Segment(f"row 1, column {i + 1}", box=box) for i, box in enumerate(boxes)]
    return Picture(view, (Segment("[CLS]", "special"), *patches), (1, 2))


def walk_of(item, saved=5, every=10, **changes):
    """A walk of (saved - 1) * every steps; every number differs from every other one."""
    steps = (saved - 1) * every
    k = torch.arange(steps + 1, dtype=torch.float64)
    series = {name: (1 + i) * k * 1.25e-3 for i, name in enumerate(SERIES)}
    series["drift"] = torch.where(k > 0, 10.0 ** (-9 + 6 * k / max(steps, 1)), 0.0)
    first = torch.linspace(0.9, 0.2, saved, dtype=torch.float64)
    probabilities = torch.stack([first, (1 - first) * 0.75, (1 - first) * 0.25], dim=1)
    labels = ("negative", "positive", "neutral")
    tokens = tuple(i for i, one in enumerate(item.segments) if one.role == "content")
    settings = {
        "item": item,
        "goal": "leave",
        "space": "embedding",
        "settings": {"output": "logits", "scale": 2.0, "toward": None, "correct": False},
        "tokens": tokens,
        "iterations": torch.arange(saved) * every,
        "points": torch.zeros(saved, len(tokens), 4),
        "labels": labels,
        "classes": (0, 1, 2),
        "probabilities": probabilities,
        "predicted": tuple(labels[i] for i in probabilities.argmax(dim=1).tolist()),
        "series": series,
        "outcome": "All steps were taken.",
        "completed": True,
        "provenance": provenance(),
    }
    return Trajectory(**(settings | changes))


def decoded_of(trajectory, **changes):
    """Frames that move away from the picture, or one more token replaced at every point."""
    saved, moved = len(trajectory.iterations), len(trajectory.tokens)
    changed = torch.arange(moved)[None] < torch.arange(saved)[:, None]
    settings = {
        "using": "nearest",
        "iterations": trajectory.iterations,
        "labels": trajectory.labels,
        "probabilities": trajectory.probabilities.flip(1),
        "agrees": torch.arange(saved) % 2 == 0,
        "changed": changed,
        "quality": {"nearest_distance": 0.125 + torch.arange(saved)},
    }
    if trajectory.kind == "image":
        view = trajectory.item.view.astype(int)
        frames = [(view + 3 * i * (-1) ** i) % 256 for i in range(saved)]
        settings["frames"] = np.stack(frames).astype(np.uint8)
    else:
        row = [((f"new{j}", -0.5 - j), (f"else{j}", -8.25 - j)) for j in range(moved)]
        settings["candidates"] = tuple(tuple(row) for _ in range(saved))
        words = trajectory.item.parts[0].split()
        settings["texts"] = tuple(
            " ".join([*(f"new{j}" for j in range(min(i, moved))), *words[i:]]) for i in range(saved)
        )
    return Decoded(**(settings | changes))


def text_walk(*parts, **changes):
    trajectory = walk_of(text_item(*(parts or ("a truly bad film here",))), **changes)
    return trajectory, decoded_of(trajectory)


def image_walk(size=(28, 28), channels=1, **changes):
    trajectory = walk_of(image_item(size, channels), **changes)
    return trajectory, decoded_of(trajectory)


# ---- reading a page ------------------------------------------------------------------------------


def points(source):
    """The pieces of HTML that belong to every stop of the slider."""
    pieces = re.split(r'(?=<div class="point")', source)[1:]
    found = {}
    for piece in pieces:
        at = int(re.match(r'<div class="point" data-at="(\d+)"', piece)[1])
        found.setdefault(at, []).append(piece.split('<div class="charts"')[0])
    return found


def hidden(piece):
    return re.match(r'<div class="point" data-at="\d+" hidden>', piece) is not None


def plain(piece):
    return re.sub(r"<[^>]+>", " ", piece)


def images(piece):
    return [
        np.asarray(Image.open(io.BytesIO(base64.b64decode(found))))
        for found in re.findall(r'src="data:image/png;base64,([^"]+)"', piece)
    ]


def charts(source):
    return re.findall(r'<figure class="chart">.*?</figure>', source, re.DOTALL)


def line(chart, index=0):
    """The coordinates of a line's pieces, one after the other."""
    (path,) = re.findall(rf'<path d="([^"]*)" class="line line-{index}">', chart)
    return np.array(
        [[float(c) for c in pair.split(",")] for pair in re.findall(r"[\d.]+,[\d.]+", path)]
    )


def scales(chart):
    """The two ends of both axes in user units, from the area that is drawn on."""
    names = ("x", "y", "width", "height")
    (area,) = re.findall(r'<rect ([^>]*) class="area">', chart)
    x, y, width, height = (float(re.search(rf'\b{name}="([\d.]+)"', area)[1]) for name in names)
    return (x, x + width), (y + height, y)


# ---- every stop of the slider --------------------------------------------------------------------


@pytest.mark.parametrize("channels", [1, 3])
def test_frames_are_those_that_were_decoded(channels):
    trajectory, decoded = image_walk(channels=channels)
    found = points(page((trajectory, decoded)))
    assert sorted(found) == [0, 1, 2, 3, 4]
    changes = differences(trajectory.item, decoded.frames)
    sizes = np.abs(changes[changes != 0])
    limit = np.quantile(sizes, 0.99)
    for at, (current, difference, _) in found.items():
        (frame,) = images(current)
        assert (frame.reshape(decoded.frames[at].shape) == decoded.frames[at]).all()
        (levels,) = images(difference)
        relative = (changes[at] / limit).clip(-1, 1)
        assert (levels == np.rint(relative * SHADES) + SHADES).all()
        assert f"iteration {10 * at}" in current


def test_differences_are_centred_on_zero_and_their_scale_is_said():
    trajectory, decoded = image_walk()
    frames = decoded.frames.copy()
    frames[:] = trajectory.item.view
    frames[1, 0, 0] = 0 if trajectory.item.view[0, 0] else 255
    change = int(frames[1, 0, 0, 0]) - int(trajectory.item.view[0, 0, 0])
    source = page((trajectory, replace(decoded, frames=frames)))
    (levels,) = images(points(source)[1][1])
    assert levels[0, 0] == SHADES + SHADES * np.sign(change)
    assert (np.delete(levels.ravel(), 0) == SHADES).all()
    image = re.findall(r'src="data:image/png;base64,([^"]+)"', points(source)[1][1])[0]
    colours = np.asarray(Image.open(io.BytesIO(base64.b64decode(image))).convert("RGBA"))
    assert colours[0, 1, 3] == 0  # clear where nothing changed
    assert colours[0, 0, 3] == 255
    assert f"<span>−{abs(change)}</span><span>0</span><span>+{abs(change)}</span>" in source
    same = replace(decoded, frames=np.repeat(trajectory.item.view[None], 5, axis=0))
    assert '<div class="ticks"><span>0</span></div>' in page((trajectory, same))


def test_numbers_of_every_point_are_those_of_the_walk():
    trajectory, decoded = text_walk()
    for at, pieces in points(page((trajectory, decoded))).items():
        readout = plain(pieces[-1])
        k = int(trajectory.iterations[at])
        for value in (trajectory.drift, trajectory.displacement, trajectory.length):
            assert f" {number(float(value[k]))} " in readout
        assert str(point_said(trajectory, at)) in readout
        assert str(decoded_said(trajectory, decoded, at)) in readout
        assert ("✓ agrees" in readout) == bool(decoded.agrees[at])
        assert ("✗ predicted otherwise" in readout) != bool(decoded.agrees[at])
        assert f"{min(at, 5)} of 5 moved tokens differ" in readout
        assert f"; decoding: nearest distance {at + 0.125:.4g} " in readout


def test_extreme_pixels_do_not_take_all_colour():
    trajectory, decoded = image_walk()
    view = np.full_like(trajectory.item.view, 100)
    frames = np.stack([view, *4 * [view + 8]])
    frames[4, 0, 0] = 250
    trajectory = replace(trajectory, item=replace(trajectory.item, view=view))
    source = page((trajectory, replace(decoded, frames=frames)))
    assert "Colours are full from 8; the largest is 150." in source
    (levels,) = images(points(source)[4][1])
    assert (levels == 2 * SHADES).all()


def test_changed_words_are_marked_in_their_place():
    trajectory, decoded = text_walk("a truly bad film, here!")
    found = points(page((trajectory, decoded)))
    assert "<mark" not in found[0][0]
    current = found[2][0]
    assert re.sub(r"<[^>]+>", "", current).startswith("new0 new1 bad film, here!")
    marks = Reader(current).named("mark")
    assert [re.sub("[\u2068\u2069]", "", mark["title"]) for mark in marks] == [
        "was a\nnew0  -0.5\nelse0  -8.25",
        "was truly\nnew1  -1.5\nelse1  -9.25",
    ]
    assert "a truly bad film, here!" in re.sub(r"<[^>]+>", "", page((trajectory, decoded)))


def test_text_that_reads_otherwise_is_said_and_the_same_is_not_repeated():
    trajectory, decoded = text_walk()
    assert "reads " not in page((trajectory, decoded))
    texts = ("A TRULY bad   film here", *decoded.texts[1:-1], "new0new1 put together")
    source = page((trajectory, replace(decoded, texts=texts)))
    assert source.count("reads ") == 1
    assert "new0new1 put together" in plain(source)


def test_tokens_outside_the_text_and_pairs():
    item = text_item("one two", "six ten")
    trajectory = walk_of(item, tokens=(0, 1, 4))
    row = ((("[UNK]", 1.0),), (("uno", 2.0),), (("seis", 3.0),))
    decoded = decoded_of(
        trajectory,
        candidates=(row,) * 5,
        changed=torch.ones(5, 3, dtype=torch.bool),
        texts=("uno two seis ten",) * 5,
    )
    current = plain(points(page((trajectory, decoded)))[4][0])
    assert " ".join(current.split()) == "uno two seis ten [CLS] → [UNK]"


def test_tokens_that_share_characters_are_all_shown():
    item = Text(("a 😀!",), (Segment("😀", span=(2, 3)), Segment("😀", span=(2, 3))))
    trajectory = walk_of(item)
    source = page((trajectory, decoded_of(trajectory)))
    assert plain(points(source)[4][0]).split()[:4] == ["a", "new0", "new1", "!"]


@pytest.mark.parametrize("walk", [text_walk(), image_walk()])
def test_without_a_script_the_last_point_is_seen(walk):
    found = points(page(walk))
    assert all(hidden(piece) for at in range(4) for piece in found[at])
    assert not any(hidden(piece) for piece in found[4])
    read = Reader(page(walk))
    assert "needs-script" in read.classed("controls")[-1]["class"]
    (card,) = read.classed("walk")
    assert card["style"] == "--at:1"


def test_slider_knows_its_iterations():
    (slider,) = Reader(page(text_walk())).classed("steps")
    assert slider["type"] == "range"
    assert (slider["min"], slider["max"], slider["value"]) == ("0", "4", "4")
    assert slider["data-iterations"] == "0 10 20 30 40"
    assert slider["data-steps"] == "40"
    assert slider["aria-label"]


def test_a_walk_that_took_no_step():
    for trajectory, decoded in (text_walk(saved=1), image_walk(saved=1)):
        source = page((trajectory, decoded))
        assert not Reader(source).classed("steps")
        assert source.count("Zero at every step.") == 2
        assert not re.search(r"\bnan\b", source)


# ---- many points ---------------------------------------------------------------------------------


def test_a_page_of_a_hundred_frames_is_small():
    trajectory, decoded = image_walk(saved=100)
    noise = np.random.default_rng(1).integers(0, 256, decoded.frames.shape, dtype=np.uint8)
    source = page((trajectory, replace(decoded, frames=noise)))
    assert len(points(source)) == 100
    assert len(source) < 500_000
    assert "can be stepped through" not in source


@pytest.mark.parametrize(
    ("walk", "count"),
    [
        (image_walk(saved=301), 100),
        (image_walk(size=(224, 224), channels=3, saved=25, every=1), 19),
        (text_walk(" ".join(200 * ["word"]), saved=50), 29),
        ((walk_of(image_item((224, 224), 3), saved=150), None), 100),
    ],
)
def test_too_many_points_are_thinned_and_that_is_said(walk, count):
    trajectory, decoded = walk
    shown = Walk(trajectory, decoded).shown
    assert len(shown) == count
    assert (shown[0], shown[-1]) == (0, len(trajectory.iterations) - 1)
    assert max(np.diff(shown)) - min(np.diff(shown)) <= 1
    said = f"{count} of {len(trajectory.iterations)} saved points can be stepped through"
    source = page(walk if decoded is not None else trajectory)
    assert said in source
    assert len(points(source)) == count
    assert len(source) < 6_000_000


def test_thinning_a_curve_loses_no_peak():
    y = np.random.default_rng(2).normal(size=5000)
    y[[1234, 4321]] = 50, -50
    curve = Curve("", np.arange(5000.0), y)
    kept = thinned(curve)
    assert len(kept.x) <= 402
    assert (y[kept.x.astype(int)] == kept.y).all()
    assert {0, 1234, 4321, 4999} <= set(kept.x.astype(int))
    for stretch in np.array_split(y, 200):
        assert {stretch.min(), stretch.max()} <= set(kept.y)
    short = Curve("", np.arange(400.0), y[:400])
    assert thinned(short) is short


# ---- charts --------------------------------------------------------------------------------------


def test_curves_are_the_numbers_of_the_walk():
    trajectory, decoded = text_walk()
    probabilities, drift, distance = charts(page((trajectory, decoded)))
    (left, right), (bottom, top) = scales(probabilities)
    assert main_classes(trajectory, decoded) == [0, 2, 1]
    for index, place in enumerate([0, 2, 1]):
        found = line(probabilities, index)
        x = (found[:, 0] - left) / (right - left) * 40
        y = (found[:, 1] - bottom) / (top - bottom)
        assert x == pytest.approx(trajectory.iterations.numpy(), abs=0.02)
        assert y == pytest.approx(trajectory.probabilities[:, place].numpy(), abs=0.0005)
    (left, right), (bottom, top) = scales(drift)
    found = line(drift)
    assert len(found) == 40  # the start, which is zero, has no logarithm
    y = -9 + 6 * (found[:, 1] - bottom) / (top - bottom)
    assert y == pytest.approx(trajectory.drift[1:].log10().numpy(), abs=0.01)
    for index, series in enumerate((trajectory.displacement, trajectory.length)):
        (left, right), (bottom, top) = scales(distance)
        y = (line(distance, index)[:, 1] - bottom) / (top - bottom) * float(trajectory.length[-1])
        assert y == pytest.approx(series.numpy(), abs=0.001 * float(series[-1]))


def test_decoded_predictions_are_dots_and_disagreement_is_flagged():
    trajectory, decoded = text_walk()
    chart = charts(page((trajectory, decoded)))[0]
    _, (bottom, top) = scales(chart)
    dots = re.search(r'<g class="dots line-0">(.*?)</g>', chart)[1]
    y = [(float(v) - bottom) / (top - bottom) for v in re.findall(r'cy="([\d.]+)"', dots)]
    assert y == pytest.approx(decoded.probabilities[:, 0].numpy(), abs=0.0005)
    assert chart.count('class="cross"') == 2
    assert "3 of 5 decoded inputs are predicted as their points are." in agreement(decoded)
    assert agreement(decoded) in page((trajectory, decoded))
    assert 'class="cross"' not in page(
        (trajectory, replace(decoded, agrees=torch.ones(5, dtype=torch.bool)))
    )


def test_small_probabilities_fill_their_chart():
    trajectory, decoded = text_walk()
    small = replace(trajectory, probabilities=trajectory.probabilities * 0.01)
    decoded = replace(decoded, probabilities=decoded.probabilities * 0.02)
    chart = charts(page((small, decoded)))[0]
    _, (bottom, top) = scales(chart)
    heights = [float(v) for v in re.findall(r'cy="([\d.]+)"', chart)]
    assert min(heights) == pytest.approx(top, abs=0.1)  # of the largest, 0.018
    assert float(line(chart)[0, 1]) == pytest.approx((top + bottom) / 2, abs=0.1)


def test_names_stand_apart_at_the_ends_of_their_lines():
    trajectory = walk_of(text_item("a b"), probabilities=torch.full((5, 3), 1 / 3).double())
    chart = charts(page(trajectory))[0]
    names = re.findall(r'<text x="[\d.]+" y="([\d.]+)" class="name line-\d">', chart)
    assert len(names) == 3
    assert min(np.diff(sorted(map(float, names)))) >= 12


def test_a_number_by_itself_is_a_dot():
    trajectory, _ = text_walk(saved=2, every=1)
    drift = charts(page(trajectory))[1]
    assert re.search(r'<circle cx="348" cy="[\d.]+" r="1.5" class="line line-0">', drift)


def test_places_are_moved_apart_and_no_further():
    assert apart([1.0, 40.0, 20.0], 10, 100) == [1.0, 40.0, 20.0]
    assert apart([50.0, 50.0, 50.0], 10, 100) == [50.0, 60.0, 70.0]
    assert apart([99.0, 95.0, 20.0], 10, 100) == [100.0, 90.0, 20.0]
    assert apart([], 10, 100) == []


@pytest.mark.parametrize("high", [1.0, 0.07, 3.0, 19.7, 84.2, 1e6, 1.1e-7])
def test_ticks_of_a_linear_axis(high):
    axis = Axis.linear(0.0, high)
    values = [value for value, _ in axis.ticks]
    assert 3 <= len(values) <= 6
    assert values[0] == 0
    assert all(0 <= axis.place(value) <= 1 + 1e-9 for value in values)
    assert axis.place(high) == pytest.approx(1)


@pytest.mark.parametrize(("low", "high"), [(1e-12, 1.0), (3e-9, 4e-9), (1.0, 1.0), (0.02, 0.9)])
def test_ticks_of_a_logarithmic_axis(low, high):
    axis = Axis.log(low, high)
    assert 2 <= len(axis.ticks) <= 6
    assert 0 <= axis.place(low) <= axis.place(high) <= 1
    assert [text for _, text in Axis.log(1e-2, 1.0).ticks] == ["10⁻²", "10⁻¹", "10⁰"]


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_names_of_lines_are_readable(theme):
    style = page(text_walk())
    pattern = r"light-dark\((#\w{6}), (#\w{6})\)"
    card = re.search(rf"--card: {pattern}", style)[theme + 1]
    hues = [found[theme] for found in re.findall(rf"--hue: {pattern}", style)]
    assert len(hues) == 4
    for hue in [*hues, re.search(rf"--alert: {pattern}", style)[theme + 1]]:
        rgb = [[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in (hue, card)]
        assert contrast(*rgb) >= 4.5


# ---- what is said --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("goal", "said"),
    [
        ("stay", "Walk inside the class negative"),
        ("leave", "Walk out of the class negative"),
        ("positive", "Walk to the class positive"),
    ],
)
def test_page_says_what_walk_it_is_and_where_the_numbers_come_from(goal, said):
    trajectory, decoded = text_walk(goal=goal, notes=("truncated: 4 of 9",))
    decoded = replace(decoded, notes=("nothing was clamped",))
    assert title(trajectory) == said
    text = Reader(page((trajectory, decoded))).text
    for expected in (
        said, "40 steps in the space 'embedding'; 5 of 7 tokens moved", "All steps were taken.",
        "The prediction changes from negative to positive by iteration 30.", "output='logits'",
        "scale=2.0", "correct=False", "truncated: 4 of 9", "nothing was clamped",
        "using='nearest'", "owner/model", "3e4f" * 16, "12 forward, 3 backward",
        "1 trajectory of 1 input", "90.0%",
    ):  # fmt: skip
        assert expected in text
    assert "toward=" not in text


def test_result_in_words():
    def said(*predicted):
        return result(walk_of(text_item("a"), predicted=predicted))

    assert said(*5 * ["x"]) == "The prediction is x at all 5 saved points."
    assert said("x") == "The prediction is x."
    assert said("x", "x", "y", "z", "z") == (
        "The prediction changes from x to y by iteration 20, and ends as z."
    )
    assert said("x", "y", "x", "x", "x") == (
        "The prediction changes from x to y by iteration 10, and ends as x."
    )


def test_predictions_that_are_not_among_the_kept_classes():
    trajectory, decoded = text_walk(predicted=("negative", *4 * ["rare"]))
    assert str(point_said(trajectory, 0)) == "negative, 90.0%"
    assert str(point_said(trajectory, 1)) == "rare"
    assert str(decoded_said(trajectory, decoded, 2)) == "rare"  # agrees
    assert str(decoded_said(trajectory, decoded, 1)) == "another class"
    said = "Probabilities are kept for 3 classes; at 4 of 5 saved points the prediction is another"
    assert said in Reader(page((trajectory, decoded))).text
    assert "Probabilities are kept" not in page(text_walk())
    named = replace(decoded, predicted=("neutral", "other", *3 * ["rare"]))
    assert str(decoded_said(trajectory, named, 0)) == "neutral, 90.0%"
    assert str(decoded_said(trajectory, named, 1)) == "other"


def test_points_are_decoded_where_the_model_is_at_hand(monkeypatch):
    trajectory, decoded = text_walk(model=SimpleNamespace())
    monkeypatch.setattr(Trajectory, "decode", lambda self: decoded)
    assert page(trajectory) == page((trajectory, decoded)) == trajectory.to_html(decoded=decoded)

    def refuse(self):
        raise InputError(
            explain_error("no inverse", got="hidden:<3>", expected="x", instead="decode(y)")
        )

    monkeypatch.setattr(Trajectory, "decode", refuse)
    read = Reader(page(trajectory))
    assert "The points are not decoded: no inverse; got: hidden:<3>; expected: x;" in read.text
    assert not read.classed("versions")
    assert len(points(page(trajectory))) == 5  # the numbers are still stepped through


def test_walks_without_a_model_say_what_to_type():
    trajectory, _ = image_walk()
    assert "decoded=trajectory.decode(model) shows them" in Reader(page(trajectory)).text


def test_decoded_inputs_of_another_walk_are_refused():
    trajectory, _ = text_walk()
    _, other = text_walk(saved=4)
    with pytest.raises(ArgumentError, match="decoded from another walk"):
        trajectory.to_html(decoded=other)


# ---- several on one page -------------------------------------------------------------------------


def test_walks_and_explanations_of_one_input_stand_together(tmp_path):
    ex = of_text("a film")
    same = walk_of(text_item("a film"))
    other = image_walk()
    path = pellucid.report([same, ex, other, replace(same, goal="stay")], tmp_path / "page.html")
    read = Reader(path.read_text("utf-8"))
    assert len(read.classed("input")) == 2
    assert len(read.classed("card")) == 1
    assert len(read.classed("walk")) == 3
    assert "1 explanation and 3 trajectories of 2 inputs" in read.text
    assert len(Reader(page(other)).classed("walk")) == 1  # a pair by itself is one walk
    assert page([other]) == page(other)
    assert page(iter([same, ex])) == page([same, ex])


@pytest.mark.parametrize("wrong", [(1, 2), [walk_of(text_item("a")), 3], {"a": 1}])
def test_only_results_are_shown(wrong):
    with pytest.raises(ArgumentError, match="only explanations and trajectories"):
        page(wrong)


# ---- safety --------------------------------------------------------------------------------------


def hostile_walks():
    for text in HOSTILE:
        trajectory = walk_of(
            Text((text,), (Segment(text, span=(0, 1)), Segment(text))),
            goal=text,
            space=text,
            settings={text: text},
            labels=(text, "b", "c"),
            predicted=(text, "b", "b", text * 2, "c"),
            outcome=text,
            completed=False,
            provenance=provenance(text, text),
            notes=(text,),
        )
        yield (
            trajectory,
            decoded_of(
                trajectory,
                using=text,
                labels=(text, "b", "c"),
                texts=(text,) * 5,
                candidates=((((text, 1.0),),) * 2,) * 5,
                changed=torch.ones(5, 2, dtype=torch.bool),
                notes=(text,),
            ),
        )


def test_what_is_shown_cannot_become_markup():
    allowed = Reader(page([text_walk(), image_walk()]))
    tags = {tag for tag, _ in allowed.elements} | {"q", "li", "ul"}
    names = {name for _, a in allowed.elements for name in a}
    for source in (page(list(hostile_walks()), title=HOSTILE[1]), fragment(list(hostile_walks()))):
        read = Reader(source)
        assert {tag for tag, _ in read.elements} <= tags
        assert {name for _, a in read.elements for name in a} <= names
        assert read.scripts == allowed.scripts
        assert all(text in read.text for text in HOSTILE)
        assert not any(name.startswith("on") for _, a in read.elements for name in a)


def test_policy_allows_our_script_and_nothing_is_loaded():
    read = Reader(page([text_walk(), image_walk()]))
    (policy,) = [
        a["content"] for a in read.named("meta") if a.get("http-equiv") == "Content-Security-Policy"
    ]
    digest = base64.b64encode(hashlib.sha256(read.scripts[0].encode()).digest()).decode()
    assert policy.startswith("default-src 'none'; img-src data:;")
    assert f"script-src 'sha256-{digest}';" in policy
    sources = [a[name] for _, a in read.elements for name in ("src", "href") if name in a]
    assert all(one.startswith("data:image/png;base64,") for one in sources)


def test_text_from_the_right_stays_as_it_was_written():
    text = "هذا الفيلم ليس جيدا"
    trajectory, decoded = text_walk(text)
    source = page((trajectory, decoded))
    assert text in plain(source)
    assert '<p dir="auto">' in points(source)[1][0]
    (mark,) = Reader(points(source)[1][0]).named("mark")
    assert "\u2068هذا\u2069" in mark["title"]
    assert mark["dir"] == "auto"  # a word from the left does not turn the line


# ---- terminal, notebook, one line ----------------------------------------------------------------


def test_terminal_says_how_it_went(capsys):
    trajectory, decoded = text_walk()
    print_walk(Walk.of(trajectory, decoded))
    out = capsys.readouterr().out
    for expected in (
        "Walk out of the class negative of owner/model", "40 steps", "All steps were taken.",
        "negative, 90.0%", "positive, 60.0%", number(float(trajectory.drift[-1])),
        number(float(trajectory.displacement[20])), "4 of 5 moved tokens differ",
        "a → new0, truly → new1, bad → new2, film → new3", "“new0 new1 new2 new3 here”", "✗",
    ):  # fmt: skip
        assert expected in out


@pytest.mark.parametrize("walk", [*hostile_walks(), image_walk(saved=1), text_walk("\x1b[31m\x07")])
def test_terminal_gets_no_control_characters(walk, capsys):
    print_walk(Walk.of(*walk))
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", capsys.readouterr().out)


def test_show_prints_or_displays(capsys):
    trajectory, _ = text_walk()
    trajectory.show()
    assert "Walk out of" in capsys.readouterr().out
    assert trajectory._repr_html_().startswith("<style>")
    assert 'class="walk"' in trajectory._repr_html_()


def test_sparkline():
    assert sparkline(np.arange(8.0)) == "▁▂▃▄▅▆▇█"
    assert sparkline(np.array([0.0, 1e-9, 1e-2])) == "▁▁█"
    assert sparkline(np.array([0.0, 1e-9, 1e-2]), log=True) == " ▁█"
    assert sparkline(np.zeros(3)) == "▁▁▁"
    assert sparkline(np.zeros(3), log=True) == "   "
    peak = np.zeros(1000)
    peak[777] = 1
    assert sparkline(peak).count("█") == 1


def test_repr_is_one_line():
    trajectory, _ = text_walk(goal="\x1b[31m")
    line = repr(trajectory)
    assert line.isprintable()
    assert "40 steps, negative to positive, drift 0.001" in line


# ---- matplotlib ----------------------------------------------------------------------------------


@pytest.mark.parametrize("series", ["probabilities", *SERIES])
def test_plot_draws_the_numbers_and_leaves_pyplot_alone(series):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    trajectory, _ = text_walk(labels=("$neg_{", "positive", "neutral"))
    axes = trajectory.plot(series=series)
    axes.figure.draw_without_rendering()
    assert pyplot.get_fignums() == []
    assert trajectory.plot(axes, series=series) is axes
    drawn = axes.get_lines()[0].get_ydata()
    wanted = (
        trajectory.probabilities[:, 0] if series == "probabilities" else trajectory.series[series]
    )
    assert (drawn == wanted.numpy()).all()
    logarithmic = series in ("drift", "divergence", "projected")
    assert axes.get_yscale() == ("log" if logarithmic else "linear")


def test_plot_of_an_unknown_series_names_the_known_ones():
    with pytest.raises(ArgumentError, match="series='drift'"):
        text_walk()[0].plot(series="drifft")


# ---- a real browser ------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which(CHROMIUM) is None, reason=f"needs {CHROMIUM}")
def test_in_a_browser_the_slider_shows_another_point(tmp_path):
    """A script of the test, allowed by its own hash, does what a hand on the slider does."""
    source = page([image_walk(), *hostile_walks()], title="untouched")
    move = (
        "for (const slider of document.querySelectorAll('.steps')) {"
        " slider.value = 2; slider.dispatchEvent(new Event('input')); }"
    )
    digest = base64.b64encode(hashlib.sha256(move.encode()).digest()).decode()
    allowed = source.replace("script-src ", f"script-src 'sha256-{digest}' ", 1)
    intruder = f'<img src=x onerror="{RUNS}">'
    path = tmp_path / "page.html"
    path.write_text(
        allowed.replace("</body>", f"<script>{move}</script>{intruder}</body>"), "utf-8"
    )
    seen = browse(path, tmp_path / "profile")
    assert "<title>untouched</title>" in seen
    shown = [a for a in Reader(seen).classed("point") if "hidden" not in a]
    assert len(shown) == 3 + 2 * len(HOSTILE)
    assert {a["data-at"] for a in shown} == {"2"}
    read = Reader(seen)
    assert "iteration 20 of 40" in read.text
    assert {a["aria-valuetext"] for a in read.classed("steps")} == {"iteration 20 of 40"}
    assert {a["style"] for a in read.classed("walk")} == {"--at: 0.5;"}
