"""Walks from the command line as a stranger takes them, wrong inputs first."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace

import pytest
import torch

import pellucid
from pellucid import Above, Rectangle, Top, Trajectory
from pellucid._decoded import Decoded
from pellucid.cli import main
from pellucid.cli._tokens import parse_tokens
from pellucid.models import sample_images

BERT, VIT = "pellucid/reviews-bert", "pellucid/digits-vit"
DIGIT = sample_images()[0]
TEXT = ["explore", "a fine film", "-m", BERT]


@pytest.fixture
def run(capsys, monkeypatch):
    """Run the command; its exit code, output and errors."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["pellucid", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def shown(monkeypatch):
    """What is decoded and reported, without decoding or reporting."""
    calls = {"options": [], "reported": []}

    def decode(self, model=None, **options):
        calls["options"].append(options)
        if self.space.startswith("hidden"):
            raise pellucid.UnsupportedCombination("these points are no inputs")
        saved = len(self.iterations)
        return Decoded(
            using="a test",
            iterations=self.iterations,
            labels=self.labels,
            probabilities=self.probabilities,
            agrees=torch.arange(saved) > 0,
            texts=("a decoded text",) * saved,
        )

    def report(found, path, *, overwrite=False):
        calls["reported"] += found
        path.write_text("page")
        return path

    monkeypatch.setattr(Trajectory, "decode", decode)
    monkeypatch.setattr(pellucid, "report", report)
    return calls


# ---- what is wrong, and what to type -------------------------------------------------------------


