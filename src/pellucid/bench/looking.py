"""What every kind of plan is asked before any work."""

from __future__ import annotations

from pellucid._errors import UnsupportedCombination, explain_error
from pellucid.adapters.base import Adapter
from pellucid.bench.plan import Entry
from pellucid.bench.tasks.facts import DataFacts, ModelFacts
from pellucid.data import Dataset


def check_kind(data: Dataset, entry: Entry, model: Entry, adapter: Adapter) -> None:
    """Refuse texts for a model of images, and images for one of texts."""
    if data.kind != adapter.kind:
        raise UnsupportedCombination(
            explain_error(
                f"model {model.name!r} does not read such data",
                got=f"{entry.name}: {data.kind}s, for a model of {adapter.kind}s",
                expected="models and data of one kind",
                instead=f'models = ["..."] in {entry.place}, with the models that it is for',
            )
        )


def facts_of(adapter: Adapter) -> ModelFacts:
    """What is kept of a model with the results."""
    adapter.check_state()
    dtype = str(adapter.dtype).removeprefix("torch.")
    return ModelFacts(adapter.name, adapter.kind, adapter.weights_hash(), dtype)


def chunks_of(data: Dataset, size: int) -> DataFacts:
    """What is kept of a data set, in pieces of so many samples."""
    starts = range(0, len(data), size)
    return DataFacts(
        data.kind, len(data), tuple(data[start : start + size].fingerprint() for start in starts)
    )
