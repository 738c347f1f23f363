"""Killed walks: what they leave behind continues to the same bits, and nothing else continues."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

import pellucid
from pellucid import StoreError, Target
from pellucid._store import checksum
from pellucid.explorer.checkpoint import Checkpoint
from pellucid.explorer.fingerprint import fingerprint
from pellucid.testing.tiny import build, sample_inputs

STEPS, EVERY = 11, 3
# the family, how many inputs, and what else is asked for
SCENARIOS = {
    "stay": ("vit", 1, {}),
    "stay, several": ("bert", 3, {}),
    "stay, repeats": ("vit", 2, {"repeats": 2, "direction": "haar"}),
    "stay in a box": ("vit", 1, {"within": "bounds", "persistence": 0.7}),
    "leave, paper": ("bert", 2, {"goal": "leave", "preset": "paper"}),
    "stay, published": ("bert", 1, {"preset": "published"}),
    "stay, fixed": ("vit", 1, {"direction": "fixed", "step": 0.02, "correct": False}),
    "adaptive": ("vit", 1, {"step": "adaptive", "metric": "blocks"}),
    "trial": ("vit", 2, {"direction": "trial", "step": 0.05}),
    "gradient": ("bert", 1, {"direction": "gradient", "step": 0.05}),
    "a class": ("vit", 2, {"goal": 1, "longest": 1e-3}),
    "a class by name": ("bert", 1, {"goal": Target(2), "direction": "uniform", "step": 1e-3}),
    "small batches": ("bert", 3, {"batch_size": 1}),
    "one ends early": ("bert", 3, {"distance": 0.2}),
}


def walked(name, adapter=None, **more):
    family, count, options = SCENARIOS[name]
    adapter = adapter or build(family, dtype=torch.float64)
    raw = sample_inputs(adapter)[:count]
    raw = raw[0] if count == 1 else raw
    return pellucid.explore(adapter, raw, **{"steps": STEPS, "save_every": EVERY} | options, **more)


def same(one, other):
    """The same trajectories, bit for bit, down to the passes that they cost."""
    one, other = ([found] if not isinstance(found, list) else found for found in (one, other))
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        assert list(a.series) == list(b.series)
        for name in a.series:
            assert torch.equal(a.series[name], b.series[name]), name
        for name in ("points", "probabilities", "iterations"):
            assert torch.equal(getattr(a, name), getattr(b, name)), name
        for name in ("predicted", "labels", "tokens", "outcome", "completed", "notes", "settings"):
            assert getattr(a, name) == getattr(b, name), name
        assert a.provenance.forwards == b.provenance.forwards
        assert a.provenance.backwards == b.provenance.backwards


class Stop(Exception):
    pass


def stopping(at):
    """A report of progress that stops the walk once so much is done."""

    def told(done, total):
        if done >= at * total:
            raise Stop

    return told


def stopped(name, file, at=0.6, **more):
    with pytest.raises(Stop):
        walked(name, checkpoint=file, progress=stopping(at), **more)


# ---- killed --------------------------------------------------------------------------------------

KILLED = """
import os, signal, sys
sys.path.insert(0, {tests!r})
import torch
torch.set_num_threads(1)
from test_resume import SCENARIOS, walked

def kill(done, total):
    if done >= 0.6 * total:
        os.kill(os.getpid(), signal.SIGKILL)

