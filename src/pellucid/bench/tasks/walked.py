"""One unit of a study of walks: as many walks from one input as the plan repeats, measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pellucid._errors import InputError
from pellucid._samples import reason_of
from pellucid._trajectory import Trajectory
from pellucid.adapters.base import Adapter
from pellucid.bench.loading import load_data, load_model, load_plain
from pellucid.bench.plan import Entry
from pellucid.bench.tasks.walking import Walking
from pellucid.bench.units import Result, Row, Unit
from pellucid.data import Dataset, Sample
from pellucid.explorer import studies
from pellucid.explorer.selection import Above, Top

_RULES = {"top": Top, "above": Above}  # of importance, as a plan says them


class Path:
    """Where a worker walks, with the model, the data and the latest input's walks at hand."""

    def __init__(self, study: Walking) -> None:
        self._study = study
        self._walks = {walk.name: walk for walk in study.plan.walks}
        self._models = {model.name: model for model in study.plan.models}
        self._data = {data.name: data for data in study.plan.data}
        self._loaded: tuple[str, Adapter] | None = None
        self._read: tuple[str, Dataset] | None = None
        self._decoder: Adapter | None = None
        self._place: object = None
        self._taken: dict[tuple[str, int], Trajectory] = {}  # from that place, by repetition

    def do(self, unit: Unit) -> Result:
        """Walk from the input of the unit; a row is the mean of a measure over the repetitions."""
        work, measures = unit.work, self._study.measures()
        walk, sample = self._walks[work["walk"]], self._dataset(work["data"])[work["start"]]
        place = work["model"], work["data"], work["start"], work["steps"]
        if place != self._place:
            self._place, self._taken = place, {}
        try:
            told = [
                self._walked(walk, sample, work, repetition)
                for repetition in range(self._study.plan.settings.repetitions)
            ]
        except InputError as error:
            return Result([Row(sample.id, name, None, reason_of(error)) for name in measures])
        rows = [row for name in measures for row in _rows(sample.id, name, told)]
        forwards = sum(one.walk.provenance.forwards for one in told if one.walk is not None)
        rows[:1] = [
            replace(row, detail={**row.detail, "evaluations": forwards}) for row in rows[:1]
        ]
        return Result(rows)

    def _walked(
        self, walk: Entry, sample: Sample, work: Mapping[str, Any], repetition: int
    ) -> studies.Unit:
        """One walk, beside the one that the plan compares it with."""
        options = self._options(walk, work)
        other = options.pop("beside", None)
        if other is not None:
            if (other, repetition) not in self._taken:  # which another worker walked
                self._walked(self._walks[other], sample, work, repetition)
            options["beside"] = self._taken[other, repetition]
        found = studies.walk_unit(
            self._model(work["model"]),
            sample.input,
            walk.what,
            repetition=repetition,
            seed=self._study.plan.settings.seed,
            **options,
        )
        assert found.walk is not None
        if walk.name in self._study.compared():
            self._taken[walk.name, repetition] = found.walk
        return found

    def _options(self, walk: Entry, work: Mapping[str, Any]) -> dict[str, Any]:
        """The options of a walk as objects."""
        options = {**self._study.options(walk), "steps": work["steps"]}
        tokens = options.get("tokens")
        if isinstance(tokens, Mapping):
            ((rule, number),) = tokens.items()
            options["tokens"] = _RULES[rule](number)
        if "mlm" in options:
            if self._decoder is None:
                self._decoder = load_plain(options["mlm"])
            options["mlm"] = self._decoder
        return options

    def _model(self, name: str) -> Adapter:
        if self._loaded is None or self._loaded[0] != name:
            self._loaded = None  # before the next one needs the memory
            self._loaded = name, load_model(self._models[name])
        return self._loaded[1]

    def _dataset(self, name: str) -> Dataset:
        if self._read is None or self._read[0] != name:
            self._read = name, load_data(self._data[name])
        return self._read[1]


def _rows(sample: str, name: str, told: Sequence[studies.Unit]) -> Iterator[Row]:
    """The mean over the repetitions that have a number, or why none has; no row for no column."""
    numbers = [one.numbers[name] for one in told if name in one.numbers]
    if numbers:
        yield Row(sample, name, sum(numbers) / len(numbers), detail={"each": numbers})
    elif name in told[0].skipped:
        yield Row(sample, name, None, told[0].skipped[name])
