"""What the documents show is what happens: tables, code, commands, the diff of a new method."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pellucid.cli import main
from pellucid.methods import METHODS
from pellucid.testing import check_method
from pellucid.testing.docs import EXAMPLE, with_diff, with_tables
from pellucid.testing.tiny import build

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def blocks(text, language):
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_the_readmes_tables_are_those_of_the_code():
    assert with_tables(README) == README, "type: python -m pellucid.testing.docs"


def test_the_readmes_python_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks(README, "python"):
        exec(block, names)
    capsys.readouterr()
    assert {path.name for path in tmp_path.iterdir()} == {"report.html", "digits.html", "walk.html"}


def test_the_page_on_walks_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks((ROOT / "docs" / "walks.md").read_text(encoding="utf-8"), "python"):
        exec(block, names)
    assert float(names["walk"].drift[-1]) < 1e-6
    assert len(names["metric"].values) == 9
    assert {path.name for path in tmp_path.iterdir()} == {"walk.html", "walk.pellucid"}


def test_the_page_of_benchmarks_is_that_of_the_stored_runs():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        from table import page
    finally:
        sys.path.pop(0)
    text = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert text == page(), "type: python benchmarks/table.py"


def test_the_readmes_commands_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    commands = [
        line
        for block in blocks(README, "console")
        for line in block.replace("\\\n", " ").splitlines()
        if line.startswith("pellucid ")
    ]
    assert len(commands) == 4
    for command in commands:
        monkeypatch.setattr(sys, "argv", shlex.split(command, comments=True))
        with pytest.raises(SystemExit) as stop:
            main()
        assert not stop.value.code
    capsys.readouterr()
    assert (tmp_path / "review.html").is_file()
    assert (tmp_path / "walk-out.html").is_file()


@pytest.mark.parametrize("family", ["bert", "vit", "llama-lm", "swin"])
def test_the_method_in_contributing_keeps_its_promises(family):
    (diff,) = blocks(CONTRIBUTING, "diff")
    (new_file,) = (part for part in diff.split("diff --git ") if "--- /dev/null" in part)
    added = [line for line in new_file.splitlines() if line.startswith("+")]
    code = "\n".join(line[1:] for line in added if not line.startswith("+++"))
    names = {}
    exec(code, names)
    check_method(names["gradient_norm"], lambda dtype: build(family, dtype=dtype))


def test_the_diff_in_contributing_is_that_of_the_code():
    assert with_diff(CONTRIBUTING, ROOT) == CONTRIBUTING, "type: python -m pellucid.testing.docs"


NEWCOMER = """
from pathlib import Path
import pellucid
from pellucid.testing.docs import with_tables
model = pellucid.load("pellucid/reviews-bert")
found = pellucid.explain(model, "a fine film", method="gradient_norm")
assert float(found.scores.min()) > 0
assert "`gradient_norm`" in with_tables(Path("README.md").read_text(encoding="utf-8"))
"""


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
@pytest.mark.skipif(EXAMPLE in METHODS, reason="it has been applied to this tree")
def test_a_newcomer_who_applies_it_has_a_method(tmp_path):
    """Applied to a copy of the tree and used there, README table included."""
    (diff,) = blocks(CONTRIBUTING, "diff")
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "README.md", tmp_path)
    subprocess.run(["git", "apply", "-"], input=diff, text=True, cwd=tmp_path, check=True)
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "src")}
    command = [sys.executable, "-c", NEWCOMER]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)


@pytest.mark.parametrize(
    "name", ["README.md", "CONTRIBUTING.md", "docs/architecture.md", "docs/walks.md"]
)
def test_links_lead_somewhere(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (ROOT / name).parent.joinpath(target).exists(), target


def test_make_targets_that_are_named_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"\bmake ([a-z]+)\b", README + CONTRIBUTING)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
