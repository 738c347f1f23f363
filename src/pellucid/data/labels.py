"""Whether a model has the classes that a data set speaks of, before any work is done."""

from __future__ import annotations

from collections import Counter
from typing import Any

from pellucid._errors import ArgumentError, explain_error
from pellucid.adapters import as_adapter
from pellucid.adapters.base import Adapter
from pellucid.data.dataset import Dataset


def check_labels(dataset: Dataset, model: Any) -> None:
    """Raise, with all of them named, if samples have labels that the model does not know.

    Nor may texts be given to a model of images, which would take them for paths.
    """
    adapter = as_adapter(model)
    if adapter.kind != dataset.kind:
        raise ArgumentError(
            explain_error(
                "the model and the data set do not fit",
                got=f"{dataset!r}",
                expected=f"inputs of kind {adapter.kind!r}, which {adapter.name} reads",
                instead=f"a data set of {adapter.kind}s",
            )
        )
    unknown = {
        "None" if label is None else repr(label): count
        for label, count in Counter(dataset.labels).items()
        if label is None or not _has(adapter, label)
    }
    if unknown:
        raise ArgumentError(
            explain_error(
                f"{adapter.name} does not have the labels of {dataset.name}",
                got=", ".join(f"{label} ({count} samples)" for label, count in unknown.items()),
                expected=f"one of: {', '.join(map(repr, adapter.labels[:20]))}",
                instead=f"dataset.relabel({{{next(iter(unknown))}: {adapter.labels[0]!r}, ...}})",
            )
        )


def _has(adapter: Adapter, label: int | str) -> bool:
    try:
        adapter.class_index(label, "label")
    except ArgumentError:
        return False
    return True
