"""The store of a study: nothing lost, nothing twice, nothing believed that was not written."""

import os
import resource
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from toy_study import Toy, found

from pellucid import ArgumentError, StoreError
from pellucid.bench.database import NAME
from pellucid.bench.engines.serial import Serial
from pellucid.bench.runner import run_task
from pellucid.bench.shard import Shard
from pellucid.bench.store import Store
from pellucid.bench.units import Outcome, Result, Row, key_of

HERE = Path(__file__).parent


def started(program, *, wait=True, **options):
    """A fresh interpreter that can import the toy study."""
    path = os.pathsep.join([str(HERE), *sys.path])
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        env=os.environ | {"PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )
    return process.communicate() if wait else process


# ---- keys ----------------------------------------------------------------------------------------


def test_a_key_depends_on_the_content_and_not_on_its_order():
    assert key_of({"a": 1, "b": [2, 3]}) == key_of({"b": [2, 3], "a": 1})
    assert key_of({"a": 1, "b": [2, 3]}) != key_of({"a": 1, "b": [3, 2]})
    with pytest.raises(ValueError, match="JSON"):
        key_of({"a": float("nan")})


# ---- running and continuing ----------------------------------------------------------------------


def test_what_is_read_is_what_was_computed(tmp_path):
    summary = run_task(Toy(), tmp_path)
    assert (summary.done, summary.failed, summary.states["waiting"]) == (12, 0, 0)
    work = Toy().open()
    for unit in Toy().units():
        rows, maps = found(tmp_path)[unit.key]
        result = work(unit)
        assert list(rows) == result.rows
        assert maps == {name: array.tolist() for name, array in result.maps.items()}


def test_a_second_start_does_only_what_is_new(tmp_path):
    (tmp_path / "marks").mkdir()
    marks = str(tmp_path / "marks")
    run_task(Toy(8, marks=marks), tmp_path)
    summary = run_task(Toy(12, marks=marks), tmp_path)
    assert (summary.done, summary.states["done"]) == (4, 12)
    assert len(list((tmp_path / "marks").iterdir())) == 12


def test_units_of_an_earlier_plan_are_kept_aside_and_come_back(tmp_path):
    run_task(Toy(12), tmp_path)
    assert run_task(Toy(3), tmp_path).states["done"] == 3
    assert len(found(tmp_path)) == 3
    assert run_task(Toy(12), tmp_path).done == 0
    assert len(found(tmp_path)) == 12


def test_a_finished_study_is_one_ordinary_file(tmp_path):
    """Without a journal beside it: it can be copied, and read where nothing can be written."""
    run_task(Toy(), tmp_path)
    assert sorted(path.name for path in tmp_path.glob(f"{NAME}*")) == [NAME]


# ---- failures ------------------------------------------------------------------------------------


def test_a_failed_unit_is_a_row_with_its_error_and_is_tried_so_often(tmp_path):
    (tmp_path / "marks").mkdir()
    toy = Toy(fails=((3, 1), (4, -1)), marks=str(tmp_path / "marks"))
    summary = run_task(toy, tmp_path)
    assert (summary.done, summary.states["failed"]) == (11, 1)
    with Store.reading(tmp_path) as store:
        (failed,) = store.records("failed")
    assert failed.error == "ValueError: unit 4 does not want to"
    assert failed.attempts == 2
    assert run_task(toy, tmp_path).failed == 0, "its attempts are used up"
    assert run_task(toy, tmp_path, attempts=3).failed == 1, "one more was allowed"
    log = (tmp_path / "log.jsonl").read_text()
    assert "in _do" in log, "the log says where it was raised"


def test_work_that_gives_no_number_is_a_failed_unit(tmp_path):
    class Nan(Toy):
        def open(self):
            return lambda unit: Result([Row("s", "m", float("nan"))])

    summary = run_task(Nan(2), tmp_path)
    assert (summary.states["done"], summary.states["failed"]) == (0, 2)


def test_a_task_that_cannot_be_opened_fails_its_units_and_says_why(tmp_path):
    run_task(Toy(2, opens=False), tmp_path)
    with Store.reading(tmp_path) as store:
        errors = {record.error for record in store.records("failed")}
    assert errors == {"OSError: there is no such model"}


class Losing:
    """An engine whose workers always die."""

    def __init__(self):
        self.lost = 0

    def run(self, units, task):
        for unit in units:
            self.lost += 1
            yield Outcome(unit, lost="its worker died (exit code -9)")


def test_lost_workers_are_no_attempts_but_are_not_endless(tmp_path):
    engine = Losing()
    summary = run_task(Toy(2), tmp_path, engine=engine)
    assert engine.lost == 10
    assert summary.states["failed"] == 2
    with Store.reading(tmp_path) as store:
        assert {record.attempts for record in store.records("failed")} == {0}
    assert run_task(Toy(2), tmp_path).done == 2, "the next start tries them again"


def test_a_unit_is_kept_once_whoever_brings_it_again(tmp_path):
    run_task(Toy(2), tmp_path)
    before = found(tmp_path)
    with Store.writing(tmp_path) as store:
        for unit in Toy(2).units():
            store.keep(Outcome(unit, Result([Row("other", "square", 0.0)])))
            store.keep(Outcome(unit, error="too late"))
    assert found(tmp_path) == before


def test_two_units_that_are_the_same_work_are_refused(tmp_path):
    """One of them would be missing from every table."""

    class Twice(Toy):
        def units(self):
            for unit in super().units():
                yield unit
                yield replace(unit, labels={"method": "again"})

    with pytest.raises(ArgumentError, match="again"):
        run_task(Twice(2), tmp_path)


# ---- shards --------------------------------------------------------------------------------------


def test_shards_are_disjoint_and_together_the_whole(tmp_path):
    for number in (1, 2, 3):
        run_task(Toy(), tmp_path, shard=Shard(number, 3))
    parts = [found(Shard(number, 3).folder(tmp_path)) for number in (1, 2, 3)]
    keys = [key for part in parts for key in part]
    assert sorted(keys) == sorted(unit.key for unit in Toy().units())


@pytest.mark.parametrize("written", ["0/4", "5/4", "3", "a/b", "1/0", "-1/3", "1/2/3"])
def test_a_shard_that_is_none(written):
    with pytest.raises(ArgumentError, match="--shard 1/8"):
        Shard.parse(written)


# ---- damage --------------------------------------------------------------------------------------


def test_a_changed_number_is_found_when_it_is_read(tmp_path):
    run_task(Toy(3), tmp_path)
    with sqlite3.connect(tmp_path / NAME) as connection:
        connection.execute("UPDATE rows SET value = value + 1e-9 WHERE sample = 's2-1'")
    connection.close()
    with pytest.raises(StoreError, match="is not what was written"):
        found(tmp_path)


def test_a_changed_array_is_found_when_it_is_read(tmp_path):
    run_task(Toy(1), tmp_path)
    (path,) = tmp_path.glob("maps/*/*.safetensors")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(StoreError, match="damaged"):
        found(tmp_path)


@pytest.mark.parametrize("content", [b"", b"no database" * 100, b"SQLite format 3\0" + b"x" * 4096])
def test_a_file_that_is_no_store(tmp_path, content):
    (tmp_path / NAME).write_bytes(content)
    with pytest.raises(StoreError), Store.reading(tmp_path):
        pass


def test_a_folder_without_a_study(tmp_path):
    with pytest.raises(StoreError, match="holds no study"), Store.reading(tmp_path):
        pass
    run_task(Toy(2), tmp_path, shard=Shard(1, 2))
    with pytest.raises(StoreError, match="pellucid bench merge"), Store.reading(tmp_path):
        pass


# ---- disks ---------------------------------------------------------------------------------------


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        run_task(Toy(), tmp_path / "file" / "run")


def test_a_full_disk_stops_with_an_error_and_an_intact_store(tmp_path):
    """A limit on the size of files is what a full disk looks like to a process of its own."""
    program = f"""
        from pathlib import Path
        from toy_study import Toy
        from pellucid.bench.runner import run_task
        run_task(Toy(3000), Path({str(tmp_path)!r}))
    """

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))

    _, errors = started(program, preexec_fn=limit)
    assert "StoreError: the study cannot be written" in errors
    assert "what is done is kept" in errors
    kept = len(found(tmp_path))
    assert kept > 0
    summary = run_task(Toy(3000), tmp_path)
    assert summary.done == 3000 - kept
    assert len(found(tmp_path)) == 3000


