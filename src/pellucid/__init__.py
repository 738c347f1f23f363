"""pellucid: see what a Transformer sees.

    import pellucid

    model = pellucid.load("pellucid/reviews-bert")
    ex = pellucid.explain(model, "a fine film", method="rollout")
    ex.show()

Names are resolved when they are first used, so that importing the package loads nothing heavy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOME = {
    "load": "pellucid.adapters",
    "adapt": "pellucid.adapters",
    "blackbox": "pellucid.adapters",
    "chat": "pellucid.adapters.chat",
    "Resize": "pellucid.adapters.image",
    "explain": "pellucid._explain",
    "explore": "pellucid.explorer.explore",
    "feasible": "pellucid.explorer.bounds",
    "metric_at": "pellucid.explorer.metric_at",
    "Trajectory": "pellucid._trajectory",
    "Output": "pellucid.geometry.outputs",
    "Top": "pellucid.explorer.selection",
    "Above": "pellucid.explorer.selection",
    "Rectangle": "pellucid.explorer.selection",
    "measure": "pellucid._measure",
    "agreement": "pellucid._agreement",
    "measure_walk": "pellucid._measure_walk",
    "class_trend": "pellucid.metrics.walks.class_trend",
    "evaluate": "pellucid._evaluate",
    "Table": "pellucid._table",
    "report": "pellucid.viz",
    "list_methods": "pellucid._catalogue",
    "list_metrics": "pellucid._catalogue",
    "list_models": "pellucid._catalogue",
    "Attribution": "pellucid._types",
    "Case": "pellucid._case",
    "Explanation": "pellucid._results",
    "SlalomExplanation": "pellucid._slalom",
    "Needs": "pellucid._needs",
    "Target": "pellucid._target",
    "method": "pellucid._spec",
    "metric": "pellucid._spec",
    "walk_metric": "pellucid._spec",
    "PellucidError": "pellucid._errors",
    "ArgumentError": "pellucid._errors",
    "BudgetExceeded": "pellucid._errors",
    "InputError": "pellucid._errors",
    "ModelError": "pellucid._errors",
    "NumericalError": "pellucid._errors",
    "StoreError": "pellucid._errors",
    "StudyError": "pellucid._errors",
    "UnsupportedCombination": "pellucid._errors",
}

_SUBMODULES = ("bench", "data", "models", "surrogates", "synthetic", "testing")

__all__ = sorted([*_HOME, "__version__"])

if TYPE_CHECKING:
    from pellucid._agreement import agreement as agreement
    from pellucid._case import Case as Case
    from pellucid._catalogue import list_methods as list_methods
    from pellucid._catalogue import list_metrics as list_metrics
    from pellucid._catalogue import list_models as list_models
    from pellucid._errors import ArgumentError as ArgumentError
    from pellucid._errors import BudgetExceeded as BudgetExceeded
    from pellucid._errors import InputError as InputError
    from pellucid._errors import ModelError as ModelError
    from pellucid._errors import NumericalError as NumericalError
    from pellucid._errors import PellucidError as PellucidError
    from pellucid._errors import StoreError as StoreError
    from pellucid._errors import StudyError as StudyError
    from pellucid._errors import UnsupportedCombination as UnsupportedCombination
    from pellucid._evaluate import evaluate as evaluate
    from pellucid._explain import explain as explain
    from pellucid._measure import measure as measure
    from pellucid._measure_walk import measure_walk as measure_walk
    from pellucid._needs import Needs as Needs
    from pellucid._results import Explanation as Explanation
    from pellucid._slalom import SlalomExplanation as SlalomExplanation
    from pellucid._spec import method as method
    from pellucid._spec import metric as metric
    from pellucid._spec import walk_metric as walk_metric
    from pellucid._table import Table as Table
    from pellucid._target import Target as Target
    from pellucid._trajectory import Trajectory as Trajectory
    from pellucid._types import Attribution as Attribution
    from pellucid.adapters import adapt as adapt
    from pellucid.adapters import blackbox as blackbox
    from pellucid.adapters import load as load
    from pellucid.adapters.chat import chat as chat
    from pellucid.adapters.image import Resize as Resize
    from pellucid.explorer.bounds import feasible as feasible
    from pellucid.explorer.explore import explore as explore
    from pellucid.explorer.metric_at import metric_at as metric_at
    from pellucid.explorer.selection import Above as Above
    from pellucid.explorer.selection import Rectangle as Rectangle
    from pellucid.explorer.selection import Top as Top
    from pellucid.geometry.outputs import Output as Output
    from pellucid.metrics.walks.class_trend import class_trend as class_trend
    from pellucid.viz import report as report


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _version()
    if name in _SUBMODULES:
        return import_module(f"pellucid.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'pellucid' has no attribute {name!r}")
    found = getattr(import_module(_HOME[name]), name)
    globals()[name] = found
    return found


def _version() -> str:
    """The version of the installed package; a plain source tree has none."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("pellucid")
    except PackageNotFoundError:
        return "0+source"


def __dir__() -> list[str]:
    return __all__
