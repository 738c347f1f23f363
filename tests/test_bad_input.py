"""Bad input: one clear error that names the argument, what was got, expected, and to type instead.

What is not an image, and files that are no explanations, have tables of their own in
test_images.py and test_store.py.
"""

import copy
import json
import shutil
import time

import numpy as np
import pytest
import torch
import transformers
from PIL import Image
from safetensors.torch import load_file, save_file

import pellucid
from pellucid import (
    ArgumentError,
    BudgetExceeded,
    InputError,
    ModelError,
    NumericalError,
    StoreError,
    Target,
    UnsupportedCombination,
)
from pellucid.methods import METHODS
from pellucid.models import bundled_path
from pellucid.testing.tiny import build, sample_inputs, word_piece

TEXT = "the film is fine"
TOO_LONG = "film " * 100


def explain(model, raw=TEXT, **options):
    return pellucid.explain(model, raw, **({"method": "random"} | options))


def message_of(error, work):
    with pytest.raises(error) as caught:
        work()
    return str(caught.value)


# ---- the table -----------------------------------------------------------------------------------

GRADIENT = "gradient_x_input"
ROWS = {  # family, input and options of `explain`; the error; what its message holds
    # names
    "method": ("bert", {"method": "rolout"}, ArgumentError, ["method", "rolout", "'rollout'"]),
    "method far away": ("bert", {"method": "xyz"}, ArgumentError, ["method", "xyz", "attn_lrp"]),
    "method in capitals": ("bert", {"method": "Rollout"}, ArgumentError, ["method='rollout'"]),
    "method as number": ("bert", {"method": 3}, ArgumentError, ["method", "3"]),
    "no method": ("bert", {"method": None}, ArgumentError, ["method", "None"]),
    "parameter": (
        "bert",
        {"method": "rollout", "discrad": 0.5},
        ArgumentError,
        ["parameter", "discrad", "'discard'", "rollout"],
    ),
    "parameter of another method": (
        "bert",
        {"method": GRADIENT, "discard": 0.5},
        ArgumentError,
        ["discard", GRADIENT],
    ),
    "value of a parameter": (
        "bert",
        {"method": "rollout", "fuse": "median"},
        ArgumentError,
        ["fuse", "median", "mean", "min", "max"],
    ),
    "fraction": (
        "bert",
        {"method": "rollout", "discard": 1.5},
        ArgumentError,
        ["discard", "1.5", "0"],
    ),
    "fraction in words": (
        "bert",
        {"method": "rollout", "discard": "much"},
        ArgumentError,
        ["discard", "much"],
    ),
    "block": ("bert", {"method": "rollout", "start": 7}, ArgumentError, ["start", "7", "1"]),
    "block below all": ("bert", {"method": "rollout", "start": -3}, ArgumentError, ["start", "-3"]),
    # targets
    "class": ("bert", {"target": "LABEL_11"}, ArgumentError, ["target", "LABEL_11", "LABEL_1"]),
    "class in capitals": ("bert", {"target": "label_1"}, ArgumentError, ["mean 'LABEL_1'"]),
    "class number": ("bert", {"target": 3}, ArgumentError, ["target", "3", "0 to 2"]),
    "class below zero": ("bert", {"target": -1}, ArgumentError, ["target", "-1", "0 to 2"]),
    "class as bool": ("bert", {"target": True}, ArgumentError, ["target", "True"]),
    "class as bool inside": ("bert", {"target": Target.logit(True)}, ArgumentError, ["True"]),
    "class as float": ("bert", {"target": 1.0}, ArgumentError, ["target", "1.0"]),
    "class as list": ("bert", {"target": [1]}, ArgumentError, ["target", "[1]"]),
    "quantity": ("bert", {"target": Target(0, "loss")}, ArgumentError, ["quantity", "loss"]),
    "against": (
        "bert",
        {"target": Target.log_odds(0, against="LABEL_11")},
        ArgumentError,
        ["against", "LABEL_11", "LABEL_1"],
    ),
    "against itself": (
        "bert",
        {"target": Target.log_odds(1, against=1)},
        ArgumentError,
        ["against"],
    ),
    "against without odds": (
        "bert",
        {"target": Target(0, "logit", against=1)},
        ArgumentError,
        ["against", "log_odds"],
    ),
    "continuation of a classifier": (
        "bert",
        {"target": Target.continuation(" good")},
        ArgumentError,
        ["continuation", "good"],
    ),
    "function of a row": (
        "bert",
        {"target": lambda output: output.logits[0]},
        ArgumentError,
        ["target", "(3,)", "(batch,)"],
    ),
    "function of the row, with gradients": (
        "bert",
        {"target": lambda output: output.logits[0], "method": GRADIENT},
        ArgumentError,
        ["target", "(3,)", "(batch,)"],
    ),
    "function with all logits": (
        "bert",
        {"target": lambda output: output.logits},
        ArgumentError,
        ["target", "(1, 3)", "(batch,)"],
    ),
    "function with a sum": (
        "bert",
        {"target": lambda output: output.logits.sum()},
        ArgumentError,
        ["target", "()", "(batch,)"],
    ),
    "function with a number": ("bert", {"target": lambda _: 1.0}, ArgumentError, ["float"]),
    "function without gradient": (
        "bert",
        {"target": lambda output: output.logits.argmax(dim=-1), "method": GRADIENT},
        ArgumentError,
        ["target"],
    ),
    # the engine's own
    "seed below zero": ("bert", {"seed": -1}, ArgumentError, ["seed=-1", "0"]),
    "seed as bool": ("bert", {"seed": True}, ArgumentError, ["seed=True"]),
    "seed as float": ("bert", {"seed": 1.0}, ArgumentError, ["seed=1.0"]),
    "seed in words": ("bert", {"seed": "one"}, ArgumentError, ["seed='one'"]),
    "batch of none": ("bert", {"batch_size": 0}, ArgumentError, ["batch_size=0", "1"]),
    "batch below zero": ("bert", {"batch_size": -4}, ArgumentError, ["batch_size=-4"]),
    "batch as bool": ("bert", {"batch_size": True}, ArgumentError, ["batch_size=True"]),
    "batch as float": ("bert", {"batch_size": 2.5}, ArgumentError, ["batch_size=2.5"]),
    "no budget": ("bert", {"budget": 0}, ArgumentError, ["budget=0"]),
    "budget as float": ("bert", {"budget": 1e6}, ArgumentError, ["budget=1000000.0"]),
    "policy": ("bert", {"long": "cut"}, ArgumentError, ["long='cut'", "truncate", "windows"]),
    "progress": ("bert", {"progress": "yes"}, ArgumentError, ["progress", "yes"]),
    # texts
    "empty text": ("bert", {"raw": ""}, InputError, ["text", "''"]),
    "text of spaces": ("bert", {"raw": " \n\t"}, InputError, ["text", r"' \n\t'"]),
    "invisible text": ("bert", {"raw": "\u200b\u200f"}, InputError, ["text"]),
    "empty half of a pair": ("bert", {"raw": ("a film", "")}, InputError, ["text", "''"]),
    "three texts": ("bert", {"raw": ("a", "b", "c")}, InputError, ["('a', 'b', 'c')", "two"]),
    "a list in a list": ("bert", {"raw": [["a"]]}, InputError, ["['a']"]),
    "no text": ("bert", {"raw": None}, InputError, ["text", "None"]),
    "a number": ("bert", {"raw": 5}, InputError, ["text", "5"]),
    "bytes": ("bert", {"raw": b"film"}, InputError, ["text", "b'film'"]),
    "an image for a text model": ("bert", {"raw": np.zeros((4, 4))}, InputError, ["text"]),
    "half a character": ("bert", {"raw": "a \ud83d film"}, InputError, ["text"]),
    "too long": ("bert", {"raw": TOO_LONG}, InputError, ["102 tokens", "64", "long='truncate'"]),
    "too long beside short ones": ("bert", {"raw": [TEXT, TOO_LONG]}, InputError, ["102 tokens"]),
    "no blank": ("bert-mlm", {}, InputError, ["[MASK]"]),
    "a text for an image model": ("vit", {}, InputError, ["image", TEXT]),
    # numbers and states
    "a value of a regression": (
        "regression",
        {"target": Target.probability()},
        ArgumentError,
        ["value", "probability"],
    ),
    "a class of a regression": ("regression", {"target": 1}, ArgumentError, ["target", "1"]),
    "windows of attention": ("swin", {"method": "rollout"}, UnsupportedCombination, ["rollout"]),
}


