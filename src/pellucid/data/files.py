"""Data sets from files that people keep: folders of pictures, and tables of texts."""

from __future__ import annotations

import csv as reader
import os
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pellucid._errors import ArgumentError, InputError, explain_error, unknown_name
from pellucid._images import SUFFIXES
from pellucid.data.dataset import Dataset, Entry, decoded, nothing_in
from pellucid.data.masks import decoded_mask
from pellucid.data.sample import Label


def folder(
    path: str | Path, *, masks: str | Path | None = None, codes: Mapping[int, int] | None = None
) -> Dataset:
    """The pictures of a folder; those in its sub-folders are labelled with their names.

    `masks` is a folder with a picture of the same name (or with .png) for each, and `codes` says
    what its values mean, as in ``{1: 1, 2: 0, 3: -1}``. Nothing outside is opened: a link that
    leads out is an error, and a linked folder is not entered.
    """
    root = _folder(path)
    mask_root = None if masks is None else _folder(masks)
    entries = tuple(_entry(root, file, mask_root, codes) for file in sorted(_pictures(root)))
    if not entries:
        got = f"no file in {root} that ends in {', '.join(SUFFIXES)}"
        raise nothing_in(root.name, got, "pellucid.data.folder('photos'), with photos/cat/1.jpg")
    return Dataset(root.name, "image", entries, () if masks is None else ("mask",))


def csv(
    path: str | Path,
    *,
    text: str | tuple[str, str],
    label: str | None = None,
    id: str | None = None,
    delimiter: str = ",",
) -> Dataset:
    """The rows of a UTF-8 table of texts, whose first line names the columns.

    Two columns of text make pairs. Labels are names, unless all of them are whole numbers.
    """
    path = Path(path)
    texts = (text,) if isinstance(text, str) else tuple(text)
    rows = _rows(path, delimiter, [*texts, *(one for one in (label, id) if one is not None)])
    labels = _labels([None if label is None else row[label] for row in rows])
    entries = tuple(
        text_entry(
            str(number) if id is None else row[id],
            row[texts[0]] if isinstance(text, str) else tuple(row[one] for one in texts),
            name,
            {},
        )
        for number, (row, name) in enumerate(zip(rows, labels, strict=True))
    )
    if not entries:
        raise nothing_in(path.name, "a table without rows", "a first line of names, then rows")
    return Dataset(path.stem, "text", entries)


def text_entry(id: str, text: Any, label: Label, about: Mapping[str, Any]) -> Entry:
    """A text that is in memory anyway."""
    return Entry(id, label, about, partial(dict, input=text), partial(list, [text]))


# ---- folders -------------------------------------------------------------------------------------


def _folder(path: str | Path) -> Path:
    root = Path(path)
    if not root.is_dir():
        raise InputError(
            explain_error(
                "there is no such folder",
                got=str(path),
                expected="a folder of pictures, or of one folder a class",
                instead="pellucid.data.folder('photos')",
            )
        )
    return root.resolve()


def _pictures(root: Path) -> Iterator[Path]:
    """The files of pictures in a folder and below it; hidden ones are left out."""
    for where, folders, files in os.walk(root, followlinks=False):
        for name in [*folders, *files]:
            _inside(Path(where, name), root)
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (
            Path(where, name)
            for name in files
            if name.lower().endswith(SUFFIXES) and not name.startswith(".")
        )


def _inside(path: Path, root: Path) -> Path:
    """The path, which must not lead out of the folder."""
    if not path.resolve().is_relative_to(root):
        raise InputError(
            explain_error(
                "a link leads out of the folder",
                got=f"{path} -> {path.resolve()}",
                expected=f"files in {root}",
                instead="copy the file into the folder",
            )
        )
    return path


def _entry(root: Path, file: Path, masks: Path | None, codes: Mapping[int, int] | None) -> Entry:
    inner = file.relative_to(root)
    label = inner.parts[0] if len(inner.parts) > 1 else None
    sources = [(file, root)]
    if masks is not None:
        sources.append((_mask_of(inner, masks), masks))
    return Entry(
        inner.as_posix(),
        label,
        {},
        partial(_read, sources, codes),
        partial(_stored, sources, codes),
    )


def _mask_of(inner: Path, masks: Path) -> Path:
    for found in (masks / inner, masks / inner.with_suffix(".png")):
        if found.is_file():
            return _inside(found, masks)
    raise InputError(
        explain_error(
            "a picture has no mask",
            got=f"no {inner.with_suffix('.png').as_posix()} in {masks}",
            expected="a mask of the same name for every picture",
            instead="leave masks= out, or draw the mask",
        )
    )


def _stored(sources: list[tuple[Path, Path]], codes: Mapping[int, int] | None) -> list[Any]:
    """The files as they are; what they lead to is looked at again, in case it has changed."""
    return [codes, *(_inside(path, root).read_bytes() for path, root in sources)]


def _read(sources: list[tuple[Path, Path]], codes: Mapping[int, int] | None) -> Mapping[str, Any]:
    picture, *mask = [_inside(path, root) for path, root in sources]
    truth = {"mask": decoded_mask(mask[0], codes)} if mask else {}
    return {"input": decoded(picture), "truth": truth}


# ---- tables of texts -----------------------------------------------------------------------------


def _rows(path: Path, delimiter: str, columns: list[str]) -> list[dict[str, str]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            table = reader.DictReader(file, delimiter=delimiter, strict=True)
            names = list(table.fieldnames or [])
            for column in columns:
                if column not in names:
                    raise ArgumentError(unknown_name(f"column of {path.name}:", column, names))
            rows = [_row(line, path, table.line_num, columns) for line in table]
    except (OSError, UnicodeDecodeError, TypeError, reader.Error) as error:
        raise InputError(
            explain_error(
                "this table cannot be read",
                got=f"{path} ({error})",
                expected="a UTF-8 file of rows, and one character between their cells",
                instead="pellucid.data.csv('reviews.csv', text='text', delimiter=',')",
            )
        ) from None
    return rows


def _row(line: Mapping[Any, Any], path: Path, number: int, columns: list[str]) -> dict[str, str]:
    if None in line or None in line.values():
        raise InputError(
            explain_error(
                f"a row of {path.name} has another number of cells than the first line",
                got=f"line {number}",
                expected="one cell a column, in quotes where it holds a comma",
                instead="the delimiter of this file, such as delimiter='\\t'",
            )
        )
    return {column: line[column] for column in columns}


def _labels(written: list[str | None]) -> list[Label]:
    numbers = [one for one in written if one is not None and one.removeprefix("-").isdecimal()]
    return [int(one) for one in numbers] if len(numbers) == len(written) else list(written)
