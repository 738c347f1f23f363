"""The look of explanations: everything is there, nothing of it can run, and files are whole."""

import base64
import hashlib
import html
import io
import re
import shutil
import subprocess
import sys
import types
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import pellucid
from pellucid import ArgumentError, StoreError
from pellucid._results import Explanation, Provenance
from pellucid._target import Target
from pellucid._types import Picture, Segment, Text
from pellucid._words import word_spans
from pellucid.viz import fragment, page, report, show, write_page
from pellucid.viz.colour import AGAINST, AMOUNT, FOR, Scale
from pellucid.viz.group import grouped
from pellucid.viz.markup import element
from pellucid.viz.shown import runs, tokens
from pellucid.viz.wording import number, percent

CHROMIUM = "/usr/bin/chromium"
RUNS = "document.title = 'owned'"
HOSTILE = (
    f"<script>{RUNS}</script>",
    f'"><img src=x onerror="{RUNS}">',
    f'\'" onmouseover="{RUNS}" autofocus onfocus="{RUNS}',
    f"</style></script><svg/onload={RUNS}>",
    "&lt;b&gt; javascript:alert(1) ${x} {{x}}",
)


# ---- explanations made by hand -------------------------------------------------------------------


def provenance(model="owner/model", weights="3e4f" * 16):
    return Provenance(
        model=model,
        weights=weights,
        dtype="float32",
        device="cpu",
        seed=7,
        seconds=0.25,
        forwards=12,
        backwards=3,
        versions={"pellucid": "0.1.0", "torch": "2.13.0"},
        created="2026-01-02T03:04:05+00:00",
    )


def explanation(scores, item, **changes):
    settings = {
        "method": "saliency",
        "params": {},
        "signed": True,
        "target": Target.predicted("logit"),
        "explains": "logit of the predicted class",
        "label": "negative",
        "index": 0,
        "value": 2.5,
        "unit": "class",
        "prediction": {"negative": 0.93, "positive": 0.07},
        "logits": torch.tensor([2.5, -0.1]),
        "provenance": provenance(),
    }
    return Explanation(torch.as_tensor(scores), item, **(settings | changes))


def of_text(*parts, scores=None, **changes):
    """[CLS], the words of each text, [SEP]; words of more than six letters are two tokens."""
    segments = [Segment("[CLS]", "special")]
    for part, text in enumerate(parts):
        for start, end in word_spans(text):
            cuts = [start, start + 4, end] if end - start > 6 else [start, end]
            for a, b in pairwise(cuts):
                segments.append(Segment(text[a:b], span=(a, b), part=part))
        segments.append(Segment("[SEP]", "special"))
    if scores is None:
        scores = torch.linspace(-1, 1.3, len(segments))
    return explanation(scores, Text(parts, tuple(segments)), **changes)


def of_image(grid=(4, 4), size=(28, 28), channels=1, scores=None, pixels=False, **changes):
    """A [CLS] token and a grid of patches, or one score a pixel."""
    (rows, columns), (height, width) = grid, size
    tall, wide = height // rows, width // columns
    boxes = [
        (r * tall, c * wide, (r + 1) * tall, (c + 1) * wide)
        for r in range(rows)
        for c in range(columns)
    ]
    patches = [
        Segment(f"row {i // columns + 1}, column {i % columns + 1}", box=box)
        for i, box in enumerate(boxes)
    ]
    view = (np.arange(height * width * channels) % 256).astype(np.uint8)
    picture = Picture(
        view.reshape(height, width, channels), (Segment("[CLS]", "special"), *patches), grid
    )
    if scores is None:
        shape = size if pixels else (1 + rows * columns,)
        scores = torch.linspace(-1, 2, int(np.prod(shape))).view(shape)
    return explanation(scores, picture, **changes)


# ---- reading a page ------------------------------------------------------------------------------


