"""What is loaded or shown may be hostile: nothing runs, nothing outside is read, memory is bound.

Files of explanations and of trajectories, images, and what is shown have more of this beside the
rest of their tests; here is what crosses from one to the other, and checkpoints.
"""

import copy
import json
import os
import pickle
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from test_images import png
from test_viz import HOSTILE, Reader

import pellucid
from pellucid import Explanation, InputError, ModelError, StoreError, Trajectory
from pellucid._store import checksum
from pellucid.cli import main
from pellucid.models import bundled_path, sample_images
from pellucid.testing.tiny import build, sample_inputs
from pellucid.viz import page

BERT, VIT = "reviews-bert", "digits-vit"
TEXT = "not very good , but it was fine at all and a great film , as I said before"
ESCAPES = "\x1b]0;owned\x07\x1b[2J\r\n\u202e"
MEGABYTE = 2**20


def message_of(error, work):
    with pytest.raises(error) as caught:
        work()
    return str(caught.value)


# ---- checkpoints ---------------------------------------------------------------------------------


def checkpoint(folder, source=BERT, file="config.json", **changes):
    """A bundled model in a folder of its own, one of its JSON files changed."""
    shutil.copytree(bundled_path(source), folder)
    found = json.loads((folder / file).read_text())
    (folder / file).write_text(json.dumps(found | changes))
    return folder


