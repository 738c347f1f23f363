"""Tables of studies: intervals against theory, and formats that lose and break nothing."""

import csv
import io
import math
from dataclasses import dataclass

import numpy as np
import pytest

from pellucid import StoreError
from pellucid.bench import compare, merge, run_task, table_of, write_report
from pellucid.bench.formats import FORMATS, comma_separated, latex, markdown, write_parquet
from pellucid.bench.intervals import Column, difference, interval
from pellucid.bench.shard import Shard
from pellucid.bench.units import Result, Row, Unit, key_of
from pellucid.bench.wording import count, duration


def column(values):
    return Column({str(number): value for number, value in enumerate(values)})


# ---- intervals -----------------------------------------------------------------------------------


def test_the_interval_of_a_mean_is_that_of_theory_for_many_samples():
    values = np.random.default_rng(0).normal(3.0, 2.0, 4000)
    low, high = interval(column(values))
    half = 1.96 * values.std(ddof=1) / math.sqrt(len(values))
    assert (low, high) == pytest.approx((values.mean() - half, values.mean() + half), abs=0.006)


def test_a_difference_is_that_of_the_same_samples():
    """What is hard about a sample is hard for both: only the difference of each counts."""
    generator = np.random.default_rng(1)
    hard = generator.normal(0.0, 10.0, 500)
    first, second = column(hard + 0.1), column(hard + generator.normal(0.0, 0.1, 500))
    apart = difference(first, second)
    assert apart.is_clear
    assert apart.value == pytest.approx(0.1, abs=0.02)
    assert interval(first)[0] < second.number() < interval(first)[1], "alone, they overlap"


def test_a_difference_needs_samples_in_common():
    first = Column({"a": 1.0, "b": 2.0, "c": 9.0})
    second = Column({"a": 0.0, "b": 1.0, "d": 5.0})
    apart = difference(first, second)
    assert (apart.value, apart.low, apart.high, apart.samples) == (1.0, 1.0, 1.0, 2)
    assert difference(first, Column({"c": 1.0})) is None


def test_a_pooled_number_is_made_of_all_counts():
    def share(counts):
        return counts["hit"] / counts["of"] if counts["of"] else None

    counts = {"a": {"hit": 1, "of": 2}, "b": {"hit": 90, "of": 98}, "c": {"hit": 0, "of": 0}}
    pooled = Column({}, counts, share)
    assert pooled.number() == 0.91
    low, high = interval(pooled)
    assert low == pytest.approx(0.5)  # a draw of nothing but a (and c)
    assert high == pytest.approx(90 / 98)


def test_no_interval_of_a_single_sample():
    assert interval(column([1.0])) is None
    assert column([]).number() is None


# ---- a study with known numbers ------------------------------------------------------------------

HOSTILE = "<script>alert(1)</script> & 50 % | _x_"


@dataclass(frozen=True)
class Known:
    """Three methods: one is best, one is level with it, one is far; a sample may be skipped."""

    size: int = 6
    name: str = "known"

    def units(self):
        for method in ("best", "level", HOSTILE):
            for start in range(self.size):
                labels = {"model": "m", "data": "d", "method": method}
                key = key_of({**labels, "start": start, "name": self.name})
                yield Unit(key, labels, {**labels, "start": start, "count": 1})

    def about(self):
        measures = {"gain": {"better": "higher"}, "loss": {"better": "lower"}}
        columns = ["model", "data", "method"]
        return {"name": self.name, "columns": columns, "measures": measures}

    def open(self):
        return self._do

    def _do(self, unit):
        n, method = unit.work["start"], unit.work["method"]
        gain = {"best": 10.0, "level": 10.0 + (-1) ** n * 3.0 - 0.2, HOSTILE: 1.0}[method] + n
        skipped = method == "level" and n == 5
        rows = [
            Row(f"s{n}", "gain", None if skipped else gain, "no word" if skipped else ""),
            Row(f"s{n}", "loss", -gain),
        ]
        return Result([Row(r.sample, r.measure, r.value, r.skipped, {"class": "c"}) for r in rows])


@pytest.fixture
def known(tmp_path):
    run_task(Known(), tmp_path / "run")
    return tmp_path / "run"


def test_the_best_and_what_is_level_with_it(known):
    cells = {(cell.group[-1], cell.measure): cell for cell in table_of(known).cells}
    assert cells["best", "gain"].value == pytest.approx(12.5)
    assert cells["level", "gain"].value == pytest.approx(9.8 + 2.0 + 3.0 / 5)
    assert [cells[m, "gain"].best for m in ("best", "level", HOSTILE)] == [True, True, False]
    assert [cells[m, "gain"].first for m in ("best", "level", HOSTILE)] == [True, False, False]
    assert cells["best", "loss"].first, "lower is better"
    assert cells["level", "gain"].skipped == {"no word": 1}
    assert cells["level", "gain"].samples == 5


