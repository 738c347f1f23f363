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
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from pellucid._errors import ArgumentError, StoreError, explain_error
from pellucid.bench.database import NAME, Database, damaged, told
from pellucid.bench.lock import only_writer
from pellucid.bench.maps import read_maps, write_maps
from pellucid.bench.seal import seal
from pellucid.bench.shard import WHOLE, Shard
from pellucid.bench.units import Array, Outcome, Row, Unit, canonical

_PAGE = 512  # units in memory at a time
_TO_DO = "(state = 'waiting' OR state = 'failed' AND attempts < ?)"


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

    def __init__(self, folder: Path, database: Database) -> None:
        self.folder = folder
        self._database = database

    @classmethod
    @contextmanager
    def writing(cls, folder: Path) -> Iterator[Store]:
        """Make the folder, or continue in it; nobody else writes to it meanwhile."""
        with ExitStack() as held:
            with told(folder):
                folder.mkdir(parents=True, exist_ok=True)
                held.enter_context(only_writer(folder))
            yield cls(folder, held.enter_context(Database.writing(folder)))

    @classmethod
    @contextmanager
    def reading(cls, folder: Path) -> Iterator[Store]:
        """The results so far, also while a run writes to them."""
        if not (folder / NAME).is_file():
            raise _no_study(folder)
        with Database.reading(folder) as database:
            yield cls(folder, database)

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

        with self._database.transaction() as connection:
            connection.execute("UPDATE units SET position = NULL")
            self._list(connection, held())
            self._database.set_fact("about", about)
            self._database.set_fact("total", len(seen))

    def prepare_like(self, parts: Iterable[Store]) -> None:
        """Take over the plan that other stores hold parts of, besides the part held here."""
        with self._database.transaction() as connection:
            for part in parts:
                self._list(connection, part.listed())
                for name in ("about", "total"):
                    self._database.set_fact(name, part._database.fact(name))

    def listed(self) -> Iterator[tuple[int, Unit]]:
        """The units of the plan that are held here, with their positions in it."""
        query = "SELECT position, key, labels, work FROM units WHERE position >= 0"
        for position, key, labels, work in self._database.each(query):
            yield position, Unit(key, json.loads(labels), json.loads(work))

    def _list(self, connection: sqlite3.Connection, units: Iterable[tuple[int, Unit]]) -> None:
        connection.executemany(
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
        found: dict[str, Any] = self._database.fact("about") or {}
        return found

    def counts(self) -> dict[str, int]:
        """How many units are waiting, done, failed, and held by other shards."""
        query = "SELECT state, count(*) FROM units WHERE position >= 0 GROUP BY state"
        found = {"waiting": 0, "done": 0, "failed": 0} | dict(self._database.rows(query))
        return found | {"elsewhere": (self._database.fact("total") or 0) - sum(found.values())}

    def pending(self, attempts: int) -> Iterator[Unit]:
        """The units that are to be done, in order: new ones, and failed ones with attempts left.

        Each is given once; what becomes of it meanwhile is not looked at.
        """
        query = (
            f"SELECT key, labels, work, position FROM units WHERE position > ? AND {_TO_DO} "
            "ORDER BY position LIMIT ?"
        )
        page = self._database.rows(query, (-1, attempts, _PAGE))
        while page:
            for key, labels, work, _ in page:
                yield Unit(key, json.loads(labels), json.loads(work))
            page = self._database.rows(query, (page[-1][-1], attempts, _PAGE))

    def is_pending(self, key: str, attempts: int) -> bool:
        """Whether this unit is to be done."""
        return bool(
            self._database.rows(f"SELECT 1 FROM units WHERE key = ? AND {_TO_DO}", (key, attempts))
        )

    def count_pending(self, attempts: int) -> dict[str, int]:
        """How many units are to be done, for each set of labels (as JSON)."""
        query = (
            f"SELECT labels, count(*) FROM units WHERE position >= 0 AND {_TO_DO} GROUP BY labels"
        )
        return dict(self._database.rows(query, (attempts,)))

    # ---- results -----------------------------------------------------------------------------

    def keep(self, outcome: Outcome) -> None:
        """Write what came of a unit: its numbers and their seal, or its error.

        The attempt counts unless the unit's worker was taken from it.
        """
        key, seconds = outcome.unit.key, outcome.seconds
        if outcome.result is None:
            error, attempts = outcome.error or outcome.lost, 0 if outcome.lost else 1
            self._put(Record(key, "failed", attempts, error, seconds), {})
        else:
            rows = tuple(outcome.result.rows)
            record = Record(key, "done", 1, "", seconds, seal(rows), rows=rows)
            self._put(record, outcome.result.maps)

    def adopt(self, record: Record, maps: Mapping[str, Array]) -> bool:
        """Take over a unit that another store has tried; whether that was news here."""
        query = "SELECT 1 FROM units WHERE key = ? AND state NOT IN ('done', ?)"
        news = bool(self._database.rows(query, (record.key, record.state)))
        if news:
            self._put(record, maps)
        return news

    def _put(self, record: Record, maps: Mapping[str, Array]) -> None:
        """The file first, then all that refers to it at once; nothing over a unit that is done."""
        where, digest = "", ""
        if maps:
            with told(self.folder):
                where, digest = write_maps(self.folder / "maps", record.key, maps)
        with self._database.transaction() as connection:
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
        for values in self._database.each(query, (state,)):
            yield self._record(dict(zip(_COLUMNS, values, strict=True)))

    def seal_of(self, key: str) -> str:
        """The seal of a unit that is done here; empty if it is not."""
        found = self._database.rows("SELECT seal FROM units WHERE key = ?", (key,))
        return str(found[0][0]) if found else ""

    def maps(self, record: Record) -> dict[str, Array]:
        """The arrays of a unit."""
        if not record.maps:
            return {}
        try:
            return read_maps(self.folder / "maps", record.maps, record.maps_digest)
        except (OSError, ValueError) as error:
            raise damaged(self.folder, f"{record.maps}: {error}") from None

    # ---- inside ------------------------------------------------------------------------------

    def _record(self, values: dict[str, Any]) -> Record:
        query = (
            "SELECT sample, measure, value, skipped, detail FROM rows WHERE unit = ? "
            "ORDER BY number"
        )
        found = self._database.rows(query, (values["key"],))
        try:
            rows = tuple(
                Row(sample, measure, value, skipped, json.loads(detail))
                for sample, measure, value, skipped, detail in found
            )
            labels, work = json.loads(values.pop("labels")), json.loads(values.pop("work"))
        except ValueError as error:
            raise damaged(self.folder, f"unit {values['key'][:12]}: {error}") from None
        if values["state"] == "done" and seal(rows) != values["seal"]:
            raise damaged(self.folder, f"unit {values['key'][:12]} is not what was written")
        return Record(labels=labels, work=work, rows=rows, **values)


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
