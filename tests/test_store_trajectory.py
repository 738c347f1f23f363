"""Saved trajectories: the same bit for bit, whole or absent, and nothing but data when read."""

import json
import math
import os
import pickle
import struct
import subprocess
import sys
from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from safetensors import safe_open
from safetensors.torch import save as serialised
from safetensors.torch import save_file

import pellucid
from pellucid import Explanation, StoreError, Trajectory
from pellucid import _store as store
from pellucid._trajectory import SERIES
from pellucid.testing.tiny import build, sample_inputs

HOSTILE = "<script>alert(1)</script> \u202e \0 \\u0000 ' \" {{x}} \n ../../x"
INFINITY = float("inf")


def alike(a, b):
    """Equal in type, shape and bits, through all that a trajectory is made of."""
    if type(a) is not type(b):
        return False
    if isinstance(a, torch.Tensor):
        return serialised({"": a.contiguous()}) == serialised({"": b.contiguous()})
    if isinstance(a, np.ndarray):
        return (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
    if isinstance(a, dict):
        return list(a) == list(b) and all(alike(a[key], b[key]) for key in a)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(alike(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, float):
        return struct.pack("d", a) == struct.pack("d", b)
    names = [field.name for field in fields(a)] if hasattr(a, "__dataclass_fields__") else None
    if names is None:
        return a == b
    return all(alike(getattr(a, name), getattr(b, name)) for name in names if name != "model")


@pytest.fixture(scope="module")
def made():
    bert, vit = build("bert"), build("vit", dtype=torch.float64)
    text, image = "the film is finely good", sample_inputs(vit)[0]
    short = {"steps": 5, "save_every": 2}
    walk = pellucid.explore
    return {
        "text": walk(bert, text, **short),
        "pair": walk(bert, ("the film", "a plot"), tokens=[1, 2, 5], goal="leave", **short),
        "image": walk(vit, image, direction="toward", toward=sample_inputs(vit)[1], **short),
        "pixels": walk(vit, image, space="pixels", **short),
        "paper": walk(vit, image, preset="paper", **short),
        "class": walk(bert, text, goal=2, **short),
        "hidden": walk(bert, text, space="hidden:1", tokens="all", distance=1e-3, **short),
    }


KINDS = ["text", "pair", "image", "pixels", "paper", "class", "hidden"]


# ---- there and back ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_round_trip_is_bit_for_bit(made, kind, tmp_path):
    path = tmp_path / "x.pellucid"
    assert made[kind].save(path) == path
    again = Trajectory.load(str(path))
    assert again.model is None
    for field in fields(Trajectory):
        if field.name != "model":
            assert alike(getattr(made[kind], field.name), getattr(again, field.name)), field.name
    again.save(tmp_path / "y.pellucid")
    assert (tmp_path / "y.pellucid").read_bytes() == path.read_bytes()


def test_what_was_made_covers_what_there_is(made):
    assert {one.points.dtype for one in made.values()} == {torch.float32, torch.float64}
    assert made["paper"].settings["longest"] == INFINITY
    assert made["image"].settings["toward"] is not None
    assert made["pair"].item.rows is not None
    assert {one.kind for one in made.values()} == {"text", "image"}


numbers = st.floats(allow_nan=False, allow_infinity=False)
settings_of = st.dictionaries(
    st.text(max_size=8),
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.floats(),
    max_size=5,
)


@given(
    values=arrays.arrays(
        np.float64, st.tuples(st.just(len(SERIES)), st.integers(1, 6)), elements=numbers
    ),
    chosen=settings_of,
    words=st.lists(st.text(max_size=8), min_size=3, max_size=3),
    completed=st.booleans(),
    dtype=st.sampled_from([torch.float64, torch.float32, torch.float16, torch.bfloat16]),
)
def test_any_trajectory_comes_back(made, tmp_path_factory, values, chosen, words, completed, dtype):
    steps = values.shape[1] - 1
    saved = torch.tensor(sorted({0, steps}))
    one = replace(
        made["text"],
        goal=words[0],
        outcome=words[1],
        notes=tuple(words),
        settings=chosen,
        completed=completed,
        iterations=saved,
        points=made["text"].points[: len(saved)].to(dtype),
        probabilities=made["text"].probabilities[: len(saved)],
        predicted=tuple(words[: len(saved)]),
        series={name: torch.tensor(row) for name, row in zip(SERIES, values, strict=True)},
    )
    path = tmp_path_factory.mktemp("any") / "x"
    assert alike(Trajectory.load(one.save(path)), one)


def test_settings_that_json_has_no_word_for(made, tmp_path):
    odd = {"a": INFINITY, "b": -INFINITY, "c": math.nan, "d": -0.0, HOSTILE: HOSTILE}
    one = replace(made["text"], settings=odd, goal=HOSTILE, notes=(HOSTILE, ""))
    assert alike(Trajectory.load(one.save(tmp_path / "x")), one)


def test_a_loaded_trajectory_can_be_used(made, tmp_path):
    again = Trajectory.load(made["text"].save(tmp_path / "x"))
    assert again.steps == 5
    assert again.at(3) == 1
    assert torch.equal(again.drift, made["text"].drift)


def test_the_summary_is_json(made):
    for one in made.values():
        found = json.loads(json.dumps(one.to_dict(), allow_nan=False))
        assert found["series"]["drift"] == one.drift.tolist()
        assert found["iterations"] == one.iterations.tolist()
        assert "points" not in found


# ---- the other kind of file ----------------------------------------------------------------------


def test_each_class_names_the_other_for_its_files(made, tmp_path):
    walked, explained = tmp_path / "walked", tmp_path / "explained"
    made["text"].save(walked)
    pellucid.explain(made["text"].model, "the film").save(explained)
    with pytest.raises(StoreError, match=r"pellucid\.Trajectory\.load\('.*walked'\)"):
        Explanation.load(walked)
    with pytest.raises(StoreError, match=r"pellucid\.Explanation\.load\('.*explained'\)"):
        Trajectory.load(explained)


# ---- writing: whole or not at all ----------------------------------------------------------------


def test_an_existing_file_is_kept_unless_told_otherwise(made, tmp_path):
    path = made["text"].save(tmp_path / "x")
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"exists.*(.|\n)*overwrite=True"):
        made["image"].save(path)
    assert path.read_bytes() == before
    made["image"].save(path, overwrite=True)
    assert alike(Trajectory.load(path), made["image"])
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_a_failure_in_the_middle_leaves_nothing_behind(made, error, tmp_path, monkeypatch):
    def half(tensors, temporary, metadata):
        save_file(tensors, temporary, metadata)
        os.truncate(temporary, 100)
        raise error

    monkeypatch.setattr(store, "save_file", half)
    with pytest.raises(StoreError if isinstance(error, OSError) else type(error)):
        made["text"].save(tmp_path / "x")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "change",
    [
        {"points": torch.full((4, 6, 32), torch.nan)},
        {"predicted": ("a",)},
        {"tokens": ("1",)},
        {"series": {}},
        {"goal": None},
        {"outcome": 3},
    ],
    ids=range(6),
)
def test_what_could_not_be_read_again_is_not_written(made, change, tmp_path):
    with pytest.raises(StoreError):
        replace(made["text"], **change).save(tmp_path / "x")
    assert os.listdir(tmp_path) == []


