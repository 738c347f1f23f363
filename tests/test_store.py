"""Saved explanations: the same bit for bit, whole or absent, and nothing but data when read."""

import json
import os
import pickle
import struct
import subprocess
import sys
import zlib
from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from safetensors import safe_open
from safetensors.torch import save as serialised
from safetensors.torch import save_file

import pellucid
from pellucid import Attribution, Explanation, StoreError
from pellucid import _store as store

HOSTILE = (
    "<script>alert(1)</script> \u202e \U0001f468\u200d\U0001f469 \0 \\u0000 ' \" {{x}} \n ../../x"
)


def same(one, other):
    """Every field is equal, tensors in type, shape and bits; the ids of a text are read anew."""
    names = [field.name for field in fields(one) if field.name != "rows"]
    return all(alike(getattr(one, name), getattr(other, name)) for name in names)


def alike(a, b):
    if type(a) is not type(b):
        return False
    if isinstance(a, torch.Tensor):
        return serialised({"": a.contiguous()}) == serialised({"": b.contiguous()})
    if isinstance(a, np.ndarray):
        return (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
    if isinstance(a, dict):
        return list(a) == list(b) and all(alike(a[key], b[key]) for key in a)
    return same(a, b) if hasattr(a, "__dataclass_fields__") else a == b


def several(case):
    """A method with two extras that are views of one tensor, and notes."""
    pair = torch.stack([case.randn(), case.randn()])
    extras = {"first": pair[0], "second": pair[1], "both": pair.movedim(0, 1), HOSTILE: pair[0]}
    return Attribution(pair[0], extras, [[HOSTILE, ""] for _ in case.batch.items])


@pytest.fixture(scope="module")
def made(reviews, digits):
    image = pellucid.models.sample_images()[0]
    bert, vit = reviews, digits
    return {
        "text": pellucid.explain(bert, "A fine film, é 電影 \U0001f600!", method="random"),
        "pair": pellucid.explain(bert, ("a fine film", "a bad plot"), method="gradient_x_input"),
        "patches": pellucid.explain(vit, image, method="rollout", discard=0.5),
        "pixels": pellucid.explain(vit, image, method="gradient_x_input"),
        "extras": pellucid.explain(bert, HOSTILE, method=several),
        "function": pellucid.explain(bert, "a film", method="random", target=first_logit),
    }


def first_logit(output):
    return output.logits[:, 0]


KINDS = ["text", "pair", "patches", "pixels", "extras", "function"]


# ---- there and back ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_round_trip_is_bit_for_bit(made, kind, tmp_path):
    path = tmp_path / "x.pellucid"
    assert made[kind].save(path) == path
    again = Explanation.load(str(path))
    for field in fields(Explanation):
        assert alike(getattr(made[kind], field.name), getattr(again, field.name)), field.name
    again.save(tmp_path / "y.pellucid")
    assert (tmp_path / "y.pellucid").read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    "value", [0.1, 5e-324, 1.7976931348623157e308, -0.0, float(np.nextafter(1, 2))]
)
def test_numbers_keep_their_last_bit(made, value, tmp_path):
    one = replace(made["text"], value=value, prediction={HOSTILE: value}, label=HOSTILE)
    again = Explanation.load(one.save(tmp_path / "x"))
    assert struct.pack("d", again.value) == struct.pack("d", value)
    assert struct.pack("d", again.prediction[HOSTILE]) == struct.pack("d", value)
    assert again.label == HOSTILE


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16, torch.bool])
def test_types_of_extras_are_kept(made, dtype, tmp_path):
    extra = torch.tensor([[1.5, 0.0], [-2.25, 3.0]]).to(dtype)
    one = replace(made["text"], extras={"t": extra.T, "empty": extra[:0], "one": extra[0, 0]})
    again = Explanation.load(one.save(tmp_path / "x"))
    for name, tensor in one.extras.items():
        assert again.extras[name].dtype == dtype
        assert again.extras[name].shape == tensor.shape
        assert torch.equal(again.extras[name], tensor)


