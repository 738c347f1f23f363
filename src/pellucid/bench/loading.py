"""Models and data by what a plan says of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pellucid.adapters import load
from pellucid.adapters.base import Adapter
from pellucid.bench.plan import Entry
from pellucid.bench.samples import check_options, read_samples
from pellucid.data import Dataset


def load_model(entry: Entry) -> Adapter:
    """The model of an entry, loaded without bars."""
    check_options(load, entry.what, entry.what, **entry.options)
    return load_plain(entry.what, **entry.options)


def load_plain(name: str, **options: Any) -> Adapter:
    """A model by its name alone, loaded without bars."""
    with _quiet():
        found: Adapter = load(name, **options)
        return found


def load_data(entry: Entry) -> Dataset:
    """The data of an entry."""
    return read_samples(entry.what, **entry.options)


@contextmanager
def _quiet() -> Iterator[Any]:
    """Without the bars and reports that transformers prints while it loads."""
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