@pytest.fixture(scope="module")
def regression():
    return build("bert", num_labels=1)


@pytest.mark.parametrize("row", ROWS)
def test_explain_says_what_is_wrong(tiny, regression, row):
    family, options, error, fragments = ROWS[row]
    model = regression if family == "regression" else tiny(family)
    if family == "swin":
        options = {"raw": sample_inputs(model)[0]} | options
    message = message_of(error, lambda: explain(model, **options))
    for fragment in fragments:
        assert fragment in message
    assert "\n" in message, "one line cannot say what was got and what was expected"
    for line in ("got:", "expected:", "instead:"):
        assert line in message or error is UnsupportedCombination, f"no line {line!r}"
    assert "instead:" in message, "the message does not say what to type"


@pytest.mark.parametrize(
    ("options", "fragments"),
    [
        ({"metric": "deletoin"}, ["metric", "deletoin", "'deletion'"]),
        ({"metric": "no_such"}, ["metric", "no_such", "deletion"]),
        ({"metric": None}, ["metric", "None"]),
        ({"metric": ["deletion"]}, ["metric"]),
        ({"metric": "text_deletion", "gird": "tokens:2"}, ["gird", "'grid'"]),
        ({"metric": "text_deletion", "grid": "tokens:0"}, ["tokens:0", "tokens:5"]),
        ({"metric": "text_deletion", "grid": "tokens:1.5"}, ["tokens:1.5"]),
        ({"metric": "text_deletion", "ties": "rnd"}, ["ties='rnd'", "random"]),
        ({"metric": "text_deletion", "target": "LABEL_7"}, ["target", "LABEL_7"]),
        ({"metric": "text_deletion", "target": 9}, ["target", "9", "0 to 2"]),
        ({"metric": "text_deletion", "batch_size": 0}, ["batch_size=0"]),
        ({"metric": "text_deletion", "seed": -1}, ["seed=-1"]),
        ({"metric": "text_deletion", "explanations": "x"}, ["str"]),
        ({"metric": "text_deletion", "explanations": None}, ["NoneType"]),
    ],
    ids=str,
)
def test_measure_says_what_is_wrong(tiny, options, fragments):
    options = dict(options)
    explained = options.pop("explanations", explain(tiny("bert"), "a fine film at all"))
    message = message_of(
        ArgumentError, lambda: pellucid.measure(tiny("bert"), explained, **options)
    )
    for fragment in [*fragments, "got:", "expected:"]:
        assert fragment in message