class Reader(HTMLParser):
    """The elements of a page with their attributes, and its text outside script and style."""

    def __init__(self, source):
        super().__init__()
        self.elements, self.text, self.scripts = [], "", []
        self._within = ""
        self.feed(source)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self._within = tag

    def handle_endtag(self, tag):
        self._within = ""

    def handle_data(self, data):
        if self._within == "script":
            self.scripts.append(data)
        elif self._within != "style":
            self.text += data

    def named(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    def classed(self, name):
        return [a for _, a in self.elements if name in (a.get("class") or "").split()]


def frame_scores(source):
    (frame,) = Reader(source).classed("frame")
    found = np.frombuffer(base64.b64decode(frame["data-scores"]), "<f4")
    return found.reshape(int(frame["data-rows"]), int(frame["data-columns"]))


# ---- what is shown -------------------------------------------------------------------------------


def test_page_says_what_was_explained_and_where_the_numbers_come_from():
    ex = of_text("a truly bad film", params={"steps": 64}, notes=("truncated: 4 of 9",))
    read = Reader(page([ex]))
    for said in (
        "owner/model", "saliency", "steps=64", "logit of the predicted class (negative): 2.5",
        "93.0%", "7.0%", "explained", "truncated: 4 of 9", "3e4f" * 16, "12 forward, 3 backward",
        "torch 2.13.0", "2026-01-02T03:04:05+00:00", "0.25 s",
    ):  # fmt: skip
        assert said in read.text
    assert page([ex], title="My title").count("My title") == 2


def test_every_score_is_there_to_read():
    ex = of_text("a remarkably bad film", "with <two> parts", scores=None)
    titles = [a["title"] for a in Reader(page([ex])).classed("heat") if "title" in a]
    assert titles == [
        f"\u2068{word.text}\u2069  {number(word.score, signed=True)}"
        for word in [*ex.words(), *tokens(ex)]
    ]


def test_special_tokens_are_not_hidden():
    text = Reader(page([of_text("so bad", scores=[0.5, 0.25, -0.25, 1.0])])).text
    assert "2 tokens outside the text: +1.5 together, 75.0% of all scores by size" in text
    assert "[CLS] +0.5" in text
    assert "[SEP] +1" in text
    picture = of_image(grid=(1, 2), scores=[1.0, 0.5, 0.5], signed=False)
    assert "1 token outside the image: 1 together, 50.0%" in Reader(page([picture])).text
    assert "outside the image" not in page([of_image(pixels=True)])


@pytest.mark.parametrize(
    ("changes", "said", "unsaid"),
    [
        ({}, ["speaks for negative", "speaks against negative"], ["not in which direction"]),
        ({"signed": False}, ["how much, not in which direction"], ["speaks for"]),
        (
            {"unit": "value", "label": "value", "prediction": {"value": 3.5}},
            ["speaks for a higher value"],
            ["probability"],
        ),
    ],
)
def test_legend_says_what_the_numbers_are(changes, said, unsaid):
    text = Reader(page([of_text("so bad", scores=[0.0, 0.5, 1.0, 0.0], **changes)])).text
    assert all(one in text for one in said)
    assert not any(one in text for one in unsaid)


def test_methods_of_one_input_stand_side_by_side():
    first, second = of_text("a film"), of_text("another film")
    same = of_text("a film", method="rollout", signed=False)
    elsewhere = of_text("a film", provenance=provenance("other/model"))
    groups = grouped([first, second, same, elsewhere])
    assert [group.explanations for group in groups] == [(first, same), (second,), (elsewhere,)]
    read = Reader(page([first, second, same, elsewhere]))
    assert len(read.classed("input")) == 3
    assert len(read.classed("card")) == 4
    assert len(grouped([of_image(), of_image(pixels=True), of_image(size=(28, 32))])) == 2


def test_another_prediction_of_the_same_input_is_shown_in_its_own_card():
    ex = of_text("a film")
    other = of_text("a film", prediction={"fine": 0.8}, label="fine")
    assert page([ex, ex]).count("Predicted probability") == 1
    assert page([ex, other]).count("Predicted probability") == 2


def test_explained_class_is_shown_however_improbable():
    prediction = {f"class {i}": 0.3 / (i + 1) for i in range(10)}
    source = page([of_text("a film", prediction=prediction, label="class 9")])
    shown, folded = source.split("4 more")[0], source.split("4 more")[1]
    assert 'class 9">' in shown
    assert 'class 8">' in folded


def test_blank_labels_are_seen():
    ex = of_text("a film", label=" ", prediction={" ": 0.5, "\n": 0.25})
    text = Reader(page([ex])).text
    assert "speaks for ' '" in text
    assert "'\\n'25.0%" in text


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("value", [0.0, 1.0, -1.0])
def test_constant_scores(value, signed):
    sources = [
        page([of_text("a film", scores=torch.full((4,), value), signed=signed)]),
        page([of_image(scores=torch.full((17,), value), signed=signed)]),
        page([of_image(scores=torch.full((28, 28), value), signed=signed, pixels=True)]),
    ]
    for source in sources:
        assert not re.search(r"\bnan\b", source)
        coloured = value > 0 or (signed and value < 0)
        assert ("One number for each" in source) == coloured
        assert (bool(re.search("All scores of the (text|image) are zero", source))) == (value == 0)


def test_pair_of_texts_is_two_paragraphs():
    ex = of_text("A man plays.", "The man sleeps!")
    assert re.sub(r"<[^>]+>", "", page([ex]).split('<div class="texts">')[1]).startswith(
        "A man plays.The man sleeps!"
    )


@pytest.mark.parametrize(
    "text",
    [
        "هذا الفيلم ليس جيدًا!",
        "這部電影不好看。",
        "Loved it 👩‍👩‍👧 👍🏽",
        "a\n\tb  c",
        "ca\u0301fe \U0001d400",
    ],
)
def test_text_stays_as_it_was_written(text):
    ex = of_text(text)
    assert "".join(run.text for run in runs(text, ex.words())) == text
    assert "".join(run.text for run in runs(text, tokens(ex))) == text
    source = page([ex])
    assert html.escape(text) in re.sub(r"<[^>]+>", "", source.split('class="texts"')[1])
    assert '<p dir="auto">' in source


def test_tokens_that_share_characters_are_shown_once_with_all_their_scores():
    emoji = Text(
        ("a 😀!",),
        (
            Segment("a", span=(0, 1)),
            Segment("😀", span=(2, 3)),
            Segment("😀", span=(2, 3)),
            Segment("", span=(3, 3)),
            Segment("!", span=(3, 4)),
            Segment("lost"),
        ),
    )
    ex = explanation(torch.tensor([0.5, 0.25, -1.0, 0.125, 1.0, 2.0]), emoji)
    found = [run for run in runs("a 😀!", tokens(ex)) if run.words]
    assert [(run.text, run.score) for run in found] == [("a", 0.5), ("😀", -0.625), ("!", 1.0)]
    source = page([ex])
    assert "😀  +0.25\n😀  -1\n  +0.125" in re.sub("[\u2068\u2069]", "", source)
    assert "1 token outside the text: +2 together" in source


def test_control_characters_are_pictured():
    assert "␀ ␛[31m" in page([of_text("x \x00 \x1b[31m \ud800")])
    page([of_text("\ud800")]).encode()


def test_long_text_stays_light():
    long = of_text(" ".join(f"word{i}" for i in range(500)))
    assert len(page([long] * 3)) < 500_000


# ---- images --------------------------------------------------------------------------------------


@pytest.mark.parametrize("grid", [(4, 4), (1, 4), (4, 1), (1, 1), (28, 1), (3, 5)])
def test_patch_scores(grid):
    ex = of_image(grid=grid)
    assert frame_scores(page([ex])) == pytest.approx(ex.patches().numpy())


@pytest.mark.parametrize("size", [(28, 28), (2, 9), (40, 3)])
def test_pixel_scores(size):
    ex = of_image(grid=(1, 1), size=size, channels=3, pixels=True)
    assert frame_scores(page([ex])) == pytest.approx(ex.scores.numpy())


def test_picture_is_the_view_and_small_ones_stay_crisp():
    ex = of_image()
    source = page([ex, ex])
    (uri,) = re.findall(r"--view:url\(data:image/png;base64,([^)]+)\)", source)
    with Image.open(io.BytesIO(base64.b64decode(uri))) as picture:
        assert (np.asarray(picture) == ex.item.view[..., 0]).all()
    assert "crisp" in Reader(source).classed("thumbnail")[0]["class"]
    large = page([of_image(grid=(7, 7), size=(224, 224), channels=3)])
    assert "crisp" not in Reader(large).classed("thumbnail")[0]["class"]


def test_heat_covers_only_the_patches():
    (layer,) = Reader(page([of_image(grid=(3, 3), size=(28, 30))])).classed("layer")
    assert "height:96.4286%;width:100.0000%" in layer["style"]


# ---- colour --------------------------------------------------------------------------------------


def test_signed_scale_is_symmetric_and_has_no_colour_at_zero():
    scale = Scale.of([-0.5, 2.0, 0.0], signed=True)
    assert scale.strength([-2.0, -0.5, 0.0, 2.0]).tolist() == [-1.0, -0.25, 0.0, 1.0]
    assert scale.rgba([-2.0, 0.0, 2.0]).tolist() == [[*AGAINST, 255], [*FOR, 0], [*FOR, 255]]


def test_unsigned_scale_begins_at_zero():
    scale = Scale.of([0.5, 2.0, -9.0], signed=False)
    assert scale.strength([-9.0, 0.0, 0.5, 4.0]).tolist() == [0.0, 0.0, 0.25, 1.0]
    assert scale.ramp(3)[-1].tolist() == pytest.approx([*(c / 255 for c in AMOUNT), 1.0])


def test_scale_survives_what_should_not_be_there():
    assert Scale.of([], signed=True).strength([1.0]).tolist() == [0.0]
    scale = Scale.of([float("nan"), float("inf"), 1.0], signed=True)
    assert scale.limit == 1.0
    assert scale.strength([float("nan"), float("-inf")]).tolist() == [0.0, -1.0]


def test_extreme_pixels_do_not_take_all_colour():
    scores = torch.cat([torch.full((999,), 1.0), torch.tensor([100.0])]).view(40, 25)
    source = page([of_image(grid=(1, 1), size=(40, 25), scores=scores, pixels=True)])
    assert "Colours are full from 1; the largest is 100." in source


def contrast(one, other):
    """WCAG 2 contrast of two colours."""

    def luminance(rgb):
        channels = np.asarray(rgb) / 255
        linear = np.where(
            channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4
        )
        return float(linear @ [0.2126, 0.7152, 0.0722])

    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("hue", [FOR, AGAINST, AMOUNT])
def test_text_is_readable_on_the_strongest_heat(theme, hue):
    style = page([of_text("x")])
    most = float(re.search(r"--most: ([\d.]+)", style)[1])
    ink, card = (
        [int(re.search(rf"--{name}: light-dark\((\S+), (\S+)\)", style)[theme + 1][i : i + 2], 16)
         for i in (1, 3, 5)]
        for name in ("ink", "card")
    )  # fmt: skip
    ground = most * np.asarray(hue) + (1 - most) * np.asarray(card)
    assert contrast(ink, ground) >= 4.5


def test_numbers_are_readable():
    assert [number(x) for x in (0.0, -0.0, 1234567.0, 0.1234567, -1e-9)] == [
        "0", "0", "1.235e+06", "0.1235", "-1e-09",
    ]  # fmt: skip
    assert number(0.5, signed=True) == "+0.5"
    assert [percent(p) for p in (0.0, 1e-9, 0.5, 0.99999, 1.0)] == [
        "0.0%", "<0.1%", "50.0%", ">99.9%", "100.0%",
    ]  # fmt: skip


# ---- safety --------------------------------------------------------------------------------------


def hostile_explanations():
    return [
        of_text(
            text,
            method=text,
            target=text,
            label=text,
            params={text: text},
            notes=(text,),
            prediction={text: 0.5, text * 2: 0.5},
            provenance=provenance(text, text),
        )
        for text in HOSTILE
    ] + [of_image(label=HOSTILE[1], method=HOSTILE[1], provenance=provenance(HOSTILE[1]))]


def test_what_is_shown_cannot_become_markup():
    harmless = Reader(page([of_text("a film"), of_image()]))
    for source in (
        page(hostile_explanations(), title=HOSTILE[1]),
        fragment(hostile_explanations()),
    ):
        read = Reader(source)
        assert {tag for tag, _ in read.elements} <= {tag for tag, _ in harmless.elements} | {"ul"}
        assert {name for _, a in read.elements for name in a} <= {
            name for _, a in harmless.elements for name in a
        }
        assert read.scripts == harmless.scripts
        assert all(text in read.text for text in HOSTILE)
        assert not any(name.startswith("on") for _, a in read.elements for name in a)


def test_policy_allows_our_script_and_nothing_else():
    read = Reader(page([of_text("a film")]))
    (policy,) = [
        a["content"] for a in read.named("meta") if a.get("http-equiv") == "Content-Security-Policy"
    ]
    digest = base64.b64encode(hashlib.sha256(read.scripts[0].encode()).digest()).decode()
    assert policy.startswith("default-src 'none'; img-src data:;")
    assert f"script-src 'sha256-{digest}';" in policy


@pytest.mark.parametrize("render", [page, fragment])
def test_nothing_is_loaded_from_anywhere(render):
    source = render([of_text("a film"), of_image(), of_image(pixels=True)])
    assert "http://" not in source
    assert "https://" not in source
    read = Reader(source)
    assert not read.named("link")
    sources = [a[name] for _, a in read.elements for name in ("src", "href") if name in a]
    assert sources
    assert all(one.startswith("data:image/png;base64,") for one in sources)


def test_elements_escape_whatever_is_plain():
    assert element("p", "<b>", element("i", "&"), class_='"', hidden=True, id=None) == (
        '<p class="&quot;" hidden>&lt;b&gt;<i>&amp;</i></p>'
    )


# ---- pages and files -----------------------------------------------------------------------------


def test_fragments_share_a_notebook():
    ex = of_text("a remarkably bad film")
    first, second = fragment([ex]), fragment([ex])
    for tag in ("<html", "<head>", "<body", "<meta", "<!doctype"):
        assert tag not in first.lower()
    identifiers = [{a[k] for _, a in Reader(s).elements for k in ("id", "name") if k in a}
                   for s in (first, second)]  # fmt: skip
    assert identifiers[0]
    assert identifiers[0].isdisjoint(identifiers[1])
    style = re.search(r"<style>(.*?)</style>", first, re.DOTALL)[1]
    rules = re.sub(r"/\*.*?\*/", "", style, flags=re.DOTALL)
    selectors = re.findall(r"^[^\s}][^{]*", rules, re.MULTILINE)
    assert selectors
    assert all(".pellucid" in selector for selector in selectors)
    assert "[data-ready]" in first  # a script that runs twice starts nothing twice
    assert ex._repr_html_().startswith("<style>")


def test_page_is_the_same_every_time():
    ex = [of_text("a remarkably bad film"), of_image()]
    assert page(ex) == page(iter(ex))


@pytest.mark.parametrize("wrong", [[], (), iter([]), "text", [1], None])
def test_nothing_to_show_is_said(wrong, tmp_path):
    with pytest.raises(ArgumentError, match=r"pellucid\.report\(\[pellucid\.explain"):
        report(wrong, tmp_path / "x.html")
    assert not list(tmp_path.iterdir())


def test_report_writes_whole_files_and_keeps_what_exists(tmp_path):
    path = tmp_path / "report.html"
    ex = of_text("a film")
    assert report(ex, str(path)) == path
    assert path.read_text("utf-8") == page([ex])
    with pytest.raises(StoreError, match="overwrite=True"):
        report([ex, ex], path)
    assert path.read_text("utf-8") == page([ex])
    assert pellucid.report([ex, ex], path, overwrite=True) == path
    assert path.read_text("utf-8") == page([ex, ex])
    assert list(tmp_path.iterdir()) == [path]


def test_unwritable_path_is_said_and_leaves_nothing(tmp_path):
    with pytest.raises(StoreError, match="cannot be written"):
        write_page("x", tmp_path / "nowhere" / "x.html")
    with pytest.raises(StoreError):
        write_page("x", tmp_path, overwrite=True)
    assert not list(tmp_path.iterdir())


# ---- terminal and notebook -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "ex",
    [
        of_text("a remarkably bad film", notes=("a note",)),
        of_text("a film", "and [bold]another[/bold] :smile:", signed=False),
        of_text("\x1b[31mred\x07\x9b", label="\x1b]0;title\x07", notes=("\x1b[2J",)),
        of_text("a film", unit="value", label="value", prediction={"value": 3.5}),
        of_image(),
        of_image(grid=(4, 1)),
        of_image(pixels=True, signed=False),
        of_text("a film", scores=torch.zeros(4)),
    ],
)
def test_show_without_a_terminal_prints_plain_text(ex, capsys):
    show(ex)
    out = capsys.readouterr().out
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", out)
    assert "saliency" in out
    assert all(name.replace("\x1b", "␛")[:3] in out for name, _ in ex.top(3))


