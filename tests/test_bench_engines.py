"""Engines: whatever dies, every unit is there once, with the numbers of the serial run."""

import multiprocessing
import os
import threading
import time
from pathlib import Path

import pytest
from toy_study import Toy, found

from pellucid import ArgumentError, StudyError
from pellucid.bench.engines import ENGINES, engine_named
from pellucid.bench.engines.process import Processes
from pellucid.bench.runner import run_task


@pytest.fixture(scope="module")
def serial(tmp_path_factory):
    """What the serial run finds, by the number of units."""
    folder = tmp_path_factory.mktemp("serial")
    run_task(Toy(40), folder)
    return found(folder)


def test_an_engine_that_does_not_exist():
    with pytest.raises(ArgumentError, match="--engine process"):
        engine_named("proces")
    assert set(ENGINES) == {"serial", "process", "ray"}


# ---- processes -----------------------------------------------------------------------------------


def test_processes_find_what_the_serial_run_finds(tmp_path, serial):
    summary = run_task(Toy(40), tmp_path, engine=Processes(2))
    assert (summary.done, summary.lost) == (40, 0)
    assert found(tmp_path) == serial


def test_processes_that_die_are_replaced_and_their_units_done_again(tmp_path, serial):
    marks = tmp_path / "marks"
    marks.mkdir()
    toy = Toy(40, kills=((0, 1), (7, 2), (39, 1)), fails=((5, 1),), marks=str(marks))
    summary = run_task(toy, tmp_path / "run", engine=Processes(2))
    assert (summary.done, summary.failed, summary.lost) == (40, 1, 4)
    assert found(tmp_path / "run") == serial
    assert len(list(marks.glob("done-*"))) == 40, "none was done twice"


def test_a_unit_that_kills_every_worker_is_put_aside(tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()
    toy = Toy(6, kills=((2, -1),), marks=str(marks))
    summary = run_task(toy, tmp_path / "run", engine=Processes(1))
    assert (summary.done, summary.lost, summary.states["failed"]) == (5, 5, 1)


def test_processes_that_never_live_end_the_study(tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()
    toy = Toy(20, kills=tuple((n, -1) for n in range(20)), marks=str(marks))
    with pytest.raises(StudyError, match="exit code -9"):
        run_task(toy, tmp_path / "run", engine=Processes(1))


def test_a_process_is_left_neither_running_nor_dead(tmp_path):
    run_task(Toy(4), tmp_path, engine=Processes(2))
    assert multiprocessing.active_children() == []


def test_processes_use_one_thread_and_leave_ours_alone(tmp_path):
    before = dict(os.environ)
    run_task(Toy(2), tmp_path, engine=Processes(1))
    assert dict(os.environ) == before


# ---- Ray -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Three nodes on this machine: the head, which does no units, and two of one core."""
    ray = pytest.importorskip("ray", reason="the engine 'ray' is an extra")
    from ray.cluster_utils import Cluster

    here = Path(__file__).parent
    path = os.pathsep.join([str(here), str(here.parent / "src")])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", path)
        made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
        made.nodes = [made.add_node(num_cpus=1) for _ in range(2)]
        made.wait_for_nodes()
        ray.init(address=made.address, log_to_driver=False)
        yield made
        ray.shutdown()
        made.shutdown()


@pytest.mark.filterwarnings("ignore")  # of Ray itself
class TestRay:
    def test_actors_find_what_the_serial_run_finds(self, cluster, tmp_path, serial):
        summary = run_task(Toy(40), tmp_path, engine=engine_named("ray", 2))
        assert (summary.done, summary.lost) == (40, 0)
        assert found(tmp_path) == serial

    def test_an_actor_that_dies_is_replaced(self, cluster, tmp_path, serial):
        marks = tmp_path / "marks"
        marks.mkdir()
        toy = Toy(40, kills=((0, 1), (7, 2)), fails=((5, 1),), marks=str(marks))
        summary = run_task(toy, tmp_path / "run", engine=engine_named("ray"))
        assert (summary.done, summary.failed, summary.lost) == (40, 1, 3)
        assert found(tmp_path / "run") == serial
        assert len(list(marks.glob("done-*"))) == 40

    def test_a_node_that_is_removed_while_it_works(self, cluster, tmp_path, serial):
        marks = tmp_path / "marks"
        marks.mkdir()

        def remove():
            while len(list(marks.glob("done-*"))) < 6:
                time.sleep(0.02)
            cluster.remove_node(cluster.nodes.pop(), allow_graceful=False)

        remover = threading.Thread(target=remove)
        remover.start()
        toy = Toy(40, seconds=0.2, marks=str(marks))
        summary = run_task(toy, tmp_path / "run", engine=engine_named("ray"))
        remover.join()
        assert (summary.done, summary.lost) == (40, 1)
        assert found(tmp_path / "run") == serial
        workers = {path.name.split("-")[2] for path in marks.glob("done-*")}
        assert len(workers) == 2, "both nodes had worked"


def test_without_ray_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(ArgumentError, match=r"pip install 'pellucid\[ray\]'"):
        run_task(Toy(1), tmp_path, engine=engine_named("ray"))
