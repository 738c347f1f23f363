"""Data sets from tables whose columns have names: parquet files, and Hugging Face data sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import fmean
from typing import Any, Protocol

from pellucid._errors import ArgumentError, InputError, explain_error, unknown_name
from pellucid.data.dataset import Dataset, Entry, decoded, kind_of, nothing_in
from pellucid.data.masks import decoded_mask
from pellucid.data.sample import KINDS, as_label

Codes = Mapping[int, int]


class Table(Protocol):
    """Columns of equal length."""

    def __len__(self) -> int: ...

    def column(self, name: str) -> Sequence[Any]: ...

    def row(self, number: int, names: Sequence[str]) -> Mapping[str, Any]: ...


@dataclass(frozen=True)
class Columns:
    """Which columns hold what."""

    input: str | tuple[str, str] | None
    words: str | None
    label: str | None
    id: str | None
    about: tuple[str, ...]
    truth: Mapping[str, str]
    codes: Codes | None

    @property
    def read(self) -> tuple[str, ...]:
        """Those that a sample is made of, besides its id, its label and what is known of it."""
        inputs = (self.input,) if isinstance(self.input, str) else self.input or ()
        return (*inputs, *([self.words] if self.words else []), *self.truth.values())

    @property
    def all(self) -> tuple[str, ...]:
        """All of them."""
        others = [name for name in (self.label, self.id) if name is not None]
        return (*self.read, *others, *self.about)


def parquet(
    path: str | Path,
    *,
    input: str | tuple[str, str] | None = None,
    words: str | None = None,
    label: str | None = None,
    id: str | None = None,
    about: Sequence[str] = (),
    codes: Codes | None = None,
    **truth: str,
) -> Dataset:
    """The rows of a parquet file; every argument names a column.

    `input` holds texts or the bytes of image files (two columns of texts make pairs), or `words`
    holds lists of words; `mask=`, `boxes=`, `rationale=` and `attention=` hold truth. `about` is
    kept to choose samples by, and "split" is by which `.split("test")` chooses. `codes` says what
    the values of a mask mean, as in ``{1: 1, 2: 0, 3: -1}``; of several rationales of a text, one
    an annotator, the mean is taken.
    """
    columns = _checked_columns(input, words, label, id, about, codes, truth)
    path = Path(path)
    return from_table(_opened(path, columns), columns, path.stem)


def from_datasets(
    dataset: Any,
    *,
    input: str | tuple[str, str] | None = None,
    words: str | None = None,
    label: str | None = None,
    id: str | None = None,
    about: Sequence[str] = (),
    codes: Codes | None = None,
    name: str = "dataset",
    **truth: str,
) -> Dataset:
    """The rows of a `datasets.Dataset`; the arguments are those of `parquet`.

    Labels are the names of its `ClassLabel` where it has one.
    """
    if not hasattr(dataset, "column_names") or isinstance(dataset.column_names, Mapping):
        raise ArgumentError(
            explain_error(
                "this is not one table",
                got=type(dataset).__name__,
                expected="a datasets.Dataset: one split of what load_dataset gives",
                instead="from_datasets(load_dataset(...)['test'], input=..., label=...)",
            )
        )
    columns = _checked_columns(input, words, label, id, about, codes, truth)
    _check_present(columns, list(dataset.column_names), name)
    found = from_table(_Rows(dataset), columns, name)
    feature = (getattr(dataset, "features", None) or {}).get(label)
    names = getattr(feature, "names", None)
    return found if names is None else found.relabel({None: None, **dict(enumerate(names))})


def from_table(table: Table, columns: Columns, name: str) -> Dataset:
    """The samples of a table. What is cheap is read now, the rest when it is asked for."""
    if not len(table):
        raise nothing_in(name, "no rows", "a table with rows")
    numbers = range(len(table))
    ids = map(str, table.column(columns.id) if columns.id else numbers)
    labels = table.column(columns.label) if columns.label else [None] * len(table)
    about = zip(*(table.column(one) for one in columns.about), strict=True)
    facts = list(about) if columns.about else [()] * len(table)
    entries = tuple(
        Entry(
            one,
            as_label(label),
            dict(zip(columns.about, fact, strict=True)),
            partial(_read, table, columns, number),
            partial(_stored, table, columns, number),
        )
        for one, label, fact, number in zip(ids, labels, facts, numbers, strict=True)
    )
    kind = kind_of(_input(table.row(0, columns.read), columns))
    return Dataset(name, kind, entries, tuple(columns.truth))


# ---- one row -------------------------------------------------------------------------------------


def _read(table: Table, columns: Columns, number: int) -> Mapping[str, Any]:
    row = table.row(number, columns.read)
    return {
        "input": decoded(_input(row, columns)),
        "words": tuple(row[columns.words]) if columns.words else None,
        "truth": {
            kind: _truth(kind, row[column], row, columns) for kind, column in columns.truth.items()
        },
    }


def _stored(table: Table, columns: Columns, number: int) -> Any:
    row = table.row(number, columns.read)
    return [columns.codes, *(_without_path(row[column]) for column in columns.read)]


def _input(row: Mapping[str, Any], columns: Columns) -> Any:
    empty = [column for column in columns.read if row[column] is None]
    if empty:
        raise InputError(
            explain_error(
                "a cell is empty",
                got=f"nothing in column {empty[0]!r}",
                expected="a value in every row",
                instead="the same table without such rows",
            )
        )
    if columns.words:
        return " ".join(row[columns.words])
    if isinstance(columns.input, tuple):
        return tuple(row[column] for column in columns.input)
    return _without_path(row[columns.input or ""])


def _truth(kind: str, raw: Any, row: Mapping[str, Any], columns: Columns) -> Any:
    if kind == "mask":
        return decoded_mask(_without_path(raw), columns.codes)
    if kind == "rationale" and all(isinstance(one, Sequence) for one in raw):
        return _mean(raw, len(row[columns.words or ""]))
    return raw


def _mean(rationales: Sequence[Sequence[float]], words: int) -> list[float]:
    """How many of the annotators marked each word, as a fraction; without annotators, none did."""
    for one in rationales:
        if len(one) != words:
            raise InputError(
                explain_error(
                    "this rationale does not fit the words",
                    got=f"{len(one)} numbers for {words} words",
                    expected="one number a word",
                    instead="the rationale of these words",
                )
            )
    if not rationales:
        return [0.0] * words
    return [fmean(marks) for marks in zip(*rationales, strict=True)]


def _without_path(cell: Any) -> Any:
    """An image that is stored with where it once was: only its bytes are ever read."""
    if not isinstance(cell, Mapping):
        return cell
    if not isinstance(cell.get("bytes"), bytes):
        raise InputError(
            explain_error(
                "the table does not hold this image, only where it was",
                got=f"path={cell.get('path')!r}",
                expected="the bytes of the image file in the table",
                instead="pellucid.data.folder(path) for images in files",
            )
        )
    return cell["bytes"]


def _checked_columns(
    input: str | tuple[str, str] | None,
    words: str | None,
    label: str | None,
    id: str | None,
    about: Sequence[str],
    codes: Codes | None,
    truth: Mapping[str, str],
) -> Columns:
    for kind in truth:
        if kind not in KINDS:
            known = (*KINDS, "input", "words", "label", "id", "about", "codes")
            raise ArgumentError(unknown_name("argument", kind, known, write="{}=..."))
    if (input is None) == (words is None):
        raise ArgumentError(
            explain_error(
                "one argument says where the inputs are",
                got=f"input={input!r}, words={words!r}",
                expected="the column of texts or images, or that of lists of words",
                instead="input='text'",
            )
        )
    for kind in ("rationale", "attention"):
        if kind in truth and words is None:
            raise ArgumentError(
                explain_error(
                    f"{kind} is said of words",
                    got=f"{kind}={truth[kind]!r}, input={input!r}",
                    expected="the column of lists of words",
                    instead=f"words='tokens', {kind}={truth[kind]!r}",
                )
            )
    about = (about,) if isinstance(about, str) else tuple(about)
    return Columns(input, words, label, id, about, dict(truth), codes)


def _check_present(columns: Columns, names: Sequence[str], where: str) -> None:
    for column in columns.all:
        if column not in names:
            raise ArgumentError(unknown_name(f"column of {where}:", column, names))


# ---- where rows come from ------------------------------------------------------------------------


@dataclass(frozen=True)
class _Arrow:
    """A table of pyarrow: cells stay encoded in its memory until they are asked for."""

    table: Any

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def column(self, name: str) -> Sequence[Any]:
        return list(self.table.column(name).to_pylist())

    def row(self, number: int, names: Sequence[str]) -> Mapping[str, Any]:
        return {name: self.table.column(name)[number].as_py() for name in names}


@dataclass(frozen=True)
class _Rows:
    """A `datasets.Dataset`, or whatever looks like one."""

    dataset: Any

    def __len__(self) -> int:
        return len(self.dataset)

    def column(self, name: str) -> Sequence[Any]:
        return list(self.dataset[name])

    def row(self, number: int, names: Sequence[str]) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.dataset[number]
        return {name: found[name] for name in names}


def _opened(path: Path, columns: Columns) -> _Arrow:
    try:
        reader = import_module("pyarrow.parquet")
    except ImportError:
        raise ArgumentError(
            explain_error(
                "reading parquet needs pyarrow",
                got="no installed pyarrow",
                expected="the extra that reads tables",
                instead="pip install 'pellucid[data]'",
            )
        ) from None
    try:
        with path.open("rb") as source, reader.ParquetFile(source) as file:
            names = list(file.schema_arrow.names)
            known = [name for name in dict.fromkeys(columns.all) if name in names]
            table = file.read(columns=known)
    except (OSError, ValueError) as error:
        raise InputError(
            explain_error(
                "this cannot be read as a parquet file",
                got=f"{path} ({error})",
                expected="the path of one parquet file",
                instead="check the path",
            )
        ) from None
    _check_present(columns, names, path.name)
    return _Arrow(table)