WRONG = {
    "no model": (["explore", "a fine film"], "--model"),
    "nothing to walk from": (["explore", "-m", BERT], "pellucid explore 'a fine film'"),
    "unknown model": (["explore", "x", "-m", "pellucid/review"], "did you mean"),
    "unknown goal": ([*TEXT, "--goal", "stey"], "--goal 'stay'"),
    "unknown class": ([*TEXT, "--goal", "postive"], "--goal 'positive'"),
    "class out of range": ([*TEXT, "--goal", "7"], "no such class"),
    "unknown preset": ([*TEXT, "--preset", "papr"], "--preset paper"),
    "a preset to a class": ([*TEXT, "--preset", "paper", "--goal", "negative"], "preset=None"),
    "unknown space": ([*TEXT, "--space", "embeding"], "space='embedding'"),
    "space of images": ([*TEXT, "--space", "pixels"], "reads texts"),
    "space beyond the last": ([*TEXT, "--space", "hidden:99"], "space='hidden:4'"),
    "space without number": ([*TEXT, "--space", "hidden:last"], "space='hidden:4'"),
    "no steps": ([*TEXT, "--steps", "0"], "steps=1000"),
    "steps in words": ([*TEXT, "--steps", "many"], "--steps"),
    "no distance": ([*TEXT, "--distance", "-1"], "distance=1.0"),
    "unknown region": ([*TEXT, "--within", "box"], "within='bounds'"),
    "no region here": ([*TEXT, "--within", "bounds", "--space", "hidden:1"], "pellucid.feasible"),
    "unknown rule": ([*TEXT, "--set", "outpt=logits"], "--set output=..."),
    "rule without value": ([*TEXT, "--set", "tolerance"], "NAME=VALUE"),
    "rule of the wrong type": ([*TEXT, "--set", "tolerance=low"], "tolerance='low'"),
    "unknown output": ([*TEXT, "--set", "output=logit"], "output='logits'"),
    "a word that is not there": ([*TEXT, "--tokens", "dull"], "'fine'"),
    "a token that is not there": ([*TEXT, "--tokens", "77"], "from 0 to 4"),
    "no tokens": ([*TEXT, "--tokens", ","], "--tokens top:5"),
    "a broken pattern": ([*TEXT, "--tokens", "/(/"], "--tokens top:5"),
    "a pattern that is not there": ([*TEXT, "--tokens", "/dull/"], "'fine'"),
    "no number of tokens": ([*TEXT, "--tokens", "top:x"], "--tokens top:5"),
    "no token at all": ([*TEXT, "--tokens", "top:0"], "at least 1"),
    "above all": ([*TEXT, "--tokens", "above:1"], "Above(0.5)"),
    "half a rectangle": ([*TEXT, "--tokens", "rect:1,2"], "--tokens top:5"),
    "a rectangle of a text": ([*TEXT, "--tokens", "rect:0,0,2,2"], "tokens=['a']"),
    "a rectangle beyond the image": (
        ["explore", DIGIT, "-m", VIT, "--tokens", "rect:0,0,99,99"],
        "Rectangle(0, 0, 7, 7)",
    ),
    "words of an image": (["explore", DIGIT, "-m", VIT, "--tokens", "dull"], "tokens=[10, 11]"),
    "a text for an image model": (["explore", "a film", "-m", VIT], "no such image file"),
    "an image for a text model": (["explore", DIGIT, "-m", BERT], "pellucid explore"),
    "unknown decoding": ([*TEXT, "--using", "inverse"], "--using nearest"),
    "a language model that is missing": ([*TEXT, "--using", "mlm"], "--mlm"),
    "a language model for nothing": ([*TEXT, "--using", "nearest", "--mlm", "x"], "--mlm"),
    "a language model for images": (["explore", DIGIT, "-m", VIT, "--mlm", "x"], "--mlm"),
    "unknown language model": ([*TEXT, "--mlm", "pellucid/reviews-mlmm"], "did you mean"),
    "a checkpoint nowhere": ([*TEXT, "--checkpoint", "no/where"], "mkdir -p no"),
    "a page nowhere": ([*TEXT, "--out", "nowhere/report.html"], "mkdir -p nowhere"),
    "a folder that is a file": ([*TEXT, "--out", __file__], "--out walks"),
    "numbers nowhere": ([*TEXT, "--json", "nowhere/numbers.json"], "mkdir -p nowhere"),
    "two outputs in one file": ([*TEXT, "--out", "a.html", "--json", "a.html"], "--json a.json"),
    "policy": ([*TEXT, "--long", "cut"], "long='truncate'"),
    "device": ([*TEXT, "--device", "toaster"], "device='toaster'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_inputs_say_what_to_type(run, case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments, words = WRONG[case]
    code, out, error = run(*arguments)
    assert code == 2
    assert words in error
    assert "Traceback" not in error + out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["walks/walk-1.pellucid", "walks/report.html", "numbers.json"])
def test_existing_files_are_kept_before_any_work(run, tmp_path, name):
    (tmp_path / "walks").mkdir()
    (tmp_path / name).write_text("mine")
    places = ["--out", tmp_path / "walks", "--json", tmp_path / "numbers.json"]
    code, _, error = run("explore", "x", "-m", "no-such-model-either", *places)
    assert code == 2
    assert "--force" in error
    assert (tmp_path / name).read_text() == "mine"


@pytest.mark.parametrize("option", [["--preset", "papr"], ["--set", "outpt=1"], ["--tokens", ","]])
def test_words_are_looked_up_before_a_model_is_loaded(run, option):
    code, _, error = run("explore", "x", "-m", "no-such-model-either", *option)
    assert code == 2
    assert "no-such-model" not in error


# ---- tokens --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (None, None),
        ("all", "all"),
        ("3", [3]),
        ("1, 2,5", [1, 2, 5]),
        ("film", ["film"]),
        ("fine,film", ["fine", "film"]),
        ("fine,2", ["fine", 2]),
        ("/fi.*,/", re.compile("fi.*,")),
        ("top:5", Top(5)),
        ("above:0.5", Above(0.5)),
        ("rect:0,1,2,3", Rectangle(0, 1, 2, 3)),
        ("http:", ["http:"]),
    ],
)
def test_tokens_as_they_are_typed(written, expected):
    assert parse_tokens(written) == expected


