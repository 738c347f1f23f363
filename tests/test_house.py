"""How the house is kept: what imports what, what it leaves untouched, and that memory is flat."""

import ast
import gc
import resource
import subprocess
import sys
import weakref
from pathlib import Path

import pytest
import torch

import pellucid
from pellucid._needs import obstacle
from pellucid._references import REFERENCES
from pellucid.methods import METHODS
from pellucid.metrics import METRICS
from pellucid.testing.contract import quick
from pellucid.testing.tiny import build

SOURCE = Path(pellucid.__file__).parent
FILES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in SOURCE.rglob("*.py")}


def ran(program):
    """What a fresh interpreter prints."""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    return found.stdout.split()


# ---- importing -----------------------------------------------------------------------------------


def test_importing_the_package_loads_nothing_heavy():
    heavy = ["torch", "transformers", "numpy", "matplotlib", "PIL", "pandas", "typer", "rich"]
    program = f"import sys, pellucid; print(*[m for m in {heavy} if m in sys.modules])"
    assert ran(program) == []


def test_vision_models_can_be_imported():
    """A torchvision beside another build of torch breaks this while `pip check` stays silent."""
    assert ran("from transformers import ViTForImageClassification; print('fine')") == ["fine"]


def test_asking_for_help_loads_no_model_library():
    program = """
import sys
from pellucid.cli import main
sys.argv = ["pellucid", "--help"]
sys.stdout = open("/dev/null", "w")
try:
    main()
except SystemExit:
    pass
sys.stdout = sys.__stdout__
print(*[name for name in ("torch", "transformers", "matplotlib") if name in sys.modules])
"""
    assert ran(program) == []


def test_importing_everything_changes_nothing():
    """Measured against the libraries that are used, imported before."""
    program = """
import logging, os, pkgutil, random, sys, warnings, importlib
import matplotlib.pyplot, numpy, PIL.Image, rich.console, rich.table, safetensors.torch, torch
import transformers, typer
from transformers import AttentionInterface, AutoModelForSequenceClassification
from transformers.masking_utils import AttentionMaskInterface
from transformers.models.auto import configuration_auto, modeling_auto
from transformers.utils import logging as their_logging

def state():
    return {
        "environment": dict(os.environ),
        "python generator": random.getstate(),
        "numpy generator": str(numpy.random.get_state()),
        "torch generator": torch.get_rng_state().tolist(),
        "default type": torch.get_default_dtype(),
        "gradients": torch.is_grad_enabled(),
        "threads": torch.get_num_threads(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "attention": sorted(AttentionInterface().valid_keys()),
        "masks": sorted(AttentionMaskInterface().valid_keys()),
        "models": len(modeling_auto.MODEL_MAPPING),
        "configs": len(configuration_auto.CONFIG_MAPPING),
        "their verbosity": their_logging.get_verbosity(),
        "logging": (logging.root.level, len(logging.root.handlers)),
        "warnings": list(warnings.filters),
        "most pixels": PIL.Image.MAX_IMAGE_PIXELS,
        "hook": sys.excepthook,
        "folder": os.getcwd(),
        "backend": matplotlib.get_backend(),
    }

before = state()
import pellucid
for found in pkgutil.walk_packages(pellucid.__path__, "pellucid."):
    if not found.name.endswith("__main__"):
        importlib.import_module(found.name)
[getattr(pellucid, name) for name in pellucid.__all__]
after = state()
print(*[name.replace(" ", "-") for name in before if before[name] != after[name]])
"""
    assert ran(program) == []


def test_all_is_what_can_be_imported():
    for name in pellucid.__all__:
        assert getattr(pellucid, name) is not None
    assert pellucid.__all__ == sorted(pellucid.__all__) == dir(pellucid)
    typed = {
        alias.asname
        for node in ast.walk(FILES[SOURCE / "__init__.py"])
        if isinstance(node, ast.ImportFrom) and node.module.startswith("pellucid")
        for alias in node.names
    }
    assert typed == set(pellucid.__all__) - {"__version__"}, "what type checkers see differs"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'explian'"):
        _ = pellucid.explian


# ---- what imports what ---------------------------------------------------------------------------


