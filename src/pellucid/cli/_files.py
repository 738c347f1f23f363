"""Where a verb writes: checked before any work is done."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from pellucid import Explanation, Trajectory


def check_two(out: Path | None, json_: Path | None) -> None:
    """Two outputs in one file would leave the second alone."""
    from pellucid import ArgumentError
    from pellucid._errors import explain_error

    if out is not None and json_ is not None and out.resolve() == json_.resolve():
        raise ArgumentError(
            explain_error(
                "the page and the numbers cannot share a file",
                got=f"--out {out} --json {json_}",
                expected="two paths",
                instead=f"--json {out.with_suffix('.json')}",
            )
        )


def check_free(path: Path | None, force: bool) -> None:
    """Refuse an existing output before any work is done."""
    from pellucid import StoreError
    from pellucid._errors import explain_error

    if path is None or str(path) == "-":
        return
    if path.exists() and not force:
        raise StoreError(
            explain_error(
                "the file exists already",
                got=str(path),
                expected="a new path",
                instead="--force to overwrite it",
            )
        )
    if not path.resolve().parent.is_dir():
        raise StoreError(
            explain_error(
                "there is no such folder",
                got=str(path.resolve().parent),
                expected="a path in an existing folder",
                instead=f"mkdir -p {path.parent}",
            )
        )


def make_folder(out: Path, instead: str) -> None:
    """Before any work, so that a path that is a file is refused at once."""
    from pellucid import StoreError
    from pellucid._errors import explain_error

    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            explain_error(
                "this folder cannot be made",
                got=f"--out {out} ({error.strerror})",
                expected="a folder that you may write to, new or existing",
                instead=instead,
            )
        ) from None


def write_json(found: Sequence[Explanation | Trajectory], path: Path, force: bool) -> None:
    """The numbers of all results as one list, to a file or ('-') to standard output."""
    from pellucid._store import replacing

    document = json.dumps([one.to_dict() for one in found], ensure_ascii=False, indent=2)
    if str(path) == "-":
        sys.stdout.write(document + "\n")
        return
    with replacing(path, overwrite=force) as temporary:
        temporary.write_text(document + "\n", encoding="utf-8")
    typer.echo(f"numbers: {path}")