walked("stay"), walked("leave, paper")  # what is imported is imported once
for number, name in enumerate(SCENARIOS):
    child = os.fork()
    if child == 0:
        walked(name, checkpoint=f"walk{{number:02}}", progress=kill)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, name
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """The checkpoints of walks whose processes were killed in their middle."""
    folder = tmp_path_factory.mktemp("killed")
    program = KILLED.format(tests=os.path.dirname(__file__))
    run = [sys.executable, "-W", "ignore", "-c", program]
    found = subprocess.run(run, cwd=folder, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    return folder


@pytest.mark.parametrize("number", range(len(SCENARIOS)), ids=list(SCENARIOS))
def test_a_killed_process_continues_bit_for_bit(killed, number):
    name = list(SCENARIOS)[number]
    file = killed / f"walk{number:02}"
    assert file.exists()
    steps = []
    resumed = walked(name, checkpoint=file, progress=lambda done, total: steps.append(done / total))
    same(resumed, walked(name))
    assert not list(killed.glob(f"walk{number:02}*")), "a finished walk needs no checkpoint"
    assert steps[0] > 0.3, "it went on where it was"


# ---- stopped by an exception ---------------------------------------------------------------------


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_walk_that_failed_twice_continues_bit_for_bit(name, tmp_path):
    file = tmp_path / "walk"
    stopped(name, file, 0.4)
    stopped(name, file, 0.75)
    same(walked(name, checkpoint=file), walked(name))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("where", ["before the points", "behind the points"])
def test_a_kill_while_the_checkpoint_is_written(where, tmp_path, monkeypatch):
    """The points of a saved step may be there, in part or in whole, without their state."""
    file = tmp_path / "walk"
    append, calls = Checkpoint._append, []

    def failing(self, part):
        calls.append(part)
        if len(calls) == 3:
            append(self, part[: len(part) // 2] if where == "before the points" else part)
            raise Stop
        append(self, part)

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "_append", failing)
        with pytest.raises(Stop):
            walked("stay", checkpoint=file)
    assert sorted(os.listdir(tmp_path)) == ["walk", "walk.points"]
    same(walked("stay", checkpoint=file), walked("stay"))


def test_finished_batches_are_not_walked_again(tmp_path):
    file = tmp_path / "walk"
    stopped("small batches", file, 0.95)
    assert sorted(os.listdir(tmp_path)) == sorted(
        f"walk{part}{kind}" for part in ("", ".1", ".2") for kind in ("", ".points")
    )
    reported = []
    walked("small batches", checkpoint=file, progress=lambda done, total: reported.append(done))
    assert len(reported) <= 3 + 2, "two batches are read, of the third two steps are left"


def test_a_walk_shorter_than_its_first_saved_point_leaves_nothing(tmp_path):
    walked("stay", checkpoint=tmp_path / "walk")
    assert os.listdir(tmp_path) == []


def test_a_budget_counts_what_was_spent_before(tmp_path):
    adapter = build("vit", dtype=torch.float64)
    spent = walked("stay", adapter).provenance.forwards
    file = tmp_path / "walk"
    stopped("stay", file)
    with pytest.raises(pellucid.BudgetExceeded):
        walked("stay", checkpoint=file, budget=spent - 1)
    same(walked("stay", checkpoint=file, budget=spent), walked("stay"))


def test_a_saved_point_costs_the_same_however_long_the_walk(tmp_path, monkeypatch):
    """In bytes: what is written at every saved point, over both files."""
    written = []
    append = Checkpoint._append

    def counted(self, part):
        append(self, part)
        written.append(len(part))

    monkeypatch.setattr(Checkpoint, "_append", counted)
    adapter, sizes = build("vit", dtype=torch.float64), []

    def told(done, total):
        if done % 2 == 1 and done > 2:
            sizes.append((tmp_path / "walk").stat().st_size)

    settings = {"checkpoint": tmp_path / "walk", "progress": told}
    pellucid.explore(adapter, sample_inputs(adapter)[0], steps=40, save_every=2, **settings)
    assert len(written) == 20
    assert max(written) - min(written) < 100
    assert max(sizes) - min(sizes) < 100


# ---- other calls ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def left(tmp_path_factory):
    """What a stopped walk leaves behind, as bytes."""
    file = tmp_path_factory.mktemp("left") / "walk"
    stopped("stay, several", file)
    return {path.name: path.read_bytes() for path in file.parent.iterdir()}


@pytest.fixture
def lying(left, tmp_path):
    """The checkpoint of a stopped walk."""
    for name, data in left.items():
        (tmp_path / name).write_bytes(data)
    return tmp_path / "walk"


def refused(file, words="cannot be continued", **options):
    with pytest.raises(StoreError, match=words) as caught:
        walked("stay, several", checkpoint=file, **options)
    assert "delete that file" in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"seed": 1},
        {"tokens": [1, 2]},
        {"tokens": re.compile("t")},
        {"tolerance": 1e-7},
        {"space": "word"},
        {"distance": 5.0},
        {"within": "bounds"},
        {"goal": 2},
        {"output": lambda logits: logits[:, :1]},
    ],
    ids=lambda options: next(iter(options)),
)
def test_the_checkpoint_of_another_call_is_refused(lying, options):
    refused(lying, "other inputs, model or rules", **options)
    assert lying.exists()


def test_other_inputs_models_and_lengths_are_refused(lying):
    adapter = build("bert", dtype=torch.float64)
    raw = sample_inputs(adapter)[:3]
    settings = {"steps": STEPS, "save_every": EVERY, "checkpoint": lying}
    for model, inputs, more in (
        (adapter, [*raw[:2], "another text"], {}),
        (adapter, raw[:2], {}),
        (adapter, raw, {"steps": STEPS - 8}),
        (adapter, raw, {"save_every": 2}),
        (build("bert"), raw, {}),
    ):
        with pytest.raises(StoreError, match="other inputs, model or rules"):
            pellucid.explore(model, inputs, **settings | more)


def test_a_fingerprint_is_of_contents_and_not_of_places():
    def up_to(count, again=False):
        def function(logits):
            return function if again else logits[:, :count]

        return function

    def one(logits):
        return logits[:, 0]

    def two(logits):
        return logits[:, 1]

    two.__qualname__ = one.__qualname__

    class Own:
        def __init__(self, size):
            self.size = size

    image = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
    mask = np.zeros((40, 40), dtype=bool)
    other = mask.copy()
    other[20, 20] = True  # which no printed form shows
    box = pellucid.explorer.regions.Box(torch.zeros(2), torch.ones(2), name="data")
    wider = pellucid.explorer.regions.Box(torch.zeros(2), 2 * torch.ones(2), name="data")
    values = [None, 1, True, 1.0, "1", b"1", ("a", "bc"), ("ab", "c"), [1, [2]], [[1], 2]]
    values += [image, image.T, mask, other, torch.ones(2), box, wider, {"a": 1}, {"a": 2}]
    values += [re.compile("a"), re.compile("a", re.IGNORECASE), len, sum, Own, Own(1)]
    values += [Own(2), up_to(1), up_to(2), up_to(1, again=True), one, two]
    found = [fingerprint(value) for value in values]
    assert len(set(found)) == len(values)
    for value, again in ((image, image.copy()), (Own(1), Own(1)), (up_to(1), up_to(1))):
        assert fingerprint(value) == fingerprint(again)


