"""The study of a plan of walks: every way of walking from every input, several times.

A unit is one way from one input, with all of its repetitions, whose mean is the input's number: so
intervals are over inputs. Its key holds what decides its numbers: the weights (also of the model
that decodes), the sample, the walk's options and those of the walk that it is compared with, the
repetitions, the seed, and the code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from pellucid._json import plain
from pellucid.bench.plan import Entry, Plan
from pellucid.bench.tasks.facts import DataFacts, ModelFacts, about_inputs
from pellucid.bench.units import Unit, Work, key_of
from pellucid.bench.version import code_version
from pellucid.explorer.studies import headings
from pellucid.metrics.walks import WALK_METRICS

_PROBED = 10  # steps from which the cost of a walk is told


@dataclass(frozen=True)
class Walking:
    """A plan of walks that has been looked at: plain data, which travels to workers."""

    plan: Plan
    models: Mapping[str, ModelFacts]
    data: Mapping[str, DataFacts]  # each sample is a chunk of its own
    decoder: str  # the weights of the model that decodes texts; empty without one

    def units(self) -> Iterator[Unit]:
        """All walks, those from one input together."""
        for model in self.plan.models:
            for data in self.plan.data:
                walks = [walk for walk in self.plan.walks if walk.is_for(model)]
                if data.is_for(model):
                    yield from self._from_data(model, data, walks)

    def probe(self, unit: Unit) -> tuple[Unit, float]:
        """A short walk, and how many of it this one is."""
        steps = int(unit.work["steps"])
        short = min(steps, _PROBED)
        return replace(unit, work={**unit.work, "steps": short}), steps / short

    def about(self) -> Mapping[str, Any]:
        """What the tables need besides numbers, and where they come from."""
        known = headings()
        return {
            "task": "walking",
            "name": self.plan.name,
            "columns": ["model", "data", "walk"],
            "settings": asdict(self.plan.settings),
            **about_inputs(self.plan, self.models, self.data),
            "methods": {
                walk.name: {"name": walk.what, "params": plain(self.options(walk))}
                for walk in self.plan.walks
            },
            "measures": {
                name: {"better": None, "summary": _summary(known[name]), "params": {}}
                for name in self.measures()
            },
            "versions": code_version(),
            "plan": self.plan.source,
        }

    def open(self) -> Work:
        """Load what units ask for, and keep the latest."""
        from pellucid.bench.tasks.walked import Path

        return Path(self).do

    def measures(self) -> list[str]:
        """The columns that the plan asks for; without any, all."""
        return [metric.what for metric in self.plan.metrics] or list(headings())

    def options(self, walk: Entry) -> dict[str, Any]:
        """What a walk is given: what all are given, and its own."""
        return {**self.plan.walking, **walk.options}

    def compared(self) -> set[str]:
        """The walks that others are compared with."""
        return {str(walk.options["beside"]) for walk in self.plan.walks if "beside" in walk.options}

    def _from_data(self, model: Entry, data: Entry, walks: list[Entry]) -> Iterator[Unit]:
        for number, fingerprint in enumerate(self.data[data.name].chunks):
            for walk in walks:
                labels = {"model": model.name, "data": data.name, "walk": walk.name}
                steps = self.options(walk).get("steps", 1000)
                key = key_of({**self._content(model, walk), "samples": fingerprint})
                yield Unit(key, labels, {**labels, "start": number, "count": 1, "steps": steps})

    def _content(self, model: Entry, walk: Entry) -> dict[str, Any]:
        """All that decides a walk's numbers, but for its input and repetition."""
        options = self.options(walk)
        beside = options.get("beside")
        other = next((one for one in self.plan.walks if one.name == beside), None)
        return {
            "weights": self.models[model.name].weights,
            "dtype": self.models[model.name].dtype,
            "decoder": self.decoder,
            "walk": walk.what,
            "options": plain(options),
            "beside": None if other is None else plain(self.options(other)),
            "measures": self.measures(),
            "repetitions": self.plan.settings.repetitions,
            "seed": self.plan.settings.seed,
            "code": code_version(),
        }


def _summary(metric: str | None) -> str:
    return "" if metric is None else WALK_METRICS[metric].summary
