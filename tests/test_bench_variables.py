"""What a plan leaves open, and the tables of papers that it shows."""

import json
import tomllib

import pytest

from pellucid import ArgumentError
from pellucid._references import REFERENCES
from pellucid.bench.formats import FORMATS
from pellucid.bench.plan import as_plan, plan_names, plan_text, read_plan
from pellucid.bench.published import printed, published_in, published_names, published_table
from pellucid.bench.variables import assignments, filled, open_variables

OPEN = """
[variables.model]
about = "a classifier"
[variables.take]
about = "how many"
default = 5
[study]
published = ["tis: Table 1, insertion"]
[[models]]
load = "$model"
[[data]]
read = "bundled"
kind = "images"
take = "$take"
[[methods]]
method = "random"
[[metrics]]
metric = "sparseness"
"""


def planned(text=OPEN, **values):
    return as_plan(tomllib.loads(text), "test", text, values)


def test_a_variable_becomes_its_value_with_its_type():
    plan = planned(model="m")
    assert plan.models[0].what == "m"
    assert plan.data[0].options["take"] == 5
    assert planned(model="m", take=2).data[0].options["take"] == 2
    assert plan.variables == {"model": "m", "take": 5}


def test_what_a_shell_passes_is_toml_or_a_text():
    given = ["take=3", "model=a/b c", "flag=true", "eta=0.5", "text=a=b", 'name="3"']
    assert assignments(given) == {
        "take": 3,
        "model": "a/b c",
        "flag": True,
        "eta": 0.5,
        "text": "a=b",
        "name": "3",
    }
    with pytest.raises(ArgumentError, match="--set model=pellucid/digits-vit"):
        assignments(["model"])


@pytest.mark.parametrize(
    ("text", "values", "said"),
    [
        (OPEN, {}, r"no value for model \(a classifier\)"),
        (OPEN, {"model": "m", "tak": 1}, "--set take=..."),
        (OPEN.replace("$take", "$tale"), {"model": "m"}, r"\$take"),
        (OPEN.replace("default", "standard"), {"model": "m"}, "with about and perhaps default"),
        (OPEN.replace("Table 1, ins", "Table 9, ins"), {"model": "m"}, "unknown published table"),
    ],
)
def test_what_is_wrong_with_variables_is_said(text, values, said):
    with pytest.raises(ArgumentError, match=said):
        planned(text, **values)


def test_nothing_else_is_changed():
    document = {"a": [1, {"b": "price $5", "c": "$x"}], "variables": {"x": {"about": "x"}}}
    found, values = filled(document, {"x": [1, 2]})
    assert found == {"a": [1, {"b": "price $5", "c": [1, 2]}]}
    assert values == {"x": [1, 2]}
    assert "variables" in document


@pytest.mark.parametrize("name", plan_names())
def test_every_plan_of_the_package_says_what_it_leaves_open(name):
    needed = open_variables(tomllib.loads(plan_text(name)[0]))
    assert not (name.startswith("smoke-") and needed)
    plan = read_plan(name, dict.fromkeys(needed, "somewhere"))
    assert plan.models
    methods = {method.what for method in plan.methods}
    assert (
        {"random", "uniform"} <= methods or not methods or name in ("smoke-digits", "smoke-reviews")
    )


def test_the_published_tables_are_whole():
    for name in published_names():
        table = published_table(name)
        assert table.cite in REFERENCES
        assert all(len(numbers) == len(table.measures) for numbers in table.rows.values()), name


def test_published_numbers_are_read_as_printed():
    table = published_table("vtranm: Table 2, predicted")
    assert table.measures == ("negative_perturbation", "positive_perturbation")
    assert table.rows["vtranm"] == (0.5812, 0.1575)
    assert [printed(one) for one in (0.52, ".03 (.18)", "-")] == ["0.52", ".03 (.18)", "–"]
    assert published_in({"published": [json.loads(json.dumps(table.plain()))]}) == [table]


def test_tables_show_the_published_numbers_after_ours(tmp_path):
    from pellucid import bench

    plan = planned(model="pellucid/digits-vit", take=2)
    bench.run(plan, tmp_path)
    table = bench.table_of(tmp_path)
    ours, theirs = FORMATS["md"](table).split("### Published: tis: Table 1, insertion")
    assert "| random |" in ours
    assert "| tis | 0.52 | 0.66 | 0.5 | 0.47 |" in theirs
    assert "0.66" in FORMATS["html"](table)
    assert "0.66" not in FORMATS["csv"](table)
