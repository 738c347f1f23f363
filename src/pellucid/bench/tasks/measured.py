"""One unit of a study of explanations: a chunk explained by one method and measured."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from pellucid._configured import configured
from pellucid._evaluate import evaluate_samples
from pellucid._measure import Measurement
from pellucid._results import Explanation
from pellucid._samples import read_sample
from pellucid._spec import as_method, as_metric
from pellucid._table import Scored
from pellucid._target import Quantity, Target
from pellucid._types import Picture
from pellucid.adapters.base import Adapter
from pellucid.bench.loading import load_data, load_model
from pellucid.bench.plan import LABEL, PREDICTED, Entry
from pellucid.bench.tasks.explaining import Explaining
from pellucid.bench.units import Array, Result, Row, Unit
from pellucid.data import Dataset
from pellucid.methods import METHODS
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
        self._read: tuple[str, Dataset] | None = None

    def do(self, unit: Unit) -> Result:
        """Explain the samples of the unit, and measure every explanation by every metric."""
        model = self._entries["model"][unit.work["model"]]
        method = self._entries["method"][unit.work["method"]]
        metrics = self._study.metrics_for(model)
        adapter = self._model(model)
        data = self._data(self._entries["data"][unit.work["data"]])
        start, target = unit.work["start"], self._target()
        goal = target if isinstance(target, Target) else Target.predicted()
        scored = evaluate_samples(
            adapter,
            [read_sample(adapter, one, goal) for one in data[start : start + unit.work["count"]]],
            configured((method.what, method.options), METHODS, as_method),
            [configured((one.what, one.options), METRICS, as_metric) for one in metrics],
            target=target,
            seed=self._settings.seed,
            batch_size=self._settings.batch_size,
        )
        rows = [
            _row(one, metric, one.measurements[place])
            for place, metric in enumerate(metrics)
            for one in scored
        ]
        return Result(rows, dict(self._kept(scored, metrics, start)) if self._settings.maps else {})

    def _kept(
        self, scored: Sequence[Scored], metrics: Sequence[Entry], start: int
    ) -> Iterator[tuple[str, Array]]:
        """Scores and curves, and of the first samples what the report shows them on."""
        for number, one in enumerate(scored, start):
            for metric, measurement in zip(metrics, one.measurements, strict=True):
                if measurement.curve:
                    curve = np.array(measurement.curve, dtype=np.float32)
                    yield f"curve/{metric.name}/{number}", curve
            if one.explanation is not None:
                yield f"scores/{number}", one.explanation.scores.numpy()
                if number < self._settings.shown:
                    yield from _shown(one.explanation, number)

    def _target(self) -> str | Target:
        """What is explained, as `evaluate` takes it."""
        target, quantity = self._settings.target, self._settings.quantity
        if target == LABEL:
            return LABEL
        goal = Target.parse(None if target == PREDICTED else target)
        return replace(goal, quantity=cast(Quantity | None, quantity))

    def _model(self, entry: Entry) -> Adapter:
        if self._loaded is None or self._loaded[0] != entry.name:
            self._loaded = None  # before the next one needs the memory
            self._loaded = entry.name, load_model(entry)
        return self._loaded[1]

    def _data(self, entry: Entry) -> Dataset:
        if self._read is None or self._read[0] != entry.name:
            self._read = entry.name, load_data(entry)
        return self._read[1]


def _row(one: Scored, metric: Entry, found: Measurement) -> Row:
    detail: dict[str, Any] = {
        "class": found.label,
        "evaluations": found.evaluations,
        "explained_in": one.cost.forwards,
    }
    detail |= {"ties": found.ties} if found.ties else {}
    detail |= {"counts": dict(found.counts)} if found.counts else {}
    return Row(one.sample, metric.name, found.value, found.skipped, detail)


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
