"""What exists, what fits a model, and why not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pellucid._needs import obstacle
from pellucid._spec import Method, Metric, WalkMetric
from pellucid.adapters import as_adapter
from pellucid.adapters.torch_model import TorchAdapter
from pellucid.methods import METHODS
from pellucid.metrics import METRICS
from pellucid.metrics.walks import WALK_METRICS
from pellucid.models import bundled_names


@dataclass(frozen=True)
class Entry:
    """One method or metric as it stands to one model."""

    name: str
    summary: str
    fits: bool
    why_not: str  # empty where it fits, or where no model was named
    spec: Method | Metric | WalkMetric


class Listing(list[Entry]):
    """A list of entries that prints as a table."""

    def __repr__(self) -> str:
        width = max((len(entry.name) for entry in self), default=0)
        rows = [
            f"{'+' if e.fits else '-'} {e.name:<{width}}  {e.summary if e.fits else e.why_not}"
            for e in self
        ]
        return "\n".join(rows)


def list_methods(model: Any = None) -> Listing:
    """All methods; with a model, which of them run on it and why the others do not."""
    return _listing(METHODS, model)


def list_metrics(model: Any = None) -> Listing:
    """All metrics; with a model, which of them run on it and why the others do not.

    Those of explanations are for `measure`, and those of walks, at the end, for `measure_walk`.
    """
    return Listing([*_listing(METRICS, model), *_of_walks(model)])


def list_models() -> list[str]:
    """The models that come with the package, as `pellucid.load` takes them."""
    return [f"pellucid/{name}" for name in bundled_names()]


def _listing(table: Mapping[str, Method] | Mapping[str, Metric], model: Any) -> Listing:
    adapter = None if model is None else as_adapter(model)
    reasons = {n: "" if adapter is None else obstacle(adapter, s) for n, s in table.items()}
    return Listing(
        Entry(name, spec.summary, not reasons[name], reasons[name], spec)
        for name, spec in table.items()
    )


def _of_walks(model: Any) -> list[Entry]:
    """The metrics of walks, which need a model that can be walked in, and its kind of input."""
    adapter = None if model is None else as_adapter(model)
    found = []
    for name, spec in WALK_METRICS.items():
        reason = ""
        if adapter is not None and not isinstance(adapter, TorchAdapter):
            reason = f"{adapter.name} is not a torch model, and cannot be walked in"
        elif adapter is not None and adapter.kind not in spec.kinds:
            reason = (
                f"it measures walks from a{'n' if 'image' in spec.kinds else ''} {spec.kinds[0]}"
            )
        found.append(Entry(name, spec.summary, not reason, reason, spec))
    return found