def test_words_and_positions_can_be_mixed(run):
    code, out, _ = run(*TEXT, "--steps", 1, "--tokens", "film,1", "--json", "-")
    assert code == 0
    assert json.loads(out)[0]["tokens"] == [1, 3]


# ---- walks ---------------------------------------------------------------------------------------


def test_what_is_walked_is_what_the_function_walks(run, reviews):
    """Number by number, through every option."""
    options = ["--steps", 4, "--save-every", 2, "--seed", 3, "--tokens", "fine", "--repeats", 2]
    options += ["--set", "direction=haar", "--set", "tolerance=1e-3", "--distance", 9.0]
    code, out, _ = run(*TEXT, *options, "--within", "bounds", "--space", "word", "--json", "-")
    assert code == 0
    rules = {"steps": 4, "save_every": 2, "seed": 3, "tokens": ["fine"], "repeats": 2}
    rules |= {"direction": "haar", "tolerance": 1e-3, "distance": 9.0}
    rules |= {"within": "bounds", "space": "word"}
    expected = pellucid.explore(reviews, ["a fine film"], **rules)
    found = json.loads(out)
    assert len(found) == len(expected) == 2
    for one, other in zip(found, expected, strict=True):
        other = other.to_dict()
        for name in ("settings", "tokens", "series", "probabilities", "predicted", "outcome"):
            assert one[name] == other[name], name


def test_a_table_of_what_happened(run):
    code, out, _ = run("explore", "a fine film", "no fun", "-m", BERT, "--steps", 2)
    assert code == 0
    lines = out.splitlines()
    assert " ".join(lines[0].split()) == "input start end drift distance steps outcome"
    assert any(line.startswith("a fine film ") for line in lines)
    assert out.count("completed") == 2
    assert "\x1b" not in out


def test_a_walk_that_stopped_says_why(run, reviews, monkeypatch):
    done = pellucid.explore(reviews, "a fine film", steps=1)
    stuck = replace(done, completed=False, outcome="No step was short enough.", notes=("A note.",))
    monkeypatch.setattr(pellucid, "explore", lambda *_, **__: [done, stuck])
    code, out, _ = run("explore", "a fine film", "no fun", "-m", BERT)
    assert code == 0
    assert out.count("completed") == out.count("stopped") == 1
    assert out.splitlines()[-2:] == ["no fun: No step was short enough.", "no fun: A note."]


@pytest.mark.parametrize("preset", ["paper", "published", "released"])
@pytest.mark.parametrize("goal", ["stay", "leave"])
def test_presets(run, preset, goal):
    code, out, _ = run(*TEXT, "--steps", 2, "--preset", preset, "--goal", goal, "--json", "-")
    assert code == 0
    (found,) = json.loads(out)
    assert found["goal"] == goal
    assert found["settings"]["longest"] == {"number": "inf"}


def test_goals_are_classes_by_name_or_number(run):
    for goal in ("negative", "0"):
        code, out, _ = run(*TEXT, "--goal", goal, "--json", "-")
        assert code == 0
        (found,) = json.loads(out)
        assert found["predicted"][-1] == "negative"
    code, out, _ = run("explore", DIGIT, "-m", VIT, "--goal", "3", "--json", "-")
    assert code == 0
    assert json.loads(out)[0]["predicted"][-1] == "3"


def test_texts_of_a_file_and_pairs(run, tmp_path):
    file = tmp_path / "texts.txt"
    file.write_text("a fine film\n\nno fun at all\n", encoding="utf-8")
    options = ["--file", file, "--pair", "so they say", "--steps", 1]
    code, out, _ = run("explore", "-m", BERT, *options, "--json", "-")
    assert code == 0
    pairs = [["a fine film", "so they say"], ["no fun at all", "so they say"]]
    assert [one["parts"] for one in json.loads(out)] == pairs


