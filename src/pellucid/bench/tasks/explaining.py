"""The study of a plan: every method on every chunk of samples, measured by every metric.

A unit is one method on one chunk of one data set with one model, with all of the metrics. Its key
holds what decides its numbers: the weights, the samples with their truth, the method and the
metrics with all their parameters, the target, the seed, and the code. The device and the size of
batches, which change rounding only, are left out, so that another machine can continue.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from pellucid._json import plain
from pellucid._spec import Method, Metric, bound_parameters
from pellucid.bench.plan import Entry, Plan
from pellucid.bench.tasks.facts import DataFacts, ModelFacts, about_inputs
from pellucid.bench.units import Unit, Work, key_of
from pellucid.bench.version import code_version
from pellucid.methods import METHODS
from pellucid.metrics import METRICS


@dataclass(frozen=True)
class Explaining:
    """A plan that has been looked at: plain data, which travels to workers."""

    plan: Plan
    models: Mapping[str, ModelFacts]
    data: Mapping[str, DataFacts]

    def units(self) -> Iterator[Unit]:
        """All units: a model's together, then those of a data set, then those of a method."""
        size = self.plan.settings.chunk
        for model, data, method in self.combinations():
            content = self._content(model, method)
            labels = {"model": model.name, "data": data.name, "method": method.name}
            facts = self.data[data.name]
            for number, fingerprint in enumerate(facts.chunks):
                start = number * size
                work = {**labels, "start": start, "count": min(size, facts.samples - start)}
                yield Unit(key_of({**content, "samples": fingerprint}), labels, work)

    def probe(self, unit: Unit) -> tuple[Unit, float]:
        """One of its samples, and how many it has."""
        count = int(unit.work["count"])
        return replace(unit, work={**unit.work, "count": 1}), float(count)

    def combinations(self) -> Iterator[tuple[Entry, Entry, Entry]]:
        """Each model with the data and the methods that are for it."""
        for model in self.plan.models:
            for data in self.plan.data:
                for method in self.plan.methods:
                    if data.is_for(model) and method.is_for(model):
                        yield model, data, method

    def metrics_for(self, model: Entry) -> list[Entry]:
        """The metrics that are for a model."""
        return [metric for metric in self.plan.metrics if metric.is_for(model)]

    def about(self) -> Mapping[str, Any]:
        """What the tables need besides numbers, and where they come from."""
        settings = asdict(self.plan.settings)
        return {
            "task": "explaining",
            "name": self.plan.name,
            "columns": ["model", "data", "method"],
            "settings": settings,
            **about_inputs(self.plan, self.models, self.data),
            "methods": {
                entry.name: _about(METHODS[entry.what], entry) for entry in self.plan.methods
            },
            "measures": {
                entry.name: _about(METRICS[entry.what], entry)
                | {"better": METRICS[entry.what].better}
                for entry in self.plan.metrics
            },
            "versions": code_version(),
            "plan": self.plan.source,
        }

    def open(self) -> Work:
        """Load what units ask for, and keep the latest."""
        from pellucid.bench.tasks.measured import Desk

        return Desk(self).do

    def _content(self, model: Entry, method: Entry) -> dict[str, Any]:
        """All that decides a unit's numbers, but for its samples."""
        settings, facts = self.plan.settings, self.models[model.name]
        metrics = self.metrics_for(model)
        return {
            "weights": facts.weights,
            "dtype": facts.dtype,
            "method": _called(METHODS[method.what], method),
            "metrics": {one.name: _called(METRICS[one.what], one) for one in metrics},
            "target": settings.target,
            "quantity": settings.quantity,
            "seed": settings.seed,
            "maps": settings.maps,
            "shown": settings.shown,
            "code": code_version(),
        }


def _called(spec: Method | Metric, entry: Entry) -> dict[str, Any]:
    return {"name": spec.name, "params": plain(bound_parameters(spec, entry.options))}


def _about(spec: Method | Metric, entry: Entry) -> dict[str, Any]:
    return _called(spec, entry) | {"summary": spec.summary, "cite": list(spec.cite)}