def test_an_explanation_of_another_kind_or_of_no_class(tiny):
    image = explain(tiny("vit"), sample_inputs(tiny("vit"))[0])
    work = [
        lambda: pellucid.measure(tiny("bert"), image, metric="text_deletion"),
        lambda: pellucid.measure(
            tiny("bert"),
            explain(tiny("bert"), target=lambda output: output.logits[:, 0]),
            metric="text_deletion",
        ),
    ]
    for one in work:
        assert "expected:" in message_of(ArgumentError, one)
    text = explain(tiny("bert"))
    for call, named in ((text.map, "words()"), (text.patches, "map()"), (image.words, "map()")):
        assert named in message_of(ArgumentError, call)
    assert "'avg'" in message_of(ArgumentError, lambda: text.words("avg"))


def test_a_regression_has_no_probability_to_measure(regression):
    value = explain(regression, "a fine film at all")
    message = message_of(
        ArgumentError, lambda: pellucid.measure(regression, value, metric="text_deletion")
    )
    assert "instead:  a classifier" in message


@pytest.mark.parametrize("size", [224, (224,), (0, 5), (8, -8), (2.5, 4), "ab", (True, 4)])
def test_sizes_of_maps(tiny, size):
    image = explain(tiny("vit"), sample_inputs(tiny("vit"))[0])
    assert "size" in message_of(ArgumentError, lambda: image.map(size=size))
    assert image.map(size=(7, np.int64(9))).shape == (7, 9)