def test_a_table_says_what_is_missing(tmp_path):
    run_task(Known(), tmp_path, shard=Shard(1, 4))
    text = markdown(table_of(Shard(1, 4).folder(tmp_path)))
    assert "13 units are in other shards." in text


def test_csv_has_every_number_as_it_is(known):
    table = table_of(known)
    records = list(csv.DictReader(io.StringIO(comma_separated(table))))
    assert [float(record["value"]) for record in records] == [cell.value for cell in table.cells]
    assert [records[n]["method"] for n in (2, 5)] == [HOSTILE, HOSTILE]
    assert {record["reasons"] for record in records} == {"", "1 no word"}


def test_markdown_and_latex_keep_names_in_their_cells(known):
    table = table_of(known)
    rows = [line for line in markdown(table).splitlines() if line.startswith("|")]
    assert {line.replace(r"\|", "").count("|") for line in rows} == {4}
    assert r"<script>alert(1)</script> \& 50 \% | \_x\_" in latex(table)


def test_parquet_has_a_line_a_sample_and_measure(known, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="parquet is an extra")
    assert write_parquet(known, tmp_path / "rows.parquet") == 36
    lines = parquet.read_table(tmp_path / "rows.parquet").to_pylist()
    assert sum(line["value"] for line in lines if line["value"] is not None) == pytest.approx(
        sum(
            row.value
            for unit in Known().units()
            for row in Known().open()(unit).rows
            if row.value is not None
        )
    )
    assert [line["skipped"] for line in lines if line["value"] is None] == ["no word"]


def test_the_page_is_one_file_that_escapes_what_it_shows(known):
    page = write_report(known).read_text(encoding="utf-8")
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "default-src &#x27;none&#x27;" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "https://" not in page
    assert page == FORMATS["html"](table_of(known)), "no curves and pictures here"


# ---- several runs --------------------------------------------------------------------------------


def test_merged_shards_are_the_whole(tmp_path, known):
    for number in (1, 2, 3):
        run_task(Known(), tmp_path / "parts", shard=Shard(number, 3))
    merged = merge([tmp_path / "parts"], tmp_path / "parts")
    assert (merged.taken, merged.known, merged.differing) == (18, 0, 0)
    assert merged.states == {"waiting": 0, "done": 18, "failed": 0, "elsewhere": 0}
    assert markdown(table_of(tmp_path / "parts")) == markdown(table_of(known))
    again = merge([tmp_path / "parts"], tmp_path / "parts")
    assert (again.taken, again.known, again.differing) == (0, 18, 0)
    assert run_task(Known(), tmp_path / "parts").done == 0, "and it can be continued"


def test_a_merge_counts_what_differs_and_keeps_the_first(tmp_path, known):
    class Other(Known):
        def _do(self, unit):
            found = super()._do(unit)
            return Result([Row(r.sample, r.measure, 0.0, "", r.detail) for r in found.rows])

    run_task(Other(), tmp_path / "other")
    merged = merge([known, tmp_path / "other"], tmp_path / "all")
    assert (merged.taken, merged.known, merged.differing) == (18, 18, 18)
    assert comma_separated(table_of(tmp_path / "all")) == comma_separated(table_of(known))


def test_runs_of_different_plans_are_not_merged(tmp_path, known):
    run_task(Known(name="another"), tmp_path / "another")
    with pytest.raises(StoreError, match="differs from the first in name"):
        merge([known, tmp_path / "another"], tmp_path / "all")
    with pytest.raises(StoreError, match="nothing to merge"):
        merge([known], known)


def test_runs_are_compared_on_what_they_share(tmp_path, known):
    run_task(Known(4, name="another"), tmp_path / "short")
    found = compare(known, tmp_path / "short")
    assert len(found) == 6
    assert all(one.apart.value == 0 and one.apart.samples == 4 for one in found)
    assert found[0].first != found[0].second, "means of other samples"


# ---- words ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.04, "0.0 s"),
        (59.7, "60 s"),
        (61.0, "1 min 1 s"),
        (3599.9, "1 h 0 min"),
        (7260.0, "2 h 1 min"),
        (400_000.0, "4 d 15 h"),
    ],
)
def test_durations(seconds, words):
    assert duration(seconds) == words


def test_counts():
    assert (count(1, "unit"), count(12_000, "unit")) == ("1 unit", "12,000 units")
