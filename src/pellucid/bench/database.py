"""The database of a study: one SQLite file, whose changes are whole and whose errors are said."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from pellucid._errors import StoreError, explain_error
from pellucid.bench.units import canonical

FORMAT = 1
NAME = "study.sqlite"
_SOME = 64
_SCHEMA = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS units (
    key TEXT PRIMARY KEY,
    position INTEGER,              -- in the plan of now; NULL: of an earlier plan
    labels TEXT NOT NULL,
    work TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'done', 'failed')),
    attempts INTEGER NOT NULL DEFAULT 0,
    error TEXT NOT NULL DEFAULT '',
    seconds REAL NOT NULL DEFAULT 0,
    seal TEXT NOT NULL DEFAULT '',
    maps TEXT NOT NULL DEFAULT '',
    maps_digest TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS units_by_position ON units (position);
CREATE TABLE IF NOT EXISTS rows (
    unit TEXT NOT NULL REFERENCES units (key),
    number INTEGER NOT NULL,
    sample TEXT NOT NULL,
    measure TEXT NOT NULL,
    value REAL,
    skipped TEXT NOT NULL,
    detail TEXT NOT NULL,
    PRIMARY KEY (unit, number)
) WITHOUT ROWID;
"""


class Database:
    """An open file, with its facts: JSON by name."""

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        self.folder = folder
        self._connection = connection

    @classmethod
    @contextmanager
    def writing(cls, folder: Path) -> Iterator[Database]:
        """Make the file, or continue it; the caller has seen to it that nobody else writes."""
        with _opened(folder, "rwc") as connection:
            with told(folder):
                # A commit survives the death of the process. What a power cut may take are the
                # latest units, whole, which are then done again.
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.executescript(_SCHEMA)
            found = cls(folder, connection)
            if found.fact("format") is None:
                found.set_fact("format", FORMAT)
            found._check_format()
            yield found
            with suppress(sqlite3.Error):  # a reader holds it; then the journal stays beside it
                connection.execute("PRAGMA journal_mode = DELETE")

    @classmethod
    @contextmanager
    def reading(cls, folder: Path) -> Iterator[Database]:
        """Open the file as it is, also while a run writes to it."""
        with _opened(folder, "ro") as connection:
            found = cls(folder, connection)
            found._check_format()
            yield found

    def rows(self, query: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        with told(self.folder):
            return self._connection.execute(query, values).fetchall()

    def each(self, query: str, values: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        """The rows of a query, some in memory at a time."""
        with told(self.folder):
            cursor = self._connection.execute(query, values)
            while found := cursor.fetchmany(_SOME):
                yield from found

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All of it or nothing."""
        with told(self.folder):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # a full disk has rolled it back by itself
                    self._connection.execute("ROLLBACK")
                raise

    def fact(self, name: str) -> Any:
        """What is kept under a name, or None."""
        found = self.rows("SELECT value FROM facts WHERE name = ?", (name,))
        return json.loads(found[0][0]) if found else None

    def set_fact(self, name: str, value: Any) -> None:
        """Keep something under a name."""
        self.rows("REPLACE INTO facts VALUES (?, ?)", (name, canonical(value)))

    def _check_format(self) -> None:
        found = self.fact("format")
        if found != FORMAT:
            raise damaged(self.folder, f"format {found!r}, where this version reads {FORMAT}")


@contextmanager
def told(folder: Path) -> Iterator[None]:
    """What the system says of a file, as one designed error; what is stored stays as it was."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise StoreError(
            explain_error(
                "the study cannot be written or read here",
                got=f"{folder} ({error})",
                expected="a folder that you may write to, on a disk with room",
                instead="make room, or choose another --out, and start again: what is done is kept",
            )
        ) from None


def damaged(folder: Path, detail: str) -> StoreError:
    """The error of contents that nobody here has written."""
    return StoreError(
        explain_error(
            "this study is damaged",
            got=f"{folder} ({detail})",
            expected="the numbers that were written",
            instead="run it again in a new folder, or restore this one from a copy",
        )
    )


@contextmanager
def _opened(folder: Path, mode: str) -> Iterator[sqlite3.Connection]:
    address = f"{(folder / NAME).resolve().as_uri()}?mode={mode}"
    with told(folder):
        connection = sqlite3.connect(address, uri=True, isolation_level=None)
    with closing(connection):
        yield connection