def test_an_image_to_walk_towards_is_known_again(tmp_path):
    """Two readings of one array are one input, wherever they lie."""
    images = sample_inputs(build("vit"))
    file = tmp_path / "walk"
    stopped("stay", file, direction="toward", toward=images[1].copy())
    with pytest.raises(StoreError, match="other inputs"):
        walked("stay", checkpoint=file, direction="toward", toward=255 - images[1])
    again = {"direction": "toward", "toward": images[1].copy()}
    same(walked("stay", checkpoint=file, **again), walked("stay", **again))


# ---- damaged and hostile files -------------------------------------------------------------------


@pytest.mark.parametrize("name", ["walk", "walk.points"])
def test_damaged_files_are_refused(lying, left, name):
    path, whole = lying.with_name(name), left[name]
    for place in range(0, len(whole), len(whole) // 8):
        data = bytearray(whole)
        data[place] ^= 1
        path.write_bytes(data)
        refused(lying)
        path.write_bytes(whole[:place])
        refused(lying)
    path.unlink()
    if name == "walk.points":
        refused(lying)


def test_points_longer_than_known_are_no_damage(lying):
    """A walk that was killed while it wrote leaves such."""
    with lying.with_name("walk.points").open("ab") as file:
        file.write(b"half of the next")
    same(walked("stay, several", checkpoint=lying), walked("stay, several"))


@pytest.mark.parametrize("data", [b"", b"nonsense", b"\xff" * 64, b"\x02" + b"\0" * 7 + b"{}"])
def test_files_of_something_else_are_refused(data, tmp_path):
    (tmp_path / "walk").write_bytes(data)
    refused(tmp_path / "walk")
    assert (tmp_path / "walk").read_bytes() == data


def test_a_saved_result_is_no_checkpoint(tmp_path):
    walked("stay").save(tmp_path / "walk")
    refused(tmp_path / "walk")
    (tmp_path / "folder").mkdir()
    refused(tmp_path / "folder")


def rewritten(file, tensors=None, without=(), change=None):
    """The checkpoint with other contents under a valid checksum."""
    with safe_open(file, framework="pt") as opened:
        document = opened.metadata()["checkpoint"].partition("\n")[2]
        own = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    everything = {n: t for n, t in (own | (tensors or {})).items() if n not in without}
    document = document if change is None else change(document)
    sealed = f"{checksum(document, everything)}\n{document}"
    save_file(everything, file, {"checkpoint": sealed})


@pytest.mark.parametrize(
    "tensors",
    [
        {"state.w": torch.zeros(3, 1, 32, dtype=torch.float64)},
        {"state.y": torch.zeros(3, 2)},
        {"state.outcome": torch.full((3,), 9)},
        {"state.stride": torch.full((3,), torch.nan, dtype=torch.float64)},
        {"state.generator.0": torch.zeros(8, dtype=torch.uint8)},
        {"state.generator.0": torch.zeros(5056, dtype=torch.uint8)},
        {"state.memory.age": torch.zeros(2, dtype=torch.long)},
        {"state.memory.other": torch.zeros(3)},
        {"lengths": torch.zeros(1, dtype=torch.long)},
        {"forwards": torch.zeros(3)},
    ],
    ids=range(10),
)
def test_tensors_that_do_not_fit_are_refused(lying, tensors):
    rewritten(lying, tensors)
    refused(lying)


@pytest.mark.parametrize("name", ["state.w", "state.memory.basis", "state.generator.1", "lengths"])
def test_tensors_that_are_not_there_are_refused(lying, name):
    rewritten(lying, without=[name])
    refused(lying)


@pytest.mark.parametrize(
    "change",
    [
        lambda _: "",
        lambda _: "[]",
        lambda _: "{}",
        lambda _: "[" * 100_000,
        lambda document: document.replace('"step": 6', '"step": 3'),
        lambda document: document.replace('"step": 6', '"step": "6"'),
        lambda document: document.replace('"bytes": ', '"bytes": -'),
        lambda document: document.replace('"bytes": ', '"bytes": 1'),
        lambda document: document.replace('"backwards": ', '"backwards": "x", "b": '),
    ],
    ids=range(9),
)
def test_documents_that_do_not_fit_are_refused(lying, change):
    before = lying.read_bytes()
    rewritten(lying, change=change)
    assert lying.read_bytes() != before
    refused(lying)


def test_a_folder_that_is_not_there_is_said_before_any_step(tmp_path):
    with pytest.raises(StoreError, match="mkdir -p"):
        walked("stay", checkpoint=tmp_path / "nowhere" / "walk", progress=stopping(0))