def test_arrays_that_cannot_be_written_leave_the_unit_to_be_done(tmp_path, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(StoreError, match="No space left"):
            run_task(Toy(1), tmp_path)
    assert found(tmp_path) == {}
    assert not list(tmp_path.glob("maps/*/*"))
    assert run_task(Toy(1), tmp_path).done == 1


# ---- two at once ---------------------------------------------------------------------------------


def test_a_second_run_in_the_same_folder_is_refused(tmp_path):
    with Store.writing(tmp_path):
        with pytest.raises(StoreError, match=f"process {os.getpid()}"):
            run_task(Toy(), tmp_path)
        with Store.writing(tmp_path / "shard"):
            pass  # another folder is another matter


def test_results_can_be_read_while_a_run_writes(tmp_path):
    class Reading(Serial):
        def run(self, units, task):
            for number, outcome in enumerate(super().run(units, task)):
                assert len(found(tmp_path)) == number
                yield outcome

    assert run_task(Toy(), tmp_path, engine=Reading()).done == 12


# ---- being killed --------------------------------------------------------------------------------

RUN = """
    from pathlib import Path
    from toy_study import Toy
    from pellucid.bench.runner import run_task
    run_task(Toy(60, seconds=0.01, marks={marks!r}), Path({out!r}))
"""


def test_ten_kills_lose_nothing_and_repeat_only_what_was_at_work(tmp_path):
    (tmp_path / "marks").mkdir()
    out, marks = tmp_path / "run", tmp_path / "marks"
    generator = np.random.default_rng(0)
    for _ in range(10):
        process = started(RUN.format(out=str(out), marks=str(marks)), wait=False)
        begun = len(list(marks.iterdir()))
        while len(list(marks.iterdir())) == begun and process.poll() is None:
            time.sleep(0.001)
        time.sleep(generator.uniform(0.0, 0.03))
        process.kill()
        process.communicate()
    done = len(found(out))
    assert 0 < done < 60, "it was killed while it worked"
    run_task(Toy(60, marks=str(marks)), out)
    run_task(Toy(60), tmp_path / "undisturbed")
    assert found(out) == found(tmp_path / "undisturbed")
    repeated = len(list(marks.iterdir())) - 60
    assert repeated <= 10, "at most one unit a kill"


def test_control_c_writes_what_is_at_work_and_stops(tmp_path):
    out, marks = tmp_path / "run", tmp_path / "marks"
    marks.mkdir()
    process = started(RUN.format(out=str(out), marks=str(marks)), wait=False)
    while not list(marks.iterdir()):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    assert "stopping" in errors
    done = len(found(out))
    assert done == len(list(marks.iterdir())) < 60, "what was begun is written"