def test_hostile_text_cannot_steer_the_terminal(run):
    code, out, _ = run("explore", "a \x1b[31mred\x1b]0;title\x07 film", "-m", BERT, "--steps", 1)
    assert code == 0
    assert "\x1b" not in out
    assert "\x07" not in out


def test_a_checkpoint_is_passed_on(run, tmp_path):
    (tmp_path / "walk").write_bytes(b"nonsense")
    code, _, error = run(*TEXT, "--steps", 2, "--checkpoint", tmp_path / "walk")
    assert code == 2
    assert "cannot be continued" in error


# ---- what is kept --------------------------------------------------------------------------------


def test_a_folder_of_walks_and_their_page(run, shown, tmp_path):
    out = tmp_path / "new" / "walks"
    options = ["--steps", 2, "--save-every", 1, "--out", out]
    code, printed, _ = run("explore", DIGIT, "-m", VIT, "--repeats", 2, *options)
    assert code == 0
    assert sorted(path.name for path in out.iterdir()) == [
        *("report.html", "walk-1.pellucid", "walk-2.pellucid")
    ]
    loaded = [Trajectory.load(out / f"walk-{i}.pellucid") for i in (1, 2)]
    assert [one.settings["repeat"] for one in loaded] == [0, 1]
    for (walk, decoded), one in zip(shown["reported"], loaded, strict=True):
        assert torch.equal(walk.points, one.points)
        assert decoded.using == "a test"
    assert "2 of 3" in printed
    assert f"{DIGIT.name} (2)" in " ".join(printed.split())
    assert run("explore", DIGIT, "-m", VIT, "--repeats", 2, *options)[0] == 2
    assert run("explore", DIGIT, "-m", VIT, "--repeats", 2, *options, "--force")[0] == 0


def test_a_page_alone(run, shown, tmp_path):
    code, printed, _ = run(*TEXT, "--steps", 1, "--out", tmp_path / "page.html")
    assert code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
    assert len(shown["reported"]) == 1
    assert "a decoded text" in " ".join(printed.split())


def test_numbers_alone_on_standard_output(run, shown, tmp_path):
    code, out, error = run(*TEXT, "--steps", 1, "--out", tmp_path / "walks", "--json", "-")
    assert code == 0
    assert len(json.loads(out)) == 1
    assert "report" in error


def test_numbers_in_a_file(run, tmp_path):
    code, out, _ = run(*TEXT, "--steps", 1, "--json", tmp_path / "numbers.json")
    assert code == 0
    assert "completed" in out
    (found,) = json.loads((tmp_path / "numbers.json").read_text(encoding="utf-8"))
    assert len(found["series"]["drift"]) == 2


def test_how_to_decode_is_passed_on(run, shown):
    assert run(*TEXT, "--steps", 1, "--using", "nearest")[0] == 0
    assert shown["options"] == [{"using": "nearest"}]
    code, out, _ = run(*TEXT, "--steps", 1, "--using", "head", "--mlm", "pellucid/reviews-mlm")
    assert code == 0
    assert shown["options"][1]["using"] == "head"
    assert shown["options"][1]["mlm"].task == "masked"
    assert "a decoded text" in " ".join(out.split())
    masked = ["explore", "a [MASK] film", "-m", "pellucid/reviews-mlm", "--steps", 1]
    assert run(*masked, "--using", "mlm")[0] == 0
    assert shown["options"][2] == {"using": "mlm"}


def test_points_that_are_no_inputs_are_shown_without(run, shown, tmp_path):
    options = ["--steps", 1, "--space", "hidden:1"]
    code, _, error = run(*TEXT, *options, "--out", tmp_path / "walks")
    assert code == 0
    assert "not decoded: these points are no inputs" in error
    assert isinstance(shown["reported"][0], Trajectory)
    code, _, error = run(*TEXT, *options, "--using", "nearest")
    assert code == 2
    assert "these points are no inputs" in error
