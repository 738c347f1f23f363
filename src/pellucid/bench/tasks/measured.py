"""One unit of a study of explanations: a chunk explained by one method and measured."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from pellucid._explain import explain
from pellucid._measure import Measurement, measure
from pellucid._results import Explanation
from pellucid._types import Picture
from pellucid.adapters.base import Adapter
from pellucid.bench.loading import load_data, load_model
from pellucid.bench.plan import LABEL, PREDICTED, Entry
from pellucid.bench.samples import Sample, Samples
from pellucid.bench.tasks.explaining import Explaining
from pellucid.bench.units import Array, Result, Row, Unit
from pellucid.metrics import METRICS


class Desk:
    """Where a worker does its units, with the model and the data of the latest one at hand."""

    def __init__(self, study: Explaining) -> None:
        plan = study.plan
        self._study = study
        self._settings = plan.settings
        self._entries = {
            part: {entry.name: entry for entry in entries}
            for part, entries in (
                ("model", plan.models),
                ("data", plan.data),
                ("method", plan.methods),
            )
        }
        self._loaded: tuple[str, Adapter] | None = None
        self._read: tuple[str, Samples] | None = None

    def do(self, unit: Unit) -> Result:
        """Explain the samples of the unit, and measure every explanation by every metric."""
        model = self._entries["model"][unit.work["model"]]
        method = self._entries["method"][unit.work["method"]]
        adapter = self._model(model)
        data = self._data(self._entries["data"][unit.work["data"]])
        start = unit.work["start"]
        samples = list(data[start : start + unit.work["count"]])
        explanations = self._explained(adapter, samples, method)
        rows: list[Row] = []
        maps = dict(self._kept(explanations, start))
        for metric in self._study.metrics_for(model):
            measured = self._measured(adapter, samples, explanations, metric)
            rows += [
                _row(sample, explanation, metric, one)
                for sample, explanation, one in zip(samples, explanations, measured, strict=True)
            ]
            maps |= {
                f"curve/{metric.name}/{number}": np.array(one.curve, dtype=np.float32)
                for number, one in enumerate(measured, start)
                if one.curve
            }
        return Result(rows, maps if self._settings.maps else {})

    def _explained(
        self, adapter: Adapter, samples: list[Sample], method: Entry
    ) -> list[Explanation]:
        return [
            explain(
                adapter,
                sample.input,
                method=method.what,
                target=self._target(sample),
                seed=self._settings.seed,
                batch_size=self._settings.batch_size,
                progress=False,
                **method.options,
            )
            for sample in samples
        ]

    def _measured(
        self,
        adapter: Adapter,
        samples: list[Sample],
        explanations: list[Explanation],
        metric: Entry,
    ) -> list[Measurement]:
        kind = METRICS[metric.what].truth
        found: list[Measurement] = measure(
            adapter,
            explanations,
            metric=metric.what,
            truth=None if kind is None else [_truth(sample, kind) for sample in samples],
            seed=self._settings.seed,
            **metric.options,
        )
        return found

    def _kept(self, explanations: list[Explanation], start: int) -> Iterator[tuple[str, Array]]:
        """Scores, and of the first samples what the report shows them on."""
        for number, explanation in enumerate(explanations, start):
            yield f"scores/{number}", explanation.scores.numpy()
            if number < self._settings.shown:
                yield from _shown(explanation, number)

    def _target(self, sample: Sample) -> int | str | None:
        target = self._settings.target
        return sample.label if target == LABEL else None if target == PREDICTED else target

    def _model(self, entry: Entry) -> Adapter:
        if self._loaded is None or self._loaded[0] != entry.name:
            self._loaded = None  # before the next one needs the memory
            self._loaded = entry.name, load_model(entry)
        return self._loaded[1]

    def _data(self, entry: Entry) -> Samples:
        if self._read is None or self._read[0] != entry.name:
            self._read = entry.name, load_data(entry)
        return self._read[1]


def _row(sample: Sample, explanation: Explanation, metric: Entry, found: Measurement) -> Row:
    detail: dict[str, Any] = {
        "class": found.label,
        "evaluations": found.evaluations,
        "explained_in": explanation.provenance.forwards,
    }
    detail |= {"ties": found.ties} if found.ties else {}
    detail |= {"counts": dict(found.counts)} if found.counts else {}
    return Row(sample.id, metric.name, found.value, found.skipped, detail)


def _truth(sample: Sample, kind: str) -> Any:
    return sample.label if kind == "label" else sample.truth[kind]


def _shown(explanation: Explanation, number: int) -> Iterator[tuple[str, Array]]:
    """The picture with its heat, or the words with theirs, and whether a sign has a meaning."""
    yield f"signed/{number}", np.array([explanation.signed])
    if isinstance(explanation.item, Picture):
        pixels = explanation.scores.dim() == 2
        heat = explanation.scores if pixels else explanation.patches()
        yield f"view/{number}", np.asarray(explanation.item.view)
        yield f"heat/{number}", heat.float().numpy()
    else:
        words = [[word.text, word.score] for word in explanation.words()]
        yield f"words/{number}", np.frombuffer(json.dumps(words).encode(), dtype=np.uint8)