@pytest.mark.parametrize("ex", [of_text("a bad film"), of_image(), of_image((3, 1), (90, 300))])
def test_show_colours_a_terminal(ex):
    from rich.console import Console

    from pellucid.viz.terminal import print_explanation

    file = io.StringIO()
    console = Console(file=file, force_terminal=True, color_system="truecolor", width=60)
    print_explanation(ex, console)
    assert "\x1b[" in file.getvalue()
    assert "232;115;12" in file.getvalue()


def test_show_in_a_notebook_displays_html(monkeypatch, capsys):
    shown = []
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    display = types.ModuleType("IPython.display")
    display.HTML = lambda source: source
    display.display = shown.append
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    of_text("a film").show()
    assert "pellucid" in shown[0]
    ipython.get_ipython = lambda: types.SimpleNamespace()  # IPython in a terminal
    of_text("a film").show()
    assert len(shown) == 1
    assert "saliency" in capsys.readouterr().out


# ---- matplotlib ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ex",
    [
        of_text("a remarkably bad film, all in all\n\n" + 9 * "it goes on and on "),
        of_text("costs $5 or $x^{", "not much", signed=False, label="$y_$"),
        of_text("a film", scores=torch.zeros(4)),
        of_image(),
        of_image(grid=(5, 1), channels=3),
        of_image(pixels=True, signed=False),
    ],
)
def test_plot_draws_on_axes_and_leaves_pyplot_alone(ex):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    from matplotlib.axes import Axes

    own, before = pyplot.subplots()
    try:
        drawn = ex.plot()
        assert isinstance(drawn, Axes)
        assert pyplot.get_fignums() == [own.number]
        drawn.figure.draw_without_rendering()
        assert ex.plot(before) is before
        assert pyplot.gca() is before
        own.draw_without_rendering()
    finally:
        pyplot.close(own)