class Harmful:
    """Unpickled, it makes a folder."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


@pytest.mark.parametrize("form", ["beside tensors", "alone", "old format"])
@pytest.mark.filterwarnings("ignore:Detected pickle protocol")  # torch's own
def test_pickled_objects_are_not_made(form, tmp_path):
    folder, ran = checkpoint(tmp_path / "model"), tmp_path / "ran"
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    path = folder / "pytorch_model.bin"
    if form == "alone":
        path.write_bytes(pickle.dumps(Harmful(ran)))
    else:
        modern = form == "beside tensors"
        torch.save(weights | {"more": Harmful(ran)}, path, _use_new_zipfile_serialization=modern)
    message = message_of(ModelError, lambda: pellucid.load(folder))
    assert not ran.exists()
    assert "weights_only" not in message, "the message says how to run it"
    assert "safetensors" in message


def test_pickled_tensors_are_read(tmp_path):
    folder = checkpoint(tmp_path / "model")
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    assert pellucid.load(folder).weights_hash() == pellucid.load(f"pellucid/{BERT}").weights_hash()


CODE = {  # the model, the file that names code, what it says, and whether the model is refused
    "a configuration": (BERT, "config.json", {"auto_map": {"AutoConfig": "home.Home"}}, False),
    "a model": (
        BERT,
        "config.json",
        {"auto_map": {"AutoModelForSequenceClassification": "home.Home"}},
        False,
    ),
    "a type": (
        BERT,
        "config.json",
        {"model_type": "home-made", "auto_map": {"AutoConfig": "home.Home"}},
        True,
    ),
    "a tokenizer": (
        BERT,
        "tokenizer_config.json",
        {"auto_map": {"AutoTokenizer": ["home.Home", "home.Home"]}, "tokenizer_class": "Home"},
        False,
    ),
    "an image processor": (
        VIT,
        "preprocessor_config.json",
        {"auto_map": {"AutoImageProcessor": "home.Home"}, "image_processor_type": "Home"},
        True,
    ),
    "code of another repository": (
        BERT,
        "config.json",
        {"model_type": "home-made", "auto_map": {"AutoConfig": "evil/repo--home.Home"}},
        True,
    ),
}


@pytest.mark.parametrize("what", CODE)
def test_code_of_a_checkpoint_does_not_run(what, tmp_path, monkeypatch):
    """And nobody is asked on the terminal whether it should."""
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("it asked"))
    source, file, changes, refused = CODE[what]
    folder, ran = checkpoint(tmp_path / "model", source, file, **changes), tmp_path / "ran"
    (folder / "home.py").write_text(f"open({str(ran)!r}, 'w').close()\nclass Home: pass\n")
    if refused:
        assert "trust_remote_code=True" in message_of(ModelError, lambda: pellucid.load(folder))
    else:
        assert pellucid.load(folder).labels  # what transformers has stands for it
    assert not ran.exists()


def test_code_runs_where_the_user_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "own"))
    monkeypatch.setattr(sys, "path", list(sys.path))
    changes = {"model_type": "home-made", "auto_map": {"AutoConfig": "home.Home"}}
    folder, ran = checkpoint(tmp_path / "model", **changes), tmp_path / "ran"
    (folder / "home.py").write_text(
        f"open({str(ran)!r}, 'w').close()\n"
        "from transformers import BertConfig\n"
        "class Home(BertConfig):\n    model_type = 'home-made'\n"
    )
    before = set(sys.modules)
    try:
        assert pellucid.load(folder, trust_remote_code=True).labels == ("negative", "positive")
    finally:
        for name in set(sys.modules) - before:
            if name.startswith("transformers_modules"):
                del sys.modules[name]
    assert ran.exists()


@pytest.mark.parametrize("key", ["attn_implementation", "_attn_implementation"])
def test_attention_from_elsewhere_is_not_fetched(key, tmp_path, monkeypatch):
    """A config may name a repository whose compiled code would be its attention."""
    import transformers.modeling_utils as theirs

    monkeypatch.setattr(
        theirs, "lazy_import_flash_attention", lambda *_, **__: pytest.fail("fetched")
    )
    for value in ("evil/kernels", {"": "evil/kernels"}, "paged|evil/kernels@main:x"):
        folder = checkpoint(tmp_path / str(len(list(tmp_path.iterdir()))), **{key: value})
        message = message_of(ModelError, lambda f=folder: pellucid.load(f))
        assert "evil/kernels" in message
        assert "trust_remote_code=True" in message
    assert pellucid.load(checkpoint(tmp_path / "sound", **{key: "eager"})).labels


@pytest.mark.parametrize(
    "where", ["../outside.safetensors", "absolute", "part/../../outside.safetensors"]
)
def test_weights_are_not_read_from_elsewhere(where, tmp_path):
    folder = checkpoint(tmp_path / "model")
    outside = tmp_path / "outside.safetensors"
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").rename(outside)
    (folder / "part").mkdir()
    named = str(outside) if where == "absolute" else where
    index = {"metadata": {}, "weight_map": dict.fromkeys(weights, named)}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert "same folder" in message_of(ModelError, lambda: pellucid.load(folder))
    shutil.copy(outside, folder / "inside.safetensors")
    index["weight_map"] = dict.fromkeys(weights, "inside.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert pellucid.load(folder).labels


CONFIGS = [
    {"num_attention_heads": 0},
    {"hidden_size": -1},
    {"hidden_size": "x"},
    {"hidden_size": 10**6},
    {"vocab_size": 10**9},
    {"max_position_embeddings": 10**9},
    {"num_hidden_layers": 10**6},
    {"architectures": [5]},
    {"architectures": ["os.systemForCausalLM"]},
    {"architectures": ["__dict__ForCausalLM"]},
    {"model_type": ["x"]},
    {"model_type": "../../x"},
    {"dtype": "evil"},
    {"pad_token_id": "x"},
    {"id2label": {"zero": "a"}},
    {"id2label": 5},
    {"quantization_config": 5},
]


@pytest.mark.parametrize("changes", CONFIGS, ids=str)
def test_configs_that_make_no_sense_end_in_one_error(changes, tmp_path):
    folder = checkpoint(tmp_path / "model", **changes)
    assert "instead:" in message_of(ModelError, lambda: pellucid.load(folder))


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json", "tokenizer_config.json"])
@pytest.mark.parametrize("bomb", ["[" * 100_000, '{"a":' * 100_000 + "1" + "}" * 100_000])
def test_json_that_nests_without_end(file, bomb, tmp_path):
    folder = checkpoint(tmp_path / "model")
    (folder / file).write_text(bomb)
    assert "instead:" in message_of(ModelError, lambda: pellucid.load(folder))


def grown(program, *arguments):
    """By how many megabytes the peak of memory grows in a fresh process, from `begin()` on."""
    head = """
import resource, sys
import pellucid
from pellucid import PellucidError
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
def attempt(work):
    try:
        work()
    except PellucidError:
        pass
