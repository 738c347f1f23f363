"""Plans of walks: their numbers are those of `walk_unit`, whoever walks and in whatever order."""

import tomllib

import pytest

import pellucid
from pellucid import ArgumentError, bench
from pellucid.bench.check import checked
from pellucid.bench.formats import FORMATS
from pellucid.bench.plan import as_plan
from pellucid.bench.probe import estimates
from pellucid.bench.store import Store
from pellucid.explorer.studies import headings, walk_unit
from pellucid.models import sample_images

PLAN = """
[study]
repetitions = 2
[walking]
steps = 4
save_every = 2
preset = "published"
decode = false
tokens = { top = 3 }
[[models]]
load = "pellucid/digits-vit"
[[data]]
read = "bundled"
kind = "images"
take = 2
[[walks]]
name = "in"
walk = "SiMEC"
[[walks]]
name = "out"
walk = "SiMExp"
beside = "in"
[[metrics]]
metric = "mean_step"
[[metrics]]
metric = "ranking_changes"
[[metrics]]
metric = "volume_ratio, log10"
[[metrics]]
metric = "token_change"
"""


def planned(*changes):
    text = PLAN
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return as_plan(tomllib.loads(text), "test", text)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("walks") / "run"
    summary = bench.run(planned(), folder)
    assert summary.states == {"waiting": 0, "done": 4, "failed": 0, "elsewhere": 0}
    return folder


def rows(folder):
    with Store.reading(folder) as store:
        return {
            (record.labels["walk"], row.sample, row.measure): row
            for record in store.records()
            for row in record.rows
        }


def test_the_numbers_are_means_of_walk_unit(run):
    found = rows(run)
    model, image = pellucid.load("pellucid/digits-vit"), sample_images()[1]
    options = {"steps": 4, "save_every": 2, "preset": "published", "decode": False}
    options["tokens"] = pellucid.Top(3)
    expected = {"in": [], "out": []}
    for repetition in range(2):
        inside = walk_unit(model, image, "SiMEC", repetition=repetition, **options)
        outside = walk_unit(
            model, image, "SiMExp", repetition=repetition, beside=inside.walk, **options
        )
        expected["in"].append(inside.numbers)
        expected["out"].append(outside.numbers)
    for walk in ("in", "out"):
        for measure in ("mean_step", "ranking_changes"):
            each = [numbers[measure] for numbers in expected[walk]]
            row = found[walk, image.stem, measure]
            assert row.detail["each"] == each
            assert row.value == sum(each) / 2


def test_a_column_that_a_walk_has_not_has_no_row(run):
    found = rows(run)
    assert {measure for _, _, measure in found} <= set(headings())
    assert not any(measure == "token_change" for _, _, measure in found)
    assert {walk for walk, _, measure in found if measure.startswith("volume")} == {"out"}


def test_a_walk_beside_is_walked_again_by_another_worker(run):
    """A unit done alone has the same numbers as one that follows the walk it is compared with."""
    study = checked(planned())
    last = list(study.units())[-1]
    assert last.labels["walk"] == "out"
    alone = study.open()(last).rows
    known = rows(run)
    for row in alone:
        assert known["out", row.sample, row.measure].value == row.value


def test_a_table_of_walks_has_no_best(run):
    table = bench.table_of(run)
    assert table.columns == ("model", "data", "walk")
    assert not any(cell.best or cell.first for cell in table.cells)
    shown = FORMATS["md"](table).split("Mean (or")[0]
    assert "ranking_changes |" in shown
    assert not set("↑↓*") & set(shown)
    assert "<html" in (run / "report.html").read_text(encoding="utf-8")
    FORMATS["latex"](table)


def test_keys_change_with_what_decides_a_walk():
    def keys(*changes):
        return [unit.key for unit in checked(planned(*changes)).units()]

    plain = keys()
    assert len(set(plain)) == 4
    assert keys(("take = 2", 'take = 2\nname = "digits"')) == plain
    other = keys(('walk = "SiMEC"', 'walk = "SiMEC"\nscale = 2'))
    assert not set(other) & set(plain)  # also of the walk that is compared with this one
    assert not set(keys(("repetitions = 2", "repetitions = 3"))) & set(plain)
    assert not set(keys(("steps = 4", "steps = 5"))) & set(plain)


def test_what_it_costs_is_told_from_short_walks():
    found = estimates(checked(planned(("steps = 4", "steps = 40"))))
    assert [one.labels[-1] for one in found] == ["in", "out"]
    assert all(one.units == 2 and one.seconds > 0 and one.forwards > 0 for one in found)


def test_all_that_is_wrong_is_said_at_once():
    plan = planned(
        ('"SiMEC"', '"SiMEX"'),
        ('beside = "in"', 'besides = "in"'),
        ("{ top = 3 }", "{ best = 3 }"),
        ('"mean_step"', '"mean_stop"'),
        ('"ranking_changes"', '"ranking_changes"\nstride = 3'),
        ('kind = "images"', 'kind = "texts"'),
    )
    with pytest.raises(ArgumentError) as error:
        checked(plan)
    message = str(error.value)
    for piece in (
        "6 problems",
        "walk = 'SiMExp'",
        "{ above = 0.5 }",
        "beside = ...",
        "metric = 'mean_step'",
        "`stride` and `top` belong to [walking]",
        "does not read such data",
    ):
        assert piece in message


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('beside = "in"', 'beside = "out"', "SiMEC walk to compare with"),
        ('beside = "in"', 'beside = "in"\ntokens = { top = 2 }', "the same tokens and space"),
        ("steps = 4", 'steps = 4\nspace = "hiden:1"', "hidden"),
    ],
)
def test_what_does_not_fit_is_said(old, new, said):
    with pytest.raises(ArgumentError, match=said):
        checked(planned((old, new)))


def test_a_plan_is_of_walks_or_of_methods():
    with pytest.raises(ArgumentError, match=r"\[\[walks\]\]"):
        as_plan(tomllib.loads(PLAN + '[[methods]]\nmethod = "random"\n'), "both")


def test_walks_at_the_mask_move_the_mask(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    sentences = ["[The nurse] met the cook and [she] liked [her] food.", "[The cook] left."]
    columns = {"kind": ["pro"] * 2, "type": [1] * 2, "split": ["dev"] * 2, "sentence": sentences}
    parquet.write_table(pyarrow.table(columns), tmp_path / "wino.parquet")
    (sample,) = pellucid.data.winobias(tmp_path / "wino.parquet", mask="[MASK]")
    assert sample.input == "The nurse met the cook and [MASK] liked her food."
    found = [sample.input[a:b] for a, b in sample.about["mentions"]]
    assert found == ["The nurse", "[MASK]", "her"]
    model = pellucid.load("pellucid/reviews-mlm")
    walk = pellucid.explore(
        model, sample.input, steps=1, tokens="[MASK]", preset="published", top_k=5
    )
    assert [walk.segments[token].text for token in walk.tokens] == ["[MASK]"]
    assert float(walk.series["step"][1]) > 0