def imports(path):
    """The modules that a file imports when it runs, also inside its functions."""
    typing_only = {
        inner
        for node in ast.walk(FILES[path])
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(FILES[path]):
        if node in typing_only:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


FOUNDATION = ["_errors", "_needs", "_types", "_words", "_target"]
NEVER = {
    **{name: "* but " + " ".join(FOUNDATION) for name in FOUNDATION},
    "record": "relevance adapters methods metrics _case _explain _measure viz cli",
    "relevance": "adapters methods metrics _case _explain _measure viz cli",
    "surrogates": "record relevance geometry adapters methods metrics _case _explain viz cli",
    "geometry": "adapters methods metrics _case _explain _measure viz cli",
    "adapters": "data methods metrics _case _explain _measure viz cli compat",
    "synthetic": "methods metrics _case explorer viz cli bench compat",
    "data": "methods metrics _case _explain _measure _truth explorer viz cli",
    "methods": "adapters data _explain _measure viz cli compat",
    "metrics": "adapters data _explain _measure methods viz cli compat",
    "compat": "data explorer viz cli testing",
    "viz": "adapters methods metrics _case _explain _measure cli compat",
    "bench": "cli testing",
    "_store": "adapters methods metrics _case _explain viz cli",
    "_results": "adapters methods metrics _case _explain cli compat",
    "app": "cli testing",
}


@pytest.mark.parametrize("part", NEVER)
def test_imports_point_downwards(part):
    own = SOURCE / part if (SOURCE / part).is_dir() else SOURCE / f"{part}.py"
    files = [path for path in FILES if path == own or own in path.parents]
    assert files
    for path in files:
        inner = [m.split(".")[1] for m in imports(path) if m.startswith("pellucid.")]
        if NEVER[part].startswith("*"):
            wrong = {name for name in inner if name not in FOUNDATION}
        else:
            wrong = set(inner) & set(NEVER[part].split())
        assert not wrong, f"{path.name} imports {', '.join(sorted(wrong))}"


def test_only_the_command_line_imports_the_app():
    users = {
        path.relative_to(SOURCE).parts[0]
        for path in FILES
        if any(module.startswith("pellucid.app") for module in imports(path))
    }
    assert users == {"app", "cli"}


@pytest.mark.parametrize(
    "library", ["torchvision", "timm", "zennit", "lxt", "quantus", "captum", "shap"]
)
def test_libraries_that_are_not_imported(library):
    users = [path.name for path in FILES if library in {m.split(".")[0] for m in imports(path)}]
    assert not users


def test_models_are_never_written_again():
    """No module of ours stands in the place of a model's: tests and known truths have their own.

    Those of `compat` compute nothing: they call the user's own module for tools that want one.
    """
    for path, tree in FILES.items():
        if {SOURCE / name for name in ("testing", "synthetic", "compat")} & set(path.parents):
            continue
        for node in ast.walk(tree):
            bases = [ast.unparse(base) for base in getattr(node, "bases", [])]
            assert not any(base.rsplit(".", 1)[-1] == "Module" for base in bases), path.name


def test_nothing_is_executed_from_data():
    """No pickle, no eval, no shell."""
    for path in FILES:
        used = {module.split(".")[0] for module in imports(path)}
        assert not used & {"pickle", "dill", "cloudpickle", "marshal", "shelve"}, path.name
        for node in ast.walk(FILES[path]):
            if isinstance(node, ast.Call):
                assert ast.unparse(node.func) not in ("eval", "exec", "torch.load"), path.name


# ---- citations -----------------------------------------------------------------------------------


def test_every_citation_has_its_source_and_every_source_is_cited():
    cited = {key for spec in [*METHODS.values(), *METRICS.values()] for key in spec.cite}
    assert cited == set(REFERENCES)
    assert all(text.strip() and any(c.isdigit() for c in text) for text in REFERENCES.values())


@pytest.mark.parametrize("table", [METHODS, METRICS], ids=["methods", "metrics"])
def test_names_and_summaries(table):
    for name, spec in table.items():
        assert spec.name == name
        assert spec.summary.endswith(".")
        assert spec.cite or name in ("random", "uniform", "centre")  # controls


# ---- memory --------------------------------------------------------------------------------------


def living():
    gc.collect()
    return sum(issubclass(type(found), torch.Tensor) for found in gc.get_objects())


@pytest.mark.parametrize("family", ["bert", "vit"])
def test_two_hundred_explanations_leave_memory_flat(family):
    adapter = build(family)
    raw = "the film is fine" if family == "bert" else torch.zeros(32, 48, 3, dtype=torch.uint8)

    def run(times):
        for i in range(times):
            method = ("gradient_x_input", "rollout", "random")[i % 3]
            pellucid.explain(adapter, raw, method=method, seed=i)

    run(50)
    tensors, hooks = living(), [len(m._forward_hooks) for m in adapter.module.modules()]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run(150)
    assert living() == tensors
    assert [len(m._forward_hooks) for m in adapter.module.modules()] == hooks
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 30_000, f"{grown} kB more"


@pytest.mark.parametrize("family", ["bert", "vit", "gpt2"])
def test_models_and_adapters_are_let_go(family):
    adapter = build(family)
    raw = "the film is fine" if family != "vit" else torch.zeros(32, 48, 3, dtype=torch.uint8)
    for method in METHODS:
        if not obstacle(adapter, METHODS[method]):
            kept = pellucid.explain(adapter, raw, method=quick(method))
    gone = weakref.ref(adapter), weakref.ref(adapter.module)
    del adapter
    gc.collect()
    assert [one() for one in gone] == [None, None]
    assert torch.isfinite(kept.scores).all()


def test_an_explanation_does_not_hold_its_batch(tiny):
    """Every tensor that it keeps has memory of its own size."""
    texts = ["the film is fine", "a bad film"] * 4

    def method(case):
        return pellucid.Attribution(case.randn(), {"rows": torch.zeros(len(texts), 1000)})

    (one, *_) = pellucid.explain(tiny("bert"), texts, method=method)
    for tensor in (one.scores, one.logits, *one.extras.values()):
        own = tensor.numel() * tensor.element_size()
        assert tensor.untyped_storage().nbytes() == own


# ---- errors --------------------------------------------------------------------------------------


def test_every_error_says_what_was_got_what_was_expected_and_what_to_type():
    short = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path, tree in FILES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "explain_error"
        if {keyword.arg for keyword in node.keywords} != {"got", "expected", "instead"}
    ]
    assert short == []