"""
    run = [sys.executable, "-c", head + program, *map(str, arguments)]
    found = subprocess.run(run, capture_output=True, text=True, timeout=120, check=False)
    assert found.returncode == 0, found.stderr
    return float(found.stdout.split()[-1])


def test_configs_that_ask_for_too_much_do_not_fill_the_memory(tmp_path):
    bombs = [
        checkpoint(tmp_path / "labels", id2label=None, label2id=None, num_labels=10**9),
        checkpoint(tmp_path / "layers", num_hidden_layers=10**9),
        checkpoint(tmp_path / "inner", text_config={"num_labels": 10**9}),
        checkpoint(tmp_path / "wide", hidden_size=10**8),
    ]
    program = """
pellucid.load("pellucid/reviews-bert")
before = peak()
for path in sys.argv[1:]:
    attempt(lambda: pellucid.load(path))
print(peak() - before)
"""
    assert grown(program, *bombs) < 100


# ---- names ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hostile_model(tmp_path_factory):
    labels = [HOSTILE[0] + ESCAPES, HOSTILE[1] + ESCAPES]
    named = {"id2label": dict(enumerate(labels)), "label2id": {x: i for i, x in enumerate(labels)}}
    return checkpoint(tmp_path_factory.mktemp("models") / f"{HOSTILE[4][:9]}\x1b[2J", **named)


@pytest.fixture
def run(capsys, monkeypatch):
    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["pellucid", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
        captured = capsys.readouterr()
        return code, captured.out + captured.err

    return call


def assert_harmless(text):
    """Nothing that moves a terminal's cursor, or renames its window."""
    assert not [c for c in text if c < " " and c not in "\n\t"]
    assert "\x7f" not in text


def test_labels_and_folders_of_a_hostile_model(run, hostile_model, tmp_path):
    for verb in (["explain"], ["explore", "--steps", "4", "--goal", "leave"]):
        out = tmp_path / f"{verb[0]}.html"
        code, shown = run(*verb, f"a fine film {HOSTILE[0]}", "-m", hostile_model, "--out", out)
        assert code == 0
        assert_harmless(shown)
        read = Reader(out.read_text())
        assert not read.named("img") or all("onerror" not in one for one in read.named("img"))
        assert len(read.scripts) == 1
    for verb in (["methods"], ["metrics"]):
        code, shown = run(*verb, "--for", hostile_model)
        assert_harmless(shown)
    code, shown = run("explain", "x", "-m", hostile_model, "--target", f"no{ESCAPES}")
    assert code == 2
    assert_harmless(shown)


@pytest.mark.parametrize(
    "name", [f"{HOSTILE[0].replace('/', '')}.png", "a\x1b[2Jb\rc.png", "..%2f.png"]
)
def test_names_of_files(name, run, tmp_path):
    """Of an image that is there, and of one that is not; what is written lies where it should."""
    inputs, outputs = tmp_path / "in", tmp_path / "out"
    inputs.mkdir()
    shutil.copy(sample_images()[0], inputs / name)
    code, shown = run("explore", inputs / name, "-m", f"pellucid/{VIT}", "--steps", "3",
                      "--space", "pixels", "--out", outputs)  # fmt: skip
    assert code == 0
    assert_harmless(shown)
    assert sorted(path.name for path in outputs.iterdir()) == ["report.html", "walk-1.pellucid"]
    assert [path.name for path in inputs.iterdir()] == [name]
    code, shown = run("explain", tmp_path / name, "-m", f"pellucid/{VIT}")
    assert code == 2
    assert_harmless(shown)


# ---- saved results -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Honest files of every kind, with what loads them."""
    folder, bert, vit = tmp_path_factory.mktemp("saved"), build("bert"), build("vit")
    image = sample_inputs(vit)[0]
    results = {
        "text": pellucid.explain(bert, TEXT, method="gradient_x_input"),
        "image": pellucid.explain(vit, image, method="rollout"),
        "walk": pellucid.explore(bert, TEXT, steps=4, save_every=2),
        "pixels": pellucid.explore(vit, image, steps=4, save_every=2, space="pixels"),
    }
    return {name: (type(one), one.save(folder / name)) for name, one in results.items()}


