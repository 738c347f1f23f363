"""Data sets of a plan: the readers of `pellucid.data`, and which of their samples."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pellucid import data
from pellucid._errors import ArgumentError, explain_error, unknown_name
from pellucid.data import Dataset, Sample
from pellucid.models import sample_images, sample_texts


def read_samples(
    reader: str,
    *,
    split: str | None = None,
    where: Mapping[str, Any] | None = None,
    relabel: Sequence[str] | None = None,
    take: int | None = None,
    draw: int | None = None,
    **options: Any,
) -> Dataset:
    """The data set that a reader makes of its options, or some of it.

    `split` and `where` choose samples, `relabel` names the labels 0, 1, 2 ..., and `take` keeps the
    first so many, or so many that the seed `draw` draws.
    """
    if reader not in READERS:
        raise ArgumentError(unknown_name("reader of data", reader, READERS, write="read = {!r}"))
    check_options(READERS[reader], reader, **options)
    found = READERS[reader](**options)
    if split is not None:
        found = found.split(split)
    if where is not None:
        found = found.where(**where)
    if relabel is not None:
        found = found.relabel(relabel)
    return found if take is None else found.take(take, draw)


def check_options(function: Callable[..., Any], name: str, *given: Any, **options: Any) -> None:
    """Refuse keywords that a function does not take, and the lack of those that it needs."""
    signature = inspect.signature(function)
    try:
        signature.bind(*given, **options)
    except TypeError as error:
        raise ArgumentError(
            explain_error(
                f"{name} does not take these options",
                got=f"{options} ({error})",
                expected=f"some of: {', '.join(list(signature.parameters)[len(given) :])}",
                instead="correct the one that it names",
            )
        ) from None


def bundled(kind: str) -> Dataset:
    """The pictures of digits, or the reviews, that come with the package."""
    if kind == "images":
        digits = [Sample(path, path.stem, path.stem.split("-")[1]) for path in sample_images()]
        return data.of(digits, "digits")
    if kind == "texts":
        return data.of(sample_texts(), "reviews")
    kinds = ["images", "texts"]
    raise ArgumentError(unknown_name("kind of samples", kind, kinds, write="kind = {!r}"))


READERS: dict[str, Callable[..., Dataset]] = {
    "bundled": bundled,
    **{
        found.__name__: found
        for found in (
            *(data.csv, data.folder, data.parquet),
            *(data.pets, data.hatexplain, data.yelp_hat),
            *(data.winobias, data.sentence_polarity, data.imdb),
        )
    },
}