def test_a_loaded_explanation_can_be_used(made, reviews, digits, tmp_path):
    text = Explanation.load(made["text"].save(tmp_path / "text"))
    assert text.words() == made["text"].words()
    patches = Explanation.load(made["patches"].save(tmp_path / "patches"))
    assert torch.equal(patches.map(), made["patches"].map())
    for model, one, metric, options in (
        (reviews, "text", "text_deletion", {"grid": "tokens:2"}),
        (digits, "patches", "deletion", {"steps": 4}),
    ):
        again = Explanation.load(tmp_path / one)
        before = pellucid.measure(model, made[one], metric=metric, **options)
        assert pellucid.measure(model, again, metric=metric, **options) == before


def test_the_summary_is_json_and_names_each_score(made):
    for one in made.values():
        found = json.loads(json.dumps(one.to_dict(), allow_nan=False))
        assert found["label"] == one.label
        if one.scores.dim() == 1:
            assert found["scores"] == one.scores.tolist()
            assert len(found["segments"]) == len(found["scores"])


# ---- writing: whole or not at all ----------------------------------------------------------------


def test_an_existing_file_is_kept_unless_told_otherwise(made, tmp_path):
    path = made["text"].save(tmp_path / "x")
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"exists.*(.|\n)*overwrite=True"):
        made["pair"].save(path)
    assert path.read_bytes() == before
    made["pair"].save(path, overwrite=True)
    assert same(Explanation.load(path), made["pair"])
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt(), MemoryError()])
@pytest.mark.parametrize("existing", [False, True])
def test_a_failure_in_the_middle_leaves_nothing_behind(
    made, error, existing, tmp_path, monkeypatch
):
    path = tmp_path / "x"
    if existing:
        made["text"].save(path)

    def half(tensors, temporary, metadata):
        save_file(tensors, temporary, metadata)
        os.truncate(temporary, 100)
        raise error

    monkeypatch.setattr(store, "save_file", half)
    with pytest.raises(StoreError if isinstance(error, OSError) else type(error)):
        made["pair"].save(path, overwrite=True)
    assert os.listdir(tmp_path) == (["x"] if existing else [])
    if existing:
        assert same(Explanation.load(path), made["text"])