def rewritten(path, goal, change, more=None):
    """A file sealed like an honest one, its document changed and tensors added."""
    with safe_open(path, framework="pt") as file:
        document = json.loads(file.metadata()["pellucid"].partition("\n")[2])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    change(document)
    tensors |= more or {}
    text = json.dumps(document)
    save_file(tensors, goal, {"pellucid": f"{checksum(text, tensors)}\n{text}"})
    return goal


def places_of_strings(value, way=()):
    """The ways to all strings of a document."""
    if isinstance(value, str):
        yield way
    if isinstance(value, dict | list):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places_of_strings(one, (*way, key))


def put(document, way, value):
    for key in way[:-1]:
        document = document[key]
    document[way[-1]] = value


@pytest.mark.parametrize("kind", ["text", "image", "walk", "pixels"])
def test_markup_in_any_string_of_a_file_is_text(kind, saved, tmp_path, capsys):
    """One string after the other; what is loaded is shown everywhere without harm."""
    load, path = saved[kind]
    with safe_open(path, framework="pt") as file:
        document = json.loads(file.metadata()["pellucid"].partition("\n")[2])
    honest = Reader(page([load.load(path)]))
    tags = {tag for tag, _ in honest.elements} | {"ul", "li", "q", "details", "summary", "code"}
    harm = HOSTILE[1] + ESCAPES
    loaded = 0
    for way in list(places_of_strings(document))[::3]:
        goal = tmp_path / "x"
        rewritten(path, goal, lambda d, way=way: put(d, way, harm))
        try:
            found = load.load(goal)
        except StoreError as error:
            assert_harmless(str(error).replace(str(goal), ""))
            continue
        loaded += 1
        read = Reader(page([found]))
        assert {tag for tag, _ in read.elements} <= tags, way
        assert not any(name.startswith("on") for _, a in read.elements for name in a), way
        assert read.scripts == honest.scripts
        found.show()
        assert_harmless(capsys.readouterr().out + repr(found))
    assert loaded > 5


def test_names_inside_a_file_are_not_places(saved, tmp_path):
    load, path = saved["text"]
    name = "../../../../../../../../tmp/taken"
    goal = rewritten(path, tmp_path / "x", lambda d: d.update(extras=[name]),
                     {f"extra.{name}": torch.ones(2)})  # fmt: skip
    found = load.load(goal)
    assert list(found.extras) == [name]
    found.save(tmp_path / "again")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["again", "x"]
    assert not os.path.exists("/tmp/taken")


@pytest.mark.parametrize("kind", ["text", "walk"])
@pytest.mark.parametrize("depth", [60, 200, 400, 600, 900])
def test_settings_that_nest_too_deeply_to_be_shown(kind, depth, saved, tmp_path):
    load, path = saved[kind]
    deep = 0
    for _ in range(depth):
        deep = [deep]
    field = "params" if kind == "text" else "settings"
    goal = rewritten(path, tmp_path / "x", lambda d: d[field].update(deep=deep))
    with pytest.raises(StoreError, match="x"):
        load.load(goal)


def test_settings_as_deep_as_anybody_writes_them(saved, tmp_path):
    load, path = saved["text"]
    value = {"a": [{"b": [[1, 2], {"c": {"d": [3]}}]}]}
    found = load.load(rewritten(path, tmp_path / "x", lambda d: d["params"].update(value)))
    assert found.to_dict()["params"] == value


ROWS = {
    "ids beyond the table": {"input_ids": 10**9},
    "ids below zero": {"input_ids": -5},
    "ids that no integer holds": {"input_ids": 10**30},
    "arguments of the model": {"labels": 1},
    "more arguments of the model": {"use_cache": 1},
    "states for ids": {"inputs_embeds": 1},
    "arguments of nobody": {"evil": 1},
    "types beyond the table": {"token_type_ids": 99},
    "places beyond the table": {"position_ids": 10**6},
}