# ---- budgets -------------------------------------------------------------------------------------


def test_a_budget_is_kept(tiny):
    """The numbers of the message are those that work."""

    def thrice(case):
        x = case.input()
        return sum(case.sum_features(case.gradient(x * scale)) for scale in (1.0, 0.5, 0.25))

    needed = explain(tiny("bert"), method=thrice).provenance.forwards
    assert needed >= 3
    assert explain(tiny("bert"), method=thrice, budget=needed).provenance.forwards == needed
    message = message_of(BudgetExceeded, lambda: explain(tiny("bert"), method=thrice, budget=2))
    assert "budget=2" in message
    assert "instead:" in message


# ---- models --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "fragments"),
    [
        ("pellucid/reviews-bert", ["pellucid.load('pellucid/reviews-bert')", "str"]),
        (None, ["NoneType"]),
        (7, ["int"]),
        (len, ["blackbox"]),
        ({"model": 1}, ["dict"]),
    ],
)
def test_what_is_not_a_model(model, fragments):
    for work in (lambda: explain(model), lambda: pellucid.list_methods(model or 7)):
        message = message_of(ModelError, work)
        assert "instead:" in message
    for fragment in fragments:
        assert fragment in message_of(ModelError, lambda: explain(model))


def test_a_model_without_its_processor(tiny):
    for work in (
        lambda: explain(tiny("bert").module),
        lambda: pellucid.adapt(tiny("bert").module),
        lambda: pellucid.adapt(tiny("vit").module),
    ):
        assert "processor" in message_of(ModelError, work)


@pytest.mark.parametrize("where", ["all of it", "one part"])
@pytest.mark.parametrize("method", METHODS)
def test_training_mode(where, method):
    """Also where only a part was left in training: its dropout would still be random."""
    adapter = build("bert")
    (adapter.module if where == "all of it" else adapter.module.bert).train()
    message = message_of(ModelError, lambda: explain(adapter, method=method))
    assert "training" in message
    assert "model.eval()" in message


@pytest.mark.filterwarnings("ignore:.torch.jit.script_method:DeprecationWarning")  # torch's own
def test_a_compiled_model():
    """Before it has run even once, in both ways of compiling."""
    whole = torch.compile(build("bert").module)
    message = message_of(ModelError, lambda: explain(pellucid.adapt(whole, word_piece())))
    assert "compile" in message
    assert "_orig_mod" in message
    inside = build("bert").module
    inside.compile()
    message = message_of(ModelError, lambda: explain(pellucid.adapt(inside, word_piece())))
    assert "copy.deepcopy(model)" in message
    assert "_orig_mod" not in message
    part = build("bert").module
    part.bert = torch.compile(part.bert)
    message = message_of(ModelError, lambda: explain(pellucid.adapt(part, word_piece())))
    assert "bert, compiled" in message
    for model in (whole._orig_mod, copy.deepcopy(inside)):  # what the messages say to type
        found = explain(pellucid.adapt(model, word_piece()))
        assert torch.isfinite(found.scores).all()


