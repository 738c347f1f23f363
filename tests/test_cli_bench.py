"""`pellucid bench` and `pellucid evaluate` as a stranger uses them, wrong inputs first."""

import sys

import pytest

from pellucid.cli import main


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run the command in an empty folder; its exit code, output and errors."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        verb = [] if arguments[0] == "evaluate" else ["bench"]
        monkeypatch.setattr(sys, "argv", ["pellucid", *verb, *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


FEW = ["-m", "pellucid/digits-vit", "--method", "rollout", "--metric", "sparseness"]
WRONG = {
    "no folder": (["run", "smoke-digits"], "--out RUN"),
    "no such plan": (["run", "smoke-digit", "--out", "R"], "did you mean 'smoke-digits'"),
    "no such file": (["run", "plan.toml", "--out", "R"], "there is no such plan"),
    "no such engine": (["run", "smoke-digits", "--out", "R", "--engine", "slurm"], "process"),
    "no such part": (["run", "smoke-digits", "--out", "R", "--shard", "9/8"], "--shard 1/8"),
    "no attempts": (["run", "smoke-digits", "--out", "R", "--attempts", "0"], "attempts=2"),
    "no workers": (["run", "smoke-digits", "--out", "R", "--workers", "0"], "workers=1"),
    "GPUs without Ray": (["run", "smoke-digits", "--out", "R", "--gpus", "0.5"], "--engine ray"),
    "no data": (["evaluate", "nowhere.csv", *FEW], "which does not exist"),
    "no such samples": (["evaluate", "bundled/sounds", *FEW], "kind = 'images'"),
    "no such method": (["evaluate", "bundled/images", *FEW, "--method", "rolout"], "'rollout'"),
    "no option": (["evaluate", "bundled/images", *FEW, "--option", "x"], "--option text=review"),
    "no study": (["table", "R"], "holds no study"),
    "nothing to compare": (["compare", "R", "S"], "holds no study"),
    "several without a place": (["merge", "R", "S"], "merge R S --out MERGED"),
    "no such plan to show": (["plans", "--show", "smok"], "smoke-digits"),
}


@pytest.mark.parametrize(("arguments", "said"), WRONG.values(), ids=WRONG)
def test_wrong_inputs_are_answered(run, tmp_path, arguments, said):
    code, _, err = run(*arguments)
    assert code == 2
    assert said in err
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == [], "nothing was written"


def test_plans_are_listed_and_shown(run):
    code, out, _ = run("plans")
    assert code == 0
    assert "smoke-digits" in out
    code, out, _ = run("plans", "--show", "smoke-digits")
    assert 'load = "pellucid/digits-vit"' in out


def test_a_dry_run_says_what_it_costs_and_writes_nothing(run, tmp_path):
    code, out, _ = run("run", "smoke-digits", "--dry-run")
    assert code == 0
    assert "8 units, about" in out
    assert "memory: " in out
    assert list(tmp_path.iterdir()) == []


def test_a_study_from_start_to_table(run, tmp_path):
    code, out, err = run("run", "smoke-digits", "--out", "R", "--shard", "1/2")
    assert (code, err) == (0, "")
    assert "4 units done" in out
    assert "pellucid bench merge R" in out
    run("run", "smoke-digits", "--out", "R", "--shard", "2/2")
    code, out, _ = run("merge", "R")
    assert "8 units taken" in out
    code, out, _ = run("run", "smoke-digits", "--out", "R")
    assert "0 units done" in out, "all is known"
    code, out, _ = run("table", "R")
    assert "| vtranm | " in out
    for name, format in (("t.csv", "csv"), ("t.tex", "latex"), ("t.html", "html")):
        assert run("table", "R", "--format", format, "--out", name)[0] == 0
        assert (tmp_path / name).stat().st_size > 100
    code, _, err = run("table", "R", "--format", "parquet")
    assert (code, "--out rows.parquet" in err) == (2, True)
    code, _, err = run("table", "R", "--format", "docx")
    assert (code, "--format" in err) == (2, True)
    code, out, _ = run("compare", "R", "R")
    assert code == 0
    assert out.count("+0.000 (+0.000 to") == 12
    page = (tmp_path / "R" / "report.html").read_text(encoding="utf-8")
    assert page.count("<img") == 32
    assert page.count("<svg") == 2


def test_a_small_study_without_a_plan(run, tmp_path):
    code, out, err = run("evaluate", "bundled/images", *FEW, "--method", "random")
    assert (code, err) == (0, "")
    assert "| rollout | **" in out
    assert list(tmp_path.iterdir()) == []
    run("evaluate", "bundled/images", *FEW, "--out", "R")
    assert (tmp_path / "R" / "report.html").is_file()