def test_plot_shows_every_word_that_fits():
    pytest.importorskip("matplotlib")
    ex = of_text("a remarkably bad film, all in all")
    drawn = [text.get_text() for text in ex.plot().texts]
    assert drawn == [word.text for word in ex.words()]


def test_plot_without_matplotlib_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ArgumentError, match=r'pip install "pellucid\[plot\]"'):
        of_text("a film").plot()


# ---- a real browser ------------------------------------------------------------------------------


def browse(path, profile):
    """The page's elements after its scripts have run."""
    arguments = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
        "--no-first-run", "--disable-background-networking", "--disable-component-update",
        "--disable-sync", f"--user-data-dir={profile}", "--dump-dom", path.as_uri(),
    ]  # fmt: skip
    return subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=True).stdout


@pytest.mark.skipif(shutil.which(CHROMIUM) is None, reason=f"needs {CHROMIUM}")
def test_in_a_browser_our_script_runs_and_no_other(tmp_path: Path):
    source = page(hostile_explanations(), title="untouched")
    intruders = f'<script>{RUNS}</script><img src=x onerror="{RUNS}"></body>'
    path = tmp_path / "page.html"
    path.write_text(source.replace("</body>", intruders), encoding="utf-8")
    seen = browse(path, tmp_path / "profile")
    assert "<title>untouched</title>" in seen
    assert 'data-ready="true"' in seen  # our script ran, though the policy is strict
    assert Reader(seen).classed("tip")
    assert Reader(seen).classed("heat")[0]["tabindex"] == "0"