@pytest.mark.parametrize("family", ["bert", "gpt2", "vit"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_weights_that_are_not_finite(family, method, bad):
    adapter = build(family)
    named = adapter.module.named_parameters()
    inside = next(p for n, p in named if p.dim() == 2 and ("attention" in n or "attn" in n))
    with torch.no_grad():
        inside[0, 0] = bad
    raw = sample_inputs(adapter)[0]
    message = message_of(NumericalError, lambda: explain(adapter, raw, method=method))
    for fragment in ("finite", "weights", "instead:"):
        assert fragment in message


def test_logits_that_are_not_finite():
    adapter = build("bert")
    with torch.no_grad():
        adapter.module.classifier.bias[1] = float("nan")
    for method in METHODS:
        assert "finite" in message_of(NumericalError, lambda m=method: explain(adapter, method=m))


def test_models_that_are_not_explained():
    small = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    headless = transformers.BertModel(transformers.BertConfig(**small)).eval()
    message = message_of(ModelError, lambda: pellucid.adapt(headless, word_piece()))
    assert "BertModel" in message
    assert "head" in message
    assert "instead:" in message
    config = transformers.T5Config(
        vocab_size=50, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2
    )
    seq2seq = transformers.T5ForConditionalGeneration(config).eval()
    message = message_of(ModelError, lambda: pellucid.adapt(seq2seq, word_piece()))
    assert "encoder-decoder" in message
    assert "T5ForConditionalGeneration" in message
    assert "instead:" in message


# ---- loading -------------------------------------------------------------------------------------


def saved(folder, **changes):
    """A folder with the bundled review model, its config changed."""
    shutil.copytree(bundled_path("reviews-bert"), folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))
    return folder


def test_a_bundled_name_that_does_not_exist():
    message = message_of(ModelError, lambda: pellucid.load("pellucid/review-bert"))
    assert "did you mean 'pellucid/reviews-bert'" in message
    assert "pellucid/digits-vit" in message


@pytest.mark.parametrize("name", ["nobody/no-such-model", "no-such-model", "./no/such/folder", ""])
def test_no_network(name, monkeypatch):
    """Offline, the answer comes at once and names what could be typed."""
    from huggingface_hub import constants

    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    began = time.monotonic()
    message = message_of(ModelError, lambda: pellucid.load(name))
    assert time.monotonic() - began < 20, "it waited for a network"
    assert name in message
    assert "network" in message
    assert "pellucid.load('pellucid/digits-vit'" in message


def test_a_folder_with_a_config_alone(tmp_path):
    shutil.copy(bundled_path("reviews-bert") / "config.json", tmp_path)
    message = message_of(ModelError, lambda: pellucid.load(tmp_path))
    assert str(tmp_path) in message
    assert "weights" in message


def test_a_folder_without_a_tokenizer(tmp_path):
    folder = saved(tmp_path / "model")
    for path in folder.glob("tokenizer*"):
        path.unlink()
    assert "tokenizer" in message_of(ModelError, lambda: pellucid.load(folder))


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "tokenizer.json"])
@pytest.mark.parametrize("damage", ["empty", "cut", "noise"])
def test_a_folder_with_a_damaged_file(file, damage, tmp_path):
    folder = saved(tmp_path / "model")
    data = (folder / file).read_bytes()
    noise = bytes(np.random.default_rng(0).integers(0, 256, 500, dtype=np.uint8))
    (folder / file).write_bytes({"empty": b"", "cut": data[:-100], "noise": noise}[damage])
    message = message_of(ModelError, lambda: pellucid.load(folder))
    assert str(folder) in message


@pytest.mark.parametrize(
    ("changes", "fragment"),
    [
        ({"architectures": ["T5ForConditionalGeneration"]}, "encoder-decoder"),
        ({"is_encoder_decoder": True}, "encoder-decoder"),
        ({"model_type": "no-such-type"}, "no-such-type"),
    ],
)
def test_checkpoints_that_are_not_explained(changes, fragment, tmp_path):
    folder = saved(tmp_path / "model", **changes)
    message = message_of(ModelError, lambda: pellucid.load(folder))
    assert fragment in message
    assert "instead:" in message


@pytest.mark.parametrize("named", [["BertModel"], None, ["BertForSequenceClassification"]])
def test_a_checkpoint_without_a_head(named, tmp_path):
    """Whatever its config says: a head made up of random numbers must not be explained."""
    folder = saved(tmp_path / "model", architectures=named)
    weights = load_file(folder / "model.safetensors")
    body = {name: tensor for name, tensor in weights.items() if not name.startswith("classifier")}
    assert len(body) == len(weights) - 2
    save_file(body, folder / "model.safetensors", {"format": "pt"})
    message = message_of(ModelError, lambda: pellucid.load(folder))
    for fragment in ("head", "without weights", "instead:"):
        assert fragment in message


def test_code_of_a_checkpoint_is_not_run(tmp_path):
    """A config that names code of its own; the code would write a file."""
    ran = tmp_path / "ran"
    folder = saved(
        tmp_path / "model",
        model_type="home-made",
        auto_map={
            "AutoConfig": "home.HomeConfig",
            "AutoModelForSequenceClassification": "home.HomeModel",
        },
    )
    (folder / "home.py").write_text(f"open({str(ran)!r}, 'w').close()\n")
    message = message_of(ModelError, lambda: pellucid.load(folder))
    assert not ran.exists()
    assert "code of its own" in message
    assert "trust_remote_code=True" in message