# ---- reading what we did not write ---------------------------------------------------------------


def refused(path):
    with pytest.raises(StoreError) as caught:
        Trajectory.load(path)
    assert path.name in str(caught.value)
    assert "\n  got:" in str(caught.value)


class Harmful:
    def __reduce__(self):
        return (os.mkdir, ("harmed",))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff" * 8,
        b"hello, this is not what you think",
        struct.pack("<Q", 2) + b"{}",
        struct.pack("<Q", 1 << 62) + b"{}",
        struct.pack("<Q", 20) + b'{"__metadata__":{}}\n',
        pickle.dumps(Harmful()),
    ],
    ids=range(7),
)
def test_bytes_that_are_no_trajectory(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x").write_bytes(data)
    refused(tmp_path / "x")
    assert os.listdir(tmp_path) == ["x"]


def test_missing_files_and_folders(tmp_path):
    save_file({"points": torch.ones(3)}, tmp_path / "x.safetensors")
    (tmp_path / "folder").mkdir()
    for name in ("x.safetensors", "folder", "missing", "n" * 300):
        refused(tmp_path / name)


def test_a_file_cut_short_anywhere(made, tmp_path):
    whole = made["image"].save(tmp_path / "whole").read_bytes()
    path = tmp_path / "cut"
    for length in sorted({*range(0, len(whole), max(1, len(whole) // 60)), len(whole) - 1}):
        path.write_bytes(whole[:length])
        refused(path)


def rewritten(trajectory, path, change=None, tensors=None, without=()):
    """The saved file with its JSON changed or its tensors replaced, under a valid checksum."""
    trajectory.save(path)
    with safe_open(path, framework="pt") as file:
        found = json.loads(file.metadata()["pellucid"].partition("\n")[2])
        own = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    if change is not None:
        change(found)
    text = json.dumps(found)
    everything = {n: t for n, t in (own | (tensors or {})).items() if n not in without}
    save_file(everything, path, {"pellucid": f"{store.checksum(text, everything)}\n{text}"})
    return path


def put(*keys):
    """A change of the JSON document: all but the last are the way, the last is the new value."""
    *way, last, value = keys

    def change(document):
        place = document
        for key in way:
            place = place[key]
        place[last] = value

    return change


CHANGES = {
    "no format": lambda document: document.pop("format"),
    "format of tomorrow": put("format", 2),
    "holds another thing": put("holds", "model"),
    "holds a list": put("holds", []),
    "unknown kind": put("kind", "video"),
    "goal": put("goal", 5),
    "space": put("space", None),
    "settings": put("settings", [1]),
    "settings with a number of words": put("settings", {"a": {"number": "1e5"}}),
    "tokens in words": put("tokens", "ab"),
    "tokens of none": put("tokens", []),
    "tokens of another number": put("tokens", [1, 2]),
    "tokens twice": put("tokens", [1, 1, 2, 3, 4, 5]),
    "tokens that are not there": put("tokens", [1, 2, 3, 4, 5, 10**9]),
    "tokens below zero": put("tokens", [-1, 2, 3, 4, 5, 6]),
    "tokens of booleans": put("tokens", [False, True, 2, 3, 4, 5]),
    "labels": put("labels", ["a"]),
    "labels of none": put("labels", []),
    "classes": put("classes", [0, 1]),
    "classes below zero": put("classes", [-1, 0, 1]),
    "predicted": put("predicted", ["a"]),
    "series": put("series", ["drift"]),
    "series in words": put("series", "drift"),
    "series that is not known": put("series", 0, "speed"),
    "outcome": put("outcome", 1),
    "completed": put("completed", "yes"),
    "completed as a number": put("completed", 1),
    "notes": put("notes", "abc"),
    "provenance": put("provenance", None),
    "provenance seconds": put("provenance", "seconds", 10**400),
    "segments": put("segments", 1, "span", [0, 10**9]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_document_of_wrong_types_or_values(made, change, tmp_path):
    assert made["text"].points.shape[:2] == (4, 6)
    refused(rewritten(made["text"], tmp_path / "x", CHANGES[change]))


@pytest.mark.parametrize(
    "tensors",
    [
        {"points": torch.ones(4, 6)},
        {"points": torch.ones(3, 6, 32)},
        {"points": torch.ones(4, 5, 32)},
        {"points": torch.full((4, 6, 32), torch.inf)},
        {"points": torch.ones(4, 6, 32, dtype=torch.long)},
        {"points": torch.ones(4, 6, 32).to(torch.float8_e5m2)},
        {"points": torch.ones(4, 6, 32, dtype=torch.complex64)},
        {"iterations": torch.tensor([0, 2, 4])},
        {"iterations": torch.tensor([0, 4, 2, 5])},
        {"iterations": torch.tensor([1, 2, 4, 5])},
        {"iterations": torch.tensor([0, 2, 4, 6])},
        {"iterations": torch.tensor([0.0, 2.0, 4.0, 5.0])},
        {"probabilities": torch.ones(4, 3)},
        {"probabilities": torch.ones(4, 2, dtype=torch.float64)},
        {"probabilities": torch.full((4, 3), torch.nan, dtype=torch.float64)},
        {"series.drift": torch.zeros(5, dtype=torch.float64)},
        {"series.drift": torch.zeros(6)},
        {"series.drift": torch.full((6,), torch.nan, dtype=torch.float64)},
        {"series.drift": torch.zeros(6, 1, dtype=torch.float64)},
        {f"series.{name}": torch.zeros(0, dtype=torch.float64) for name in SERIES},
    ],
    ids=range(20),
)
def test_tensors_that_do_not_fit(made, tensors, tmp_path):
    refused(rewritten(made["text"], tmp_path / "x", tensors=tensors))


@pytest.mark.parametrize("name", ["points", "iterations", "probabilities", "series.energy"])
def test_tensors_that_are_not_there(made, name, tmp_path):
    refused(rewritten(made["text"], tmp_path / "x", without=[name]))


# ---- fuzz ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["text", "image"])
def test_a_damaged_file_is_never_another_trajectory(made, kind, tmp_path):
    """Now and then a byte with one bit turned: refused, or (where bytes mean nothing) the same."""
    path = tmp_path / "x"
    whole = made[kind].save(path).read_bytes()
    for place in range(0, len(whole), len(whole) // 200):
        data = bytearray(whole)
        data[place] ^= 4
        path.write_bytes(data)
        try:
            found = Trajectory.load(path)
        except StoreError:
            continue
        assert alike(found, made[kind]), f"byte {place}"


FIELDS = ["kind", "holds", "goal", "space", "settings", "tokens", "labels", "classes", "predicted"]
FIELDS += ["series", "outcome", "completed", "notes", "provenance", "segments", "parts", "rows"]


@settings(max_examples=100)
@given(
    key=st.sampled_from(FIELDS),
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
        ),
        max_leaves=6,
    ),
)
def test_any_json_in_any_field_gives_no_other_error(made, tmp_path_factory, key, value):
    path = tmp_path_factory.mktemp("changed") / "x"
    try:
        found = Trajectory.load(rewritten(made["text"], path, put(key, value)))
    except StoreError:
        return
    assert isinstance(found.to_dict(), dict)
    found.save(path, overwrite=True)


# ---- nothing runs --------------------------------------------------------------------------------


def test_loading_imports_no_model_library(made, tmp_path):
    made["text"].save(tmp_path / "text")
    program = """
import sys
from pellucid import Trajectory
Trajectory.load("text")
print(*[name for name in ("transformers", "typer", "matplotlib") if name in sys.modules])
"""
    run = [sys.executable, "-c", program]
    found = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert found.stdout.split() == []