@pytest.mark.parametrize("family", ["bert", "roberta", "gpt2"])
@pytest.mark.parametrize("rows", ROWS)
def test_tokens_of_a_file_steer_no_model(rows, family, tiny, tmp_path):
    """The rows of a saved text go into the model again when it is measured or decoded."""
    adapter = tiny(family)
    explained = pellucid.explain(adapter, TEXT, method="random")
    walked = pellucid.explore(adapter, TEXT, steps=2)

    def change(document):
        given = document["rows"] or {"input_ids": [1] * len(document["segments"])}
        document["rows"] = given | {
            name: [value] * len(document["segments"]) for name, value in ROWS[rows].items()
        }

    for result in (explained, walked):
        path = result.save(tmp_path / type(result).__name__)
        found = type(result).load(rewritten(path, tmp_path / "x", change))
        if isinstance(found, Explanation):
            message = message_of(
                InputError, lambda f=found: pellucid.measure(adapter, f, metric="text_deletion")
            )
        else:
            assert isinstance(found, Trajectory)
            message = message_of(InputError, lambda f=found: f.decode(adapter))
        assert next(iter(ROWS[rows])) in message


def test_files_that_promise_too_much_do_not_fill_the_memory(saved, tmp_path):
    """Pictures that inflate, headers that lie, and long documents: a small multiple of the file."""
    _, image = saved["image"]
    _, walk = saved["walk"]
    as_tensor = lambda data: torch.tensor(list(data), dtype=torch.uint8)  # noqa: E731
    rows = b"\0" * (64 * MEGABYTE)
    bombs = {
        "more rows than it says": as_tensor(png(4, 4, rows)),
        "more pixels than are allowed": as_tensor(png(8000, 8000, rows)),
        "as many as are allowed": as_tensor(png(7000, 7000, b"\0" * 49_007_000)),
    }
    paths = []
    for i, picture in enumerate(bombs.values()):
        paths.append(rewritten(image, tmp_path / f"{i}", lambda d: None, {"picture": picture}))
    long = rewritten(walk, tmp_path / "long", lambda d: d.update(notes=["note"] * 10**6))
    lie = tmp_path / "lie"
    head = json.dumps({"points": {"dtype": "F64", "shape": [2**40], "data_offsets": [0, 2**43]}})
    lie.write_bytes(len(head).to_bytes(8, "little") + head.encode())
    size = sum(path.stat().st_size for path in [*paths, long, lie]) / MEGABYTE
    assert size < 12
    program = """
from pellucid import Explanation, Trajectory
from PIL import Image
Explanation.load(sys.argv[1])
before = peak()
for path in sys.argv[2:]:
    attempt(lambda: Explanation.load(path))
    attempt(lambda: Trajectory.load(path))
print(peak() - before)
"""
    most = grown(program, image, *paths, long, lie)
    assert most < 400, f"{most} MB"  # 49 megapixels of grey become RGB and an array


# ---- images --------------------------------------------------------------------------------------


def test_images_that_promise_too_much_do_not_fill_the_memory(tmp_path):
    files = {
        "rows.png": png(4, 4, b"\0" * (64 * MEGABYTE)),
        "wide.png": png(60_000, 60_000),
        "tall.png": png(1, 2**31 - 1),
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    Image.new("1", (20_000, 20_000)).save(tmp_path / "grey.tif", compression="group4")
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < MEGABYTE
    program = """
model = pellucid.load("pellucid/digits-vit")
pellucid.explain(model, sys.argv[1])
before = peak()
for path in sys.argv[2:]:
    attempt(lambda: pellucid.explain(model, path))
print(peak() - before)
"""
    most = grown(program, sample_images()[0], *tmp_path.iterdir())
    assert most < 60, f"{most} MB"


# ---- texts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("piece", ["a", "é\u0301", "[MASK]", "<", "\u202e", "a\u200d", "\0", "🙂"])
def test_long_hostile_texts_end_in_an_answer(piece, tiny):
    """Sixteen thousand of what tokenizers and pages find hard: one error, or one page."""
    for family in ("bert", "gpt2", "roberta"):
        try:
            found = pellucid.explain(tiny(family), piece * 2**14, method="random")
        except InputError:
            continue
        assert len(Reader(page([found])).scripts) == 1


def test_what_is_hostile_leaves_honest_results_alone(saved):
    for load, path in saved.values():
        before = path.read_bytes()
        found = load.load(path)
        assert copy.copy(found).provenance == found.provenance
        assert np.array_equal(path.read_bytes(), before)
