"""What is seen of a long run: honest times, a log that a program reads, and quiet elsewhere."""

import io
import json

import pytest
from toy_study import Toy

from pellucid.bench import watch as module
from pellucid.bench.runner import run_task
from pellucid.bench.units import Outcome, Result, Unit, canonical
from pellucid.bench.watch import Watch


def outcome(method, seconds, *, lost=False):
    unit = Unit("key", {"method": method}, {})
    if lost:
        return Outcome(unit, lost="it died")
    return Outcome(unit, Result([]), seconds=seconds)


@pytest.fixture
def clock(monkeypatch):
    """A clock that is set by hand."""
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def watched(**waiting):
    names = {canonical({"method": name}): count for name, count in waiting.items()}
    return Watch(io.StringIO(), names)


def test_slow_methods_that_wait_are_counted_as_slow(clock):
    """Ten fast units are done and ten slow ones wait: a mean of all would say 10 s."""
    watch = watched(fast=10, slow=11)
    for _ in range(10):
        clock[0] += 1.0
        watch.saw(outcome("fast", 1.0))
    assert watch.remaining() == pytest.approx(11.0), "nothing is known of the slow ones"
    clock[0] += 20.0
    watch.saw(outcome("slow", 20.0))
    assert watch.remaining() == pytest.approx(200.0)


def test_workers_are_as_many_as_they_have_shown_to_be(clock):
    watch = watched(m=8)
    for _ in range(4):
        clock[0] += 0.5
        watch.saw(outcome("m", 2.0))  # four at a time
    assert watch.remaining() == pytest.approx(4 * 2.0 / 4)


def test_lost_workers_are_no_work(clock):
    watch = watched(m=2)
    clock[0] += 1.0
    watch.saw(outcome("m", 1.0, lost=True))
    assert watch.remaining() is None
    assert (watch.done, watch.failed, watch.lost) == (0, 0, 1)


def test_the_log_is_one_object_a_line(tmp_path, capsys):
    (tmp_path / "marks").mkdir()
    toy = Toy(4, fails=((1, 1),), marks=str(tmp_path / "marks"))
    run_task(toy, tmp_path)
    events = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [one["event"] for one in events] == [
        *("started", "done", "failed", "done", "done", "done", "ended")
    ]
    assert events[2]["why"] == "ValueError: unit 1 does not want to"
    assert events[-1]["states"]["done"] == 4
    assert all(one["time"].endswith("+00:00") for one in events)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", ""), "quiet off a terminal"


def test_the_bar_counts_units(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(module, "_OFTEN", 0.0)
    run_task(Toy(4, seconds=0.01), tmp_path, progress=True)
    shown = capsys.readouterr().err
    assert "4/4 units" in shown
    assert "s left" in shown
