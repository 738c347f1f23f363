"""Results of a study: one SQLite file for units and numbers, safetensors files for large arrays.

    RUN/study.sqlite    units (one row each, with its state) and rows (one number each)
    RUN/maps/           one file for each unit that has arrays, written before its row
    RUN/log.jsonl       what happened, one JSON object a line
    RUN/report.html     the tables, when the run has ended

A unit's state, its numbers and the name of its file change in one transaction, so a process that
is killed leaves a unit done or not begun, never half of one.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from pellucid._errors import ArgumentError, StoreError, explain_error
from pellucid.bench.lock import only_writer
from pellucid.bench.maps import read_maps, write_maps
from pellucid.bench.seal import seal
from pellucid.bench.shard import WHOLE, Shard
from pellucid.bench.units import Array, Outcome, Row, Unit, canonical

FORMAT = 1
NAME = "study.sqlite"
_PAGE = 512  # units in memory at a time
_TO_DO = "(state = 'waiting' OR state = 'failed' AND attempts < ?)"
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


@dataclass(frozen=True)
class Record:
    """A unit as it stands in a store."""

    key: str
    state: str
    attempts: int
    error: str
    seconds: float
    seal: str = ""
    maps: str = ""  # the name of the file of its arrays
    maps_digest: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    work: Mapping[str, Any] = field(default_factory=dict)
    rows: tuple[Row, ...] = ()


class Store:
    """The results in one folder, open for reading or for writing."""

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        self.folder = folder
        self._connection = connection

    @classmethod
    @contextmanager
    def writing(cls, folder: Path) -> Iterator[Store]:
        """Make the folder, or continue in it; nobody else writes to it meanwhile."""
        with ExitStack() as held:
            with _told(folder):
                folder.mkdir(parents=True, exist_ok=True)
                held.enter_context(only_writer(folder))
                connection = held.enter_context(closing(_connected(folder / NAME, "rwc")))
                # A commit survives the death of the process. What a power cut may take are the
                # latest units, whole, which are then done again.
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.executescript(_SCHEMA)
            store = cls(folder, connection)
            if store._fact("format") is None:
                store._set("format", FORMAT)
            store._check_format()
            yield store
            with suppress(sqlite3.Error):  # a reader holds it; then the journal stays beside it
                connection.execute("PRAGMA journal_mode = DELETE")

    @classmethod
    @contextmanager
    def reading(cls, folder: Path) -> Iterator[Store]:
        """The results so far, also while a run writes to them."""
        path = folder / NAME
        if not path.is_file():
            raise _no_study(folder)
        with ExitStack() as held:
            with _told(folder):
                connection = held.enter_context(closing(_connected(path, "ro")))
            store = cls(folder, connection)
            store._check_format()
            yield store

    # ---- the plan ----------------------------------------------------------------------------

    def prepare(
        self, about: Mapping[str, Any], units: Iterable[Unit], shard: Shard = WHOLE
    ) -> None:
        """Take over a plan: new units wait, known ones stay what they are, others are set aside."""
        seen: set[str] = set()

        def held() -> Iterator[tuple[int, Unit]]:
            for position, unit in enumerate(units):
                if unit.key in seen:
                    raise _twice(unit)
                seen.add(unit.key)
                if shard.holds(position):
                    yield position, unit

        with _told(self.folder), self._transaction():
            self._connection.execute("UPDATE units SET position = NULL")
            self._list(held())
            self._set("about", about)
            self._set("total", len(seen))

    def prepare_like(self, parts: Iterable[Store]) -> None:
        """Take over the plan that other stores hold parts of, besides the part held here."""
        with _told(self.folder), self._transaction():
            for part in parts:
                self._list(part.listed())
                self._set("about", part.about())
                self._set("total", part._fact("total"))

    def listed(self) -> Iterator[tuple[int, Unit]]:
        """The units of the plan that are held here, with their positions in it."""
        query = "SELECT position, key, labels, work FROM units WHERE position >= 0"
        for position, key, labels, work in self._connection.execute(query):
            yield position, Unit(key, json.loads(labels), json.loads(work))

    def _list(self, units: Iterable[tuple[int, Unit]]) -> None:
        self._connection.executemany(
            "INSERT INTO units (key, position, labels, work) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (key) DO UPDATE SET position = excluded.position, "
            "labels = excluded.labels, work = excluded.work",
            (
                (unit.key, position, canonical(unit.labels), canonical(unit.work))
                for position, unit in units
            ),
        )

    def about(self) -> dict[str, Any]:
        """What was kept with the plan."""
        found: dict[str, Any] = self._fact("about") or {}
        return found

    def counts(self) -> dict[str, int]:
        """How many units are waiting, done, failed, and held by other shards."""
        query = "SELECT state, count(*) FROM units WHERE position >= 0 GROUP BY state"
        found = {"waiting": 0, "done": 0, "failed": 0} | dict(self._rows(query))
        return found | {"elsewhere": (self._fact("total") or 0) - sum(found.values())}

    def pending(self, attempts: int) -> Iterator[Unit]:
        """The units that are to be done, in order: new ones, and failed ones with attempts left.

        Each is given once; what becomes of it meanwhile is not looked at.
        """
        query = (
            f"SELECT key, labels, work, position FROM units WHERE position > ? AND {_TO_DO} "
            "ORDER BY position LIMIT ?"
        )
        page = self._rows(query, (-1, attempts, _PAGE))
        while page:
            for key, labels, work, _ in page:
                yield Unit(key, json.loads(labels), json.loads(work))
            page = self._rows(query, (page[-1][-1], attempts, _PAGE))

    def is_pending(self, key: str, attempts: int) -> bool:
        """Whether this unit is to be done."""
        return bool(self._rows(f"SELECT 1 FROM units WHERE key = ? AND {_TO_DO}", (key, attempts)))

    def count_pending(self, attempts: int) -> dict[str, int]:
        """How many units are to be done, for each set of labels (as JSON)."""
        query = (
            f"SELECT labels, count(*) FROM units WHERE position >= 0 AND {_TO_DO} GROUP BY labels"
        )
        return dict(self._rows(query, (attempts,)))

    # ---- results -----------------------------------------------------------------------------

    def keep(self, outcome: Outcome) -> None:
        """Write what came of a unit: its numbers and their seal, or its error.

        The attempt counts unless the unit's worker was taken from it.
        """
        with _told(self.folder):
            if outcome.result is None:
                error, attempts = outcome.error or outcome.lost, 0 if outcome.lost else 1
                record = Record(outcome.unit.key, "failed", attempts, error, outcome.seconds)
                self._put(record, {})
            else:
                rows = tuple(outcome.result.rows)
                record = Record(
                    outcome.unit.key, "done", 1, "", outcome.seconds, seal(rows), rows=rows
                )
                self._put(record, outcome.result.maps)

    def adopt(self, record: Record, maps: Mapping[str, Array]) -> bool:
        """Take over a unit that another store has tried; whether that was news here."""
        with _told(self.folder):
            query = "SELECT 1 FROM units WHERE key = ? AND state NOT IN ('done', ?)"
            news = bool(self._rows(query, (record.key, record.state)))
            if news:
                self._put(record, maps)
        return news

    def _put(self, record: Record, maps: Mapping[str, Array]) -> None:
        """The file first, then all that refers to it at once; nothing over a unit that is done."""
        where, digest = write_maps(self.folder / "maps", record.key, maps) if maps else ("", "")
        with self._transaction() as connection:
            changed = connection.execute(
                "UPDATE units SET state = ?, attempts = attempts + ?, error = ?, seconds = ?, "
                "seal = ?, maps = ?, maps_digest = ? WHERE key = ? AND state != 'done'",
                (
                    *(record.state, record.attempts, record.error, record.seconds),
                    *(record.seal, where, digest, record.key),
                ),
            )
            if changed.rowcount:
                connection.executemany(
                    "INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (
                        (
                            *(record.key, number, row.sample, row.measure, row.value),
                            *(row.skipped, canonical(row.detail)),
                        )
                        for number, row in enumerate(record.rows)
                    ),
                )

    def records(self, state: str = "done") -> Iterator[Record]:
        """The units of the plan in this state, in order, with rows that are what was written."""
        names = ", ".join(_COLUMNS)
        query = f"SELECT {names} FROM units WHERE position >= 0 AND state = ? ORDER BY position"
        with _told(self.folder):
            for values in self._connection.execute(query, (state,)):
                yield self._record(dict(zip(_COLUMNS, values, strict=True)))

    def seal_of(self, key: str) -> str:
        """The seal of a unit that is done here; empty if it is not."""
        found = self._rows("SELECT seal FROM units WHERE key = ?", (key,))
        return str(found[0][0]) if found else ""

    def maps(self, record: Record) -> dict[str, Array]:
        """The arrays of a unit."""
        if not record.maps:
            return {}
        try:
            return read_maps(self.folder / "maps", record.maps, record.maps_digest)
        except (OSError, ValueError) as error:
            raise self._damaged(f"{record.maps}: {error}") from None

    # ---- inside ------------------------------------------------------------------------------

    def _record(self, values: dict[str, Any]) -> Record:
        query = (
            "SELECT sample, measure, value, skipped, detail FROM rows WHERE unit = ? "
            "ORDER BY number"
        )
        rows = tuple(
            Row(sample, measure, value, skipped, json.loads(detail))
            for sample, measure, value, skipped, detail in self._rows(query, (values["key"],))
        )
        if values["state"] == "done" and seal(rows) != values["seal"]:
            raise self._damaged(f"unit {values['key'][:12]} is not what was written")
        labels, work = json.loads(values.pop("labels")), json.loads(values.pop("work"))
        return Record(labels=labels, work=work, rows=rows, **values)

    def _damaged(self, detail: str) -> StoreError:
        return StoreError(
            explain_error(
                "this study is damaged",
                got=f"{self.folder} ({detail})",
                expected="the numbers that were written",
                instead="run it again in a new folder, or restore this one from a copy",
            )
        )

    def _check_format(self) -> None:
        found = self._fact("format")
        if found != FORMAT:
            raise self._damaged(f"format {found!r}, where this version reads {FORMAT}")

    def _fact(self, name: str) -> Any:
        found = self._rows("SELECT value FROM facts WHERE name = ?", (name,))
        return json.loads(found[0][0]) if found else None

    def _rows(self, query: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        with _told(self.folder):
            return self._connection.execute(query, values).fetchall()

    def _set(self, name: str, value: Any) -> None:
        self._connection.execute("REPLACE INTO facts VALUES (?, ?)", (name, canonical(value)))

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """All of it or nothing."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield self._connection
            self._connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):  # a full disk has rolled it back by itself
                self._connection.execute("ROLLBACK")
            raise


_COLUMNS = [column.name for column in fields(Record) if column.name != "rows"]


def _no_study(folder: Path) -> StoreError:
    shards = any(folder.glob(f"shard-*-of-*/{NAME}"))
    return StoreError(
        explain_error(
            "this folder holds no study" + (", only parts of one" if shards else ""),
            got=str(folder),
            expected=f"a folder with {NAME}, which `pellucid bench run` writes",
            instead=f"pellucid bench merge {folder}"
            if shards
            else f"pellucid bench run smoke-digits --out {folder}",
        )
    )


def _twice(unit: Unit) -> ArgumentError:
    return ArgumentError(
        explain_error(
            "two units of this plan are the same work under two names",
            got=", ".join(f"{name} {value}" for name, value in unit.labels.items()),
            expected="models, data and methods that differ in more than their names",
            instead="leave one of the two entries out",
        )
    )


def _connected(path: Path, mode: str) -> sqlite3.Connection:
    address = f"{path.resolve().as_uri()}?mode={mode}"
    return sqlite3.connect(address, uri=True, isolation_level=None)


@contextmanager
def _told(folder: Path) -> Iterator[None]:
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