@pytest.mark.parametrize(
    ("options", "fragment"),
    [
        ({"dtype": "float99"}, "dtype"),
        ({"dtype": 5}, "dtype"),
        ({"dtype": "int64"}, "dtype"),
        ({"device": "gpu"}, "device"),
        ({"device": "cuda:99"}, "device"),
        ({"device_map": "nowhere"}, "device_map"),
        pytest.param(
            {"device_map": {"": "cuda:0"}},
            "device_map",
            marks=pytest.mark.skipif(torch.cuda.is_available(), reason="there is such a device"),
        ),
    ],
    ids=str,
)
def test_options_of_load(options, fragment):
    message = message_of(
        (ArgumentError, ModelError), lambda: pellucid.load("pellucid/digits-vit", **options)
    )
    assert fragment in message
    assert str(next(iter(options.values()))) in message
    assert "expected:" in message


@pytest.mark.parametrize("name", [None, 5, ["pellucid/digits-vit"]])
def test_names_that_are_none(name):
    message_of((ArgumentError, ModelError), lambda: pellucid.load(name))


# ---- adapting by hand ----------------------------------------------------------------------------


def test_plain_modules_need_labels_and_a_processor(tiny):
    module, size = tiny("plain-image").module, pellucid.Resize((32, 48))
    message = message_of(ArgumentError, lambda: pellucid.adapt(module, size))
    assert "labels=" in message
    message = message_of(ModelError, lambda: pellucid.adapt(module, 5, labels=["a", "b", "c"]))
    assert "processor=int" in message
    assert "pellucid.Resize" in message


@pytest.mark.parametrize(
    "options",
    [
        {"size": (0, 4)},
        {"size": 224},
        {"size": (4, 4), "fit": "pad"},
        {"size": (4, 4), "interpolation": "cubic"},
        {"size": (4, 4), "mean": (0.5,) * 3, "std": (0.5,)},
        {"size": (4, 4), "crop_fraction": 0.0},
    ],
    ids=str,
)
def test_preprocessing_that_cannot_be(options):
    with pytest.raises(ArgumentError):
        pellucid.Resize(**options).view(Image.new("RGB", (9, 9), "white"))


def test_labels_of_another_number():
    adapter = build("plain-image")
    with pytest.raises((ArgumentError, ModelError)):
        explain(
            pellucid.adapt(adapter.module, pellucid.Resize((32, 48)), labels=["one", "two"]),
            np.zeros((32, 48, 3), np.uint8),
        )


# ---- writing -------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["save", "to_html"])
def test_output_paths_that_exist_or_cannot_be(tiny, call, tmp_path):
    found = explain(tiny("bert"))
    taken = tmp_path / "taken"
    taken.write_text("mine")
    message = message_of(StoreError, lambda: getattr(found, call)(taken))
    for fragment in ("exists", str(taken), "overwrite=True"):
        assert fragment in message
    assert taken.read_text() == "mine"
    for path in (tmp_path / "no" / "folder", taken / "below"):
        assert str(path) in message_of(StoreError, lambda p=path: getattr(found, call)(p))
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


# ---- the tree of errors --------------------------------------------------------------------------


def test_every_error_is_one_of_ours_and_of_python_s():
    for name in pellucid.__all__:
        found = getattr(pellucid, name)
        if isinstance(found, type) and issubclass(found, Exception):
            assert issubclass(found, pellucid.PellucidError)
            if found is not pellucid.PellucidError:
                assert issubclass(found, ValueError | RuntimeError)


def test_a_vision_model_may_come_with_preprocessing_by_hand():
    module = build("vit").module
    adapter = pellucid.adapt(module, pellucid.Resize((16, 24)))
    assert adapter.kind == "image"
    with pytest.raises(ModelError, match="does not prepare inputs for a Hugging Face model"):
        pellucid.adapt(module, object())