@pytest.mark.parametrize("place", ["missing/x", "file/x", "folder", "n" * 300, "nul\0l"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_places_that_cannot_be_written(made, place, overwrite, tmp_path):
    (tmp_path / "file").write_text("here")
    (tmp_path / "folder").mkdir()
    with pytest.raises(StoreError) as caught:
        made["text"].save(tmp_path / place, overwrite=overwrite)
    assert "got:" in str(caught.value)
    assert "expected:" in str(caught.value)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


def test_a_name_as_long_as_the_system_takes(made, tmp_path):
    made["text"].save(tmp_path / ("n" * 250))
    assert os.listdir(tmp_path) == ["n" * 250]


def test_a_folder_without_permission(made, tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(store, "save_file", refuse)
    with pytest.raises(StoreError, match="Permission denied"):
        made["text"].save(tmp_path / "x")


@pytest.mark.parametrize("change", [{"value": float("nan")}, {"prediction": {"a": float("inf")}}])
def test_what_could_not_be_read_again_is_not_written(made, change, tmp_path):
    with pytest.raises(pellucid.PellucidError):
        replace(made["text"], **change).save(tmp_path / "x")
    assert not os.listdir(tmp_path)


# ---- reading what we did not write ---------------------------------------------------------------


def refused(path):
    with pytest.raises(StoreError) as caught:
        Explanation.load(path)
    assert path.name in str(caught.value)
    assert "\n  got:" in str(caught.value)


class Harmful:
    def __reduce__(self):
        return (os.mkdir, ("harmed",))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0",
        b"\xff" * 8,
        b"\0" * 4096,
        b"PK\x03\x04 a zip",
        b"{}",
        b"hello, this is not what you think",
        struct.pack("<Q", 2) + b"{}",
        struct.pack("<Q", 1 << 62) + b"{}",
        struct.pack("<Q", 20) + b'{"__metadata__":{}}\n',
        pickle.dumps({"scores": [1.0]}),
        pickle.dumps(Harmful()),
        bytes(np.random.default_rng(0).integers(0, 256, 5000, dtype=np.uint8)),
    ],
)
def test_bytes_that_are_no_explanation(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "x.pellucid"
    path.write_bytes(data)
    refused(path)
    assert os.listdir(tmp_path) == ["x.pellucid"]


def test_torch_files_missing_files_and_folders(tmp_path):
    torch.save({"scores": torch.ones(3)}, tmp_path / "x.pt")
    save_file({"scores": torch.ones(3)}, tmp_path / "x.safetensors")
    save_file({"scores": torch.ones(3)}, tmp_path / "y.safetensors", {"format": "pt"})
    (tmp_path / "folder").mkdir()
    for name in ("x.pt", "x.safetensors", "y.safetensors", "folder", "missing", "n" * 300):
        refused(tmp_path / name)


@pytest.mark.parametrize("kind", ["text", "patches"])
def test_a_file_cut_short_anywhere(made, kind, tmp_path):
    whole = made[kind].save(tmp_path / "whole").read_bytes()
    path = tmp_path / "cut"
    for length in sorted({*range(0, len(whole), max(1, len(whole) // 60)), len(whole) - 1}):
        path.write_bytes(whole[:length])
        refused(path)


def rewritten(explanation, path, change=None, tensors=None, document=None):
    """The saved file with its JSON changed, its tensors replaced, or its JSON typed by hand."""
    explanation.save(path)
    with safe_open(path, framework="pt") as file:
        found = json.loads(file.metadata()["pellucid"].partition("\n")[2])
        own = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    if change is not None:
        change(found)
    text = json.dumps(found) if document is None else document
    everything = own | (tensors or {})
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


INFINITY = float("inf")
CHANGES = {
    "no format": lambda document: document.pop("format"),
    "format of tomorrow": put("format", 2),
    "format in words": put("format", "1"),
    "no kind": lambda document: document.pop("kind"),
    "unknown kind": put("kind", "video"),
    "no segments": put("segments", None),
    "segments of another number": put("segments", []),
    "segment in words": put("segments", 0, "a"),
    "segment without text": lambda document: document["segments"][0].pop("text"),
    "segment text": put("segments", 0, "text", 7),
    "role": put("segments", 0, "role", "owner"),
    "role as list": put("segments", 0, "role", []),
    "span of none": put("segments", 1, "span", []),
    "span of one": put("segments", 1, "span", [1]),
    "span in words": put("segments", 1, "span", "ab"),
    "span of infinity": put("segments", 1, "span", [0, INFINITY]),
    "span beyond the text": put("segments", 1, "span", [0, 10**9]),
    "span backwards": put("segments", 1, "span", [5, 2]),
    "span below zero": put("segments", 1, "span", [-3, 2]),
    "part": put("segments", 1, "part", "x"),
    "part of infinity": put("segments", 1, "part", INFINITY),
    "part that is not there": put("segments", 1, "part", 5),
    "box of two": put("segments", 1, "box", [1, 2]),
    "parts in words": put("parts", "ab"),
    "parts of none": put("parts", []),
    "parts of numbers": put("parts", [1]),
    "three parts": put("parts", ["a", "b", "c"]),
    "method": put("method", 5),
    "params": put("params", [1, 2]),
    "params none": put("params", None),
    "signed in words": put("signed", "no"),
    "target": put("target", ["logit"]),
    "label": put("label", None),
    "index in words": put("index", "1"),
    "index of infinity": put("index", INFINITY),
    "index in parts": put("index", 1.5),
    "value none": put("value", None),
    "value in words": put("value", "1.0"),
    "value not a number": put("value", float("nan")),
    "value of infinity": put("value", -INFINITY),
    "value too large": put("value", 10**400),
    "prediction as list": put("prediction", ["a"]),
    "prediction none": put("prediction", None),
    "prediction of words": put("prediction", {"a": "b"}),
    "prediction not a number": put("prediction", {"a": float("nan")}),
    "prediction too large": put("prediction", {"a": 10**400}),
    "notes in words": put("notes", "abc"),
    "notes of numbers": put("notes", [1]),
    "provenance none": put("provenance", None),
    "provenance as list": put("provenance", []),
    "provenance versions": put("provenance", "versions", [["a", "b"]]),
    "provenance seed": put("provenance", "seed", INFINITY),
    "provenance seconds": put("provenance", "seconds", 10**400),
    "provenance forwards": put("provenance", "forwards", "many"),
    "provenance dtype": put("provenance", "dtype", {}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_document_of_wrong_types_or_values(made, change, tmp_path):
    refused(rewritten(made["text"], tmp_path / "x", CHANGES[change]))


@pytest.mark.parametrize(
    "document",
    [
        "",
        "null",
        "[]",
        "5",
        '"text"',
        "{",
        "{}",
        '{"format": 1}',
        "[" * 100_000,
        "[" * 100_000 + "]" * 100_000,
        '{"a":' * 100_000 + "1" + "}" * 100_000,
        "1" * 5000,
        "NaN",
    ],
    ids=range(13),
)
def test_documents_that_are_none_of_ours(made, document, tmp_path):
    refused(rewritten(made["text"], tmp_path / "x", document=document))


def test_deep_parameters(made, tmp_path):
    deep = "0"
    for _ in range(5000):
        deep = f"[{deep}]"
    path = rewritten(made["text"], tmp_path / "x")
    with safe_open(path, framework="pt") as file:
        document = file.metadata()["pellucid"].replace('"params": {}', f'"params": {{"a": {deep}}}')
    assert "[[[" in document
    try:
        Explanation.load(rewritten(made["text"], tmp_path / "y", document=document))
    except StoreError:
        return


@pytest.mark.parametrize(
    "tensors",
    [
        {"scores": torch.ones(2)},
        {"scores": torch.ones(0)},
        {"scores": torch.ones(3, 3, 3)},
        {"scores": torch.tensor(1.0)},
        {"scores": torch.full((5,), torch.nan)},
        {"scores": torch.full((5,), -torch.inf)},
        {"scores": torch.ones(5, dtype=torch.complex64)},
        {"scores": torch.ones(5, dtype=torch.bool)},
        {"logits": torch.ones(2, 2)},
        {"logits": torch.full((2,), torch.nan)},
    ],
)
def test_tensors_that_do_not_fit(made, tensors, tmp_path):
    path = tmp_path / "x"
    assert made["function"].scores.shape == (4,)
    if tensors.get("scores") is not None and tensors["scores"].shape == (5,):
        tensors = {"scores": tensors["scores"][:4].clone()}
    refused(rewritten(made["function"], path, tensors=tensors))


def as_tensor(data):
    return torch.tensor(list(data), dtype=torch.uint8)


def header_of(width, height):
    """A PNG of 60 bytes that promises this size."""
    body = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    end = b"\0\0\0\0IDAT" + struct.pack(">I", zlib.crc32(b"IDAT"))
    return (
        b"\x89PNG\r\n\x1a\n"
        + struct.pack(">I", 13)
        + body
        + struct.pack(">I", zlib.crc32(body))
        + end
    )


PAGE = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 28 28\n%%EndComments\nshowpage\n%%EOF\n"


@pytest.mark.parametrize(
    "picture",
    [
        as_tensor(b""),
        as_tensor(b"no picture"),
        torch.ones(28, 28),
        torch.ones(3, dtype=torch.bfloat16),
        as_tensor(header_of(28, 28)),
        as_tensor(header_of(1, 1)),
        as_tensor(header_of(9_000, 9_000)),
        as_tensor(header_of(10_000, 10_000)),
        as_tensor(header_of(100_000, 100_000)),
        as_tensor(header_of(2**31 - 1, 2**31 - 1)),
        as_tensor(PAGE),
    ],
    ids=range(11),
)
def test_pictures_that_are_none(made, picture, tmp_path, monkeypatch):
    """Also one in PostScript, for which Pillow would start an interpreter."""
    from PIL import EpsImagePlugin

    started = []
    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", lambda *a, **k: started.append(a))
    try:
        refused(rewritten(made["patches"], tmp_path / "x", tensors={"picture": picture}))
    finally:
        assert not started


@pytest.mark.parametrize(
    "change",
    [
        put("grid", [3, 3]),
        put("grid", [-7, -7]),
        put("grid", [49]),
        put("grid", []),
        put("grid", "77"),
        put("grid", [INFINITY, 7]),
        put("segments", 1, "box", []),
        put("segments", 1, "box", [0, 0, 10**9, 10**9]),  # `map` would fill the memory
        put("segments", 1, "box", [-4, 0, 4, 4]),
        put("segments", 1, "box", [INFINITY, 0, 4, 4]),
        put("segments", 1, "box", "abcd"),
    ],
    ids=range(11),
)
def test_patches_that_do_not_fit_the_picture(made, change, tmp_path):
    refused(rewritten(made["patches"], tmp_path / "x", change))


# ---- fuzz ----------------------------------------------------------------------------------------


flips = st.lists(
    st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255)), min_size=1, max_size=3
)


@pytest.fixture(scope="module")
def damaged(made, tmp_path_factory):
    """A function that loads a saved explanation after some of its bytes were changed."""
    path = tmp_path_factory.mktemp("fuzz") / "x"
    saved = {}
    for kind in ("function", "patches"):
        saved[kind] = made[kind].save(path).read_bytes()
        path.unlink()

    def load(kind, changes):
        data = bytearray(saved[kind])
        for where, mask in changes:
            data[int(where * len(data))] ^= mask
        path.write_bytes(data)
        return Explanation.load(path)

    return load


@pytest.mark.parametrize("kind", ["function", "patches"])
@settings(max_examples=100)
@given(changes=flips)
def test_a_damaged_file_gives_no_other_error(damaged, kind, changes):
    try:
        found = damaged(kind, changes)
    except StoreError:
        return
    assert isinstance(found, Explanation)


@pytest.mark.parametrize("kind", ["function", "patches"])
def test_a_damaged_file_is_never_another_explanation(made, damaged, kind):
    """Every 97th byte with one bit turned: refused, or (where bytes mean nothing) the same."""
    for place in range(0, 100_000, 97):
        try:
            found = damaged(kind, [(place / 100_000, 4)])
        except StoreError:
            continue
        assert same(found, made[kind]), f"byte at {place / 1000:.1f} %"


FIELDS = ["kind", "format", "segments", "parts", "grid", "params", "prediction", "provenance"]
FIELDS += ["notes", "value", "index", "signed", "label"]


@pytest.fixture(scope="module")
def changed(made, tmp_path_factory):
    """A function that loads a saved explanation after a change of its document."""
    path = tmp_path_factory.mktemp("changed") / "x"

    def load(change):
        path.unlink(missing_ok=True)
        return Explanation.load(rewritten(made["function"], path, change))

    return load


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
def test_any_json_in_any_field_gives_no_other_error(changed, key, value):
    try:
        found = changed(put(key, value))
    except StoreError:
        return
    found.words()
    found.top()
    assert isinstance(found.to_dict(), dict)


# ---- nothing runs --------------------------------------------------------------------------------


def test_loading_imports_nothing(made, tmp_path):
    """But what Pillow needs to read a PNG."""
    made["patches"].save(tmp_path / "patches")
    made["text"].save(tmp_path / "text")
    Image.new("RGB", (4, 4)).save(tmp_path / "warm.png")
    program = """
import sys
from pellucid import Explanation
from pellucid import _store
from PIL import Image
Image.open("warm.png").load()
before = set(sys.modules)
loaded = [Explanation.load("patches"), Explanation.load("text")]
print(*sorted(name for name in set(sys.modules) - before if not name.startswith("PIL.")))
"""
    run = [sys.executable, "-c", program]
    found = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert found.stdout.split() == []
