"""Studies of walks: units, equal steps, equal time, and the tests beside the numbers."""

import json

import pytest
import torch

import pellucid
from pellucid import ArgumentError
from pellucid._statistics import t_test, welch
from pellucid.explorer import studies
from pellucid.explorer.studies import ALGORITHMS, study_of, walk_study, walk_unit
from pellucid.metrics.walks.table import WalkTable
from pellucid.testing.tiny import build, sample_inputs

SHORT = {"steps": 4, "save_every": 2}


@pytest.fixture(scope="module")
def walked():
    """Two inputs, two repetitions, and three algorithms on a tiny image model: all units."""
    adapter = build("vit", dtype=torch.float64)
    seen = []
    options = {"repetitions": 2, "scale": 5.0, "report": seen.append} | SHORT
    return seen, walk_study(adapter, sample_inputs(adapter)[:2], **options)


@pytest.fixture(scope="module")
def units(walked):
    """With their walks."""
    return walked[0]


@pytest.fixture(scope="module")
def study(walked):
    """Without."""
    return walked[1]


@pytest.mark.parametrize("family", ["bert", "bert-mlm", "vit"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_unit_is_plain_numbers(tiny, family, algorithm):
    adapter = tiny(family)
    raw = sample_inputs(adapter)[0]
    unit = walk_unit(adapter, raw, algorithm, preset=None, step=0.1, **SHORT)
    assert json.loads(json.dumps(unit.row)) == unit.row
    assert not set(unit.numbers) & set(unit.skipped)
    assert unit.numbers["steps"] == 4
    assert unit.walk.goal == ALGORITHMS[algorithm].goal
    assert ("pixel_change" in unit.row) == (family == "vit")
    assert ("token_change" in unit.row) == (family != "vit")


def test_a_unit_is_what_its_walk_is_measured_as(tiny):
    adapter = tiny("vit")
    raw = sample_inputs(adapter)[0]
    unit = walk_unit(adapter, raw, "SiMExp", scale=20.0, seed=3, repetition=2, **SHORT)
    walk = pellucid.explore(
        adapter, raw, goal="leave", preset="published", scale=20.0, seed=5, **SHORT
    )
    assert torch.equal(unit.walk.points, walk.points)
    for column, metric, options in (
        ("ranking_changes", "ranking_changes", {"stride": 2}),
        ("wasserstein, l1", "wasserstein", {"stride": 2, "ground": "l1"}),
        ("first_change, decoded", "first_change", {"stride": 2, "of": "decoded"}),
    ):
        found = pellucid.measure_walk(walk, metric=metric, decoded=walk.decode(), **options)
        assert unit.row[column] == (found.skipped or found.value)


def test_units_do_not_depend_on_each_other(tiny, study):
    adapter = build("vit", dtype=torch.float64)
    last = study.units[-3]
    again = walk_unit(adapter, sample_inputs(adapter)[1], "SiMEC", repetition=1, scale=5.0, **SHORT)
    timed = {"seconds", "seconds_per_token", "pictures_per_second", "informative_per_second"}
    assert {k: v for k, v in again.row.items() if k not in timed} == {
        k: v for k, v in last.row.items() if k not in timed
    }


def test_a_study_has_every_unit_and_simec_first(study):
    names = [(unit.algorithm, unit.repetition) for unit in study.units]
    one = [(name, r) for r in (0, 1) for name in ("SiMEC", "SiMExp", "perturbation")]
    assert names == one * 2
    assert isinstance(study.table, WalkTable)
    row = study.table.row("SiMExp", "ranking_changes")
    values = [unit.numbers["ranking_changes"] for unit in study.units[1::3]]
    assert row.n == 4
    assert row.mean == pytest.approx(sum(values) / 4)
    assert row.std == pytest.approx(
        float(torch.tensor(values, dtype=torch.float64).std(correction=0))
    )


def test_repetitions_draw_other_directions(units):
    one, other = (units[i].walk for i in (0, 3))
    assert torch.equal(one.points[0], other.points[0])
    assert not torch.equal(one.points[-1], other.points[-1])


def test_baselines_step_as_far_as_simec(units):
    for first in range(0, 12, 3):
        simec, _, baseline = units[first : first + 3]
        assert "volume_ratio, log10" not in baseline.row
        mean = float(simec.walk.series["step"][1:].mean())
        assert baseline.walk.settings["step"] == pytest.approx(mean)
        assert baseline.walk.settings["within"] == simec.walk.settings["within"]


def test_volumes_are_compared_with_the_simec_walk_from_the_same_input(units, study):
    simec, simexp = units[:2]
    found = pellucid.measure_walk(simexp.walk, metric="volume_ratio", other=simec.walk)
    assert simexp.numbers["volume_ratio, log10"] == found.value
    assert "volume_ratio, log10" not in simec.row
    row = study.table.row("SiMExp", "volume_ratio, log10")
    volumes = [study.table.row("SiMExp", f"log10_volume{end}").mean for end in ("", "_other")]
    assert row.mean == pytest.approx(volumes[0] - volumes[1])


def test_the_tests_are_those_of_the_units(study):
    by_key = {(one.name, one.metric): one.result for one in study.tests}
    leaving = [unit.numbers for unit in study.units if unit.algorithm == "SiMExp"]
    expected = t_test([one["ranking_changes"] for one in leaving])
    assert by_key["SiMExp", "ranking_changes"] == expected
    sides = [[one[key] for one in leaving] for key in ("log10_volume", "log10_volume_other")]
    assert by_key["SiMExp", "log10_volume"] == welch(*sides)
    assert "Welch" in repr(study)
    assert study_of(study.units[:1]).tests[0].result.skipped == "fewer than two numbers"


def test_equal_time_is_that_of_the_simec_walk(tiny, monkeypatch):
    """By a clock that says 0.5 s a step of SiMEC and 0.02 s a step of a baseline."""
    from dataclasses import replace

    def explore(model, item, *, steps, real=studies.explore, **options):
        walk = real(model, item, steps=steps, **options)
        pace = 0.02 if options.get("direction") else 0.5
        return replace(walk, provenance=replace(walk.provenance, seconds=pace * walk.steps))

    monkeypatch.setattr(studies, "explore", explore)
    adapter = tiny("vit")
    found = walk_study(
        adapter, sample_inputs(adapter)[:1], repetitions=1, equal="seconds", scale=5.0, **SHORT
    )
    simec, simexp, baseline = found.units
    assert simec.numbers["steps"] == simexp.numbers["steps"] == 4
    assert baseline.numbers["steps"] == 100
    assert baseline.numbers["seconds"] == pytest.approx(simec.numbers["seconds"])
    assert baseline.numbers["pictures_per_second"] == pytest.approx(50 / 2.0)
    with pytest.raises(ArgumentError, match="keeps time with another walk"):
        walk_unit(adapter, sample_inputs(adapter)[0], "isotropic", equal="seconds", **SHORT)


def test_texts_are_decoded_by_the_model_that_is_given(tiny):
    adapter, partner = tiny("bert"), tiny("bert-mlm")
    unit = walk_unit(adapter, "the film is fine", "SiMEC", mlm=partner, **SHORT)
    prompts = unit.walk.alternatives(mlm=partner)
    found = pellucid.measure_walk(unit.walk, metric="flip_rate", prompts=prompts)
    assert unit.row["flip_rate"] == found.value
    alone = walk_unit(adapter, "the film is fine", "SiMEC", decode=False, **SHORT)
    assert "flip_rate" not in alone.row
    assert "wasserstein, l1" not in alone.row
    assert "ranking_changes" in alone.row


def test_every_unit_is_reported(tiny):
    seen = []
    adapter = tiny("vit")
    found = walk_study(
        adapter,
        sample_inputs(adapter)[0],
        algorithms=["SiMExp", "SiMEC"],
        repetitions=1,
        report=seen.append,
        decode=False,
        **SHORT,
    )
    assert [unit.row for unit in seen] == [unit.row for unit in found.units]
    assert [unit.walk is None for unit in (*seen, *found.units)] == [False] * 2 + [True] * 2
    assert [unit.algorithm for unit in seen] == ["SiMEC", "SiMExp"]


def test_wrong_names(tiny):
    raw = sample_inputs(tiny("vit"))[0]
    with pytest.raises(ArgumentError, match="did you mean 'SiMEC'"):
        walk_unit(tiny("vit"), raw, "simec")
    with pytest.raises(ArgumentError, match="did you mean 'SiMEC'"):
        walk_study(tiny("vit"), raw, algorithms=["simec"])
    with pytest.raises(ArgumentError, match="did you mean 'isotropic'"):
        walk_study(tiny("vit"), raw, algorithms=["SiMEC", "isotropc"], report=pytest.fail)
    with pytest.raises(ArgumentError, match="repetition"):
        walk_unit(tiny("vit"), raw, "SiMEC", repetition="first")
    with pytest.raises(ArgumentError, match="equal='seconds'"):
        walk_unit(tiny("vit"), raw, "SiMEC", equal="second")
    with pytest.raises(ArgumentError, match="parameter of explore"):
        walk_unit(tiny("vit"), raw, "SiMEC", stepp=1)
