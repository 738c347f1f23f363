"""The command line as a stranger uses it, wrong inputs first."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import pytest

import pellucid
from pellucid.cli import main
from pellucid.cli.demo import METHODS as SHOWN
from pellucid.methods import METHODS
from pellucid.models import sample_images

BERT, VIT = "pellucid/reviews-bert", "pellucid/digits-vit"


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


WRONG = {
    "no model": (["explain", "a fine film"], "--model"),
    "nothing to explain": (["explain", "-m", BERT], "there is nothing to explain"),
    "unknown model": (["explain", "x", "-m", "pellucid/review"], "did you mean"),
    "unknown method": (["explain", "x", "-m", BERT, "--method", "rolout"], "--method rollout"),
    "unknown target": (["explain", "x", "-m", BERT, "--target", "postive"], "'positive'"),
    "target out of range": (["explain", "x", "-m", BERT, "--target", "7"], "no such class"),
    "unknown parameter": (
        ["explain", "x", "-m", BERT, "--method", "rollout", "--set", "discart=0.9"],
        "--set discard=...",
    ),
    "parameter without value": (["explain", "x", "-m", BERT, "--set", "discard"], "NAME=VALUE"),
    "parameter of the wrong type": (
        ["explain", "x", "-m", BERT, "--method", "rollout", "--set", "discard=much"],
        "discard='much'",
    ),
    "policy": (["explain", "x", "-m", BERT, "--long", "cut"], "long='truncate'"),
    "a text for an image model": (["explain", "a fine film", "-m", VIT], "no such image file"),
    "an image for a text model": (["explain", sample_images()[0], "-m", BERT], "reads texts"),
    "a file that is not there": (["explain", "-m", BERT, "--file", "nowhere.txt"], "nowhere.txt"),
    "a folder that is not there": (
        ["explain", "x", "-m", BERT, "--out", "nowhere/report.html"],
        "mkdir -p nowhere",
    ),
    "two outputs in one file": (
        ["explain", "x", "-m", BERT, "--out", "page.html", "--json", "./page.html"],
        "--json page.json",
    ),
    "a folder that is a file": (["demo", "--out", __file__], "--out pellucid-demo"),
    "a folder inside a file": (["demo", "--out", f"{__file__}/demo"], "--out pellucid-demo"),
    "device": (["explain", "x", "-m", BERT, "--device", "toaster"], "device='toaster'"),
    "unknown verb": (["explian"], "explain"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_inputs_say_what_to_type(run, case):
    arguments, words = WRONG[case]
    code, out, error = run(*arguments)
    assert code == 2
    assert words in error
    assert "Traceback" not in error + out


def test_existing_files_are_kept_before_any_work(run, tmp_path):
    page = tmp_path / "report.html"
    page.write_text("mine")
    code, _, error = run("explain", "x", "-m", "no-such-model-either", "--out", page)
    assert code == 2
    assert "--force" in error
    assert page.read_text() == "mine"


def test_a_method_is_looked_up_before_a_model_is_loaded(run):
    code, _, error = run("explain", "x", "-m", "no-such-model-either", "--method", "rolout")
    assert code == 2
    assert "--method rollout" in error


def test_a_text_is_explained_by_several_methods(run, tmp_path):
    page, numbers = tmp_path / "report.html", tmp_path / "numbers.json"
    code, out, _ = run(
        *("explain", "a fine film", "-m", BERT, "--method", "rollout", "--method", "random"),
        *("--set", "discard=0.5", "--seed", "3", "--target", "negative"),
        *("--out", page, "--json", numbers),
    )
    assert code == 0
    assert "rollout(fuse='mean', discard=0.5, start=0, legacy_norm=False)" in out
    assert "\x1b" not in out
    assert page.read_text(encoding="utf-8").startswith("<!")
    found = json.loads(numbers.read_text(encoding="utf-8"))
    assert [one["method"] for one in found] == ["rollout", "random"]
    assert found[0]["params"]["discard"] == 0.5
    assert {one["label"] for one in found} == {"negative"}
    assert {one["provenance"]["seed"] for one in found} == {3}


def test_a_preset_is_set_like_a_parameter(run, monkeypatch):
    presets = {"paper": {"discard": 0.5, "fuse": "max"}}
    monkeypatch.setitem(METHODS, "rollout", replace(METHODS["rollout"], presets=presets))
    both = ("--method", "rollout", "--method", "random", "--json", "-")
    code, out, _ = run("explain", "a film", "-m", BERT, *both, "--set", "preset=paper")
    assert code == 0
    first, second = json.loads(out)
    untouched = {"start": 0, "legacy_norm": False}
    assert first["params"] == {"discard": 0.5, "fuse": "max"} | untouched
    assert second["params"] == {}
    code, _, error = run("explain", "a film", "-m", BERT, *both, "--set", "preset=papre")
    assert code == 2
    assert "preset='paper'" in error


def test_json_on_standard_output_is_nothing_but_json(run):
    code, out, _ = run("explain", "a fine film", "a dull film", "-m", BERT, "--json", "-")
    assert code == 0
    assert [one["parts"] for one in json.loads(out)] == [["a fine film"], ["a dull film"]]


def test_a_digit_named_like_a_number_is_a_class(run):
    code, out, _ = run("explain", sample_images()[0], "-m", VIT, "--target", "3", "--json", "-")
    assert code == 0
    assert json.loads(out)[0]["label"] == "3"


def test_a_file_of_texts_is_one_text_a_line(run, tmp_path):
    file = tmp_path / "texts.txt"
    file.write_text("a fine film\n\nno fun at all\n", encoding="utf-8")
    code, out, _ = run("explain", "-m", BERT, "--file", file, "--json", "-")
    assert code == 0
    assert [one["parts"][0] for one in json.loads(out)] == ["a fine film", "no fun at all"]


def test_pairs_and_long_texts(run):
    code, out, _ = run("explain", "a film", "--pair", "is fine", "-m", BERT, "--json", "-")
    assert code == 0
    assert json.loads(out)[0]["parts"] == ["a film", "is fine"]
    long = "a fine film " * 200
    assert run("explain", long, "-m", BERT)[0] == 2
    code, out, _ = run("explain", long, "-m", BERT, "--long", "windows", "--json", "-")
    assert code == 0
    assert "windows" in json.loads(out)[0]["notes"][0]


def test_hostile_text_cannot_steer_the_terminal(run):
    code, out, _ = run("explain", "a \x1b[31mred\x1b]0;title\x07 film", "-m", BERT)
    assert code == 0
    assert "\x1b" not in out
    assert "\x07" not in out


@pytest.mark.parametrize("verb", ["methods", "metrics", "models"])
def test_lists(run, verb):

    code, out, _ = run(verb)
    assert code == 0
    listed = {
        "methods": [entry.name for entry in pellucid.list_methods()],
        "metrics": [entry.name for entry in pellucid.list_metrics()],
        "models": pellucid.list_models(),
    }[verb]
    assert all(name in out for name in listed)


def test_lists_for_a_model_say_why_not(run):
    code, out, _ = run("metrics", "--for", BERT)
    assert code == 0
    assert "images" not in out.split("text_deletion")[1].split("\n")[0]
    assert "reads texts" in " ".join(out.split())


def test_the_demo_writes_one_page_and_a_table(run, tmp_path):
    code, out, _ = run("demo", "--out", tmp_path / "demo")
    assert code == 0
    assert str(tmp_path / "demo" / "report.html") in "".join(out.split("\n"))
    page = (tmp_path / "demo" / "report.html").read_text(encoding="utf-8")
    assert page.count('type="range"') >= 2, "a slider for each walk"
    assert page.count("<article") == 2 * (len(SHOWN) + 1), "methods and a walk, of two inputs"
    assert run("demo", "--out", tmp_path / "demo")[0] == 0  # again, over its own page


def test_help_loads_nothing_heavy():
    program = (
        "import sys\n"
        "sys.argv = ['pellucid', '--help']\n"
        "from pellucid.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'torch', 'transformers', 'numpy', 'matplotlib', 'PIL'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "explain" in done.stdout
