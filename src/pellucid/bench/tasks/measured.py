"""One unit of a study of explanations: a chunk explained by one method and measured."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from pellucid._errors import InputError, NumericalError
from pellucid._explain import explain
from pellucid._measure import Measurement, measure
from pellucid._results import Explanation
from pellucid._types import Picture
from pellucid.adapters.base import Adapter
from pellucid.bench.loading import load_data, load_model
from pellucid.bench.plan import LABEL, PREDICTED, Entry
from pellucid.bench.tasks.explaining import Explaining
from pellucid.bench.units import Array, Result, Row, Unit
from pellucid.data import Dataset, Sample
from pellucid.metrics import METRICS

_OF_ONE = (InputError, NumericalError)  # what one sample may be skipped for


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
        adapter = self._model(model)
        data = self._data(self._entries["data"][unit.work["data"]])
        start = unit.work["start"]
        samples = list(data[start : start + unit.work["count"]])
        explained = self._explained(adapter, samples, method)
        rows: list[Row] = []
        maps = dict(self._kept(explained, start))
        for metric in self._study.metrics_for(model):
            measured = self._measured(adapter, samples, explained, metric)
            rows += [
                _row(sample, explanation, metric, one)
                for sample, explanation, one in zip(samples, explained, measured, strict=True)
            ]
            maps |= {
                f"curve/{metric.name}/{number}": np.array(one.curve, dtype=np.float32)
                for number, one in enumerate(measured, start)
                if isinstance(one, Measurement) and one.curve
            }
        return Result(rows, maps if self._settings.maps else {})

    def _explained(
        self, adapter: Adapter, samples: list[Sample], method: Entry
    ) -> list[Explanation | str]:
        """The explanation of each sample, or why it has none."""
        work = partial(
            explain,
            adapter,
            method=method.what,
            seed=self._settings.seed,
            batch_size=self._settings.batch_size,
            progress=False,
            **method.options,
        )
        found: dict[int, Explanation | str] = {}
        for target in dict.fromkeys(map(self._target, samples)):
            chosen = [i for i, sample in enumerate(samples) if self._target(sample) == target]
            inputs = [samples[i].input for i in chosen]
            found |= zip(chosen, _each(partial(work, target=target), inputs), strict=True)
        return [found[i] for i in range(len(samples))]

    def _measured(
        self,
        adapter: Adapter,
        samples: list[Sample],
        explained: list[Explanation | str],
        metric: Entry,
    ) -> list[Measurement | str]:
        """The measurement of each explanation, or why there is none."""
        kind = METRICS[metric.what].truth

        def work(chosen: list[int]) -> Any:
            truth = None if kind is None else [_truth(samples[i], kind) for i in chosen]
            return measure(
                adapter,
                [known[i] for i in chosen],
                metric=metric.what,
                truth=truth,
                seed=self._settings.seed,
                **metric.options,
            )

        known = {i: one for i, one in enumerate(explained) if isinstance(one, Explanation)}
        found = dict(zip(known, _each(work, list(known)), strict=True))
        return [found[i] if i in found else str(one) for i, one in enumerate(explained)]

    def _kept(self, explained: list[Explanation | str], start: int) -> Iterator[tuple[str, Array]]:
        """Scores, and of the first samples what the report shows them on."""
        for number, explanation in enumerate(explained, start):
            if isinstance(explanation, str):
                continue
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

    def _data(self, entry: Entry) -> Dataset:
        if self._read is None or self._read[0] != entry.name:
            self._read = entry.name, load_data(entry)
        return self._read[1]


def _each(work: Callable[[list[Any]], Any], items: list[Any]) -> list[Any]:
    """`work` on all at once; where that fails for one of them, on each, with why it failed."""
    if not items:
        return []
    try:
        return list(work(items))
    except _OF_ONE as error:
        if len(items) == 1:
            return [str(error).splitlines()[0]]
    return [one for item in items for one in _each(work, [item])]


def _row(
    sample: Sample, explanation: Explanation | str, metric: Entry, found: Measurement | str
) -> Row:
    if isinstance(explanation, str) or isinstance(found, str):
        return Row(sample.id, metric.name, None, str(found), {"class": ""})
    detail: dict[str, Any] = {
        "class": found.label,
        "evaluations": found.evaluations,
        "explained_in": explanation.provenance.forwards,
    }
    detail |= {"ties": found.ties} if found.ties else {}
    detail |= {"counts": dict(found.counts)} if found.counts else {}
    return Row(sample.id, metric.name, found.value, found.skipped, detail)


def _truth(sample: Sample, kind: str) -> Any:
    """What is true of the sample; what people marked goes with the words that they saw."""
    if kind == "label":
        return sample.label
    found = sample.truth[kind]
    return found if sample.words is None else (sample.spans, found)


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
