"""Answers on disk, so that none is paid for twice: not by a later run, nor by two at once.

One SQLite file in WAL mode. Who is about to ask writes a claim first; others wait for that answer.
The claim of a process that is gone is taken over. A row holds the hash of the question, what was
kept of the answer, and a hash over both.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sqlite3
import uuid
import weakref
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pellucid._errors import ArgumentError, StoreError, explain_error
from pellucid.adapters.chat_answer import Reply
from pellucid.adapters.clock import Clock

_MARK = 0x70656C6C  # "pell", by which SQLite knows whose file it is
_PROCESS = uuid.uuid4().hex  # tells this process from an earlier one of the same number
_LEASE = 1800.0  # seconds after which a claim that was not renewed is nobody's
_TABLE = (
    "CREATE TABLE IF NOT EXISTS answers "
    "(key TEXT PRIMARY KEY, reply TEXT, digest TEXT, owner TEXT, until REAL)"
)


@dataclass(frozen=True)
class Found:
    """What the cache knows: an answer, or whether it is now for us to ask."""

    reply: Reply | None
    ours: bool = False
    damaged: bool = False  # an answer was there, and can no longer be read


class Cache:
    """One file of answers, shared by any number of threads and processes of one machine."""

    def __init__(self, path: str | Path, clock: Clock) -> None:
        self.path = Path(path).expanduser()
        self._clock = clock
        if self.path.is_dir() or not self.path.parent.is_dir():
            raise ArgumentError(
                explain_error(
                    "answers cannot be stored here",
                    got=f"cache={str(path)!r}",
                    expected="the name of a file in a folder that exists",
                    instead="cache='answers.sqlite'",
                )
            )
        with self._open() as file:
            self._prepare(file)
            self._stay_open()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        with self._open():
            self._stay_open()

    def claim(self, key: str) -> Found:
        """The answer if there is one; else the claim to it, if nobody else has that."""
        with self._open() as file:
            row = file.execute("SELECT reply, digest FROM answers WHERE key = ?", (key,)).fetchone()
            if row is not None and row[0] is not None and (reply := _read(key, *row)) is not None:
                return Found(reply)
            with self._writing(file):
                return self._claimed(file, key)

    def _claimed(self, file: sqlite3.Connection, key: str) -> Found:
        """Look again where nobody else can write, and leave a claim where nothing is."""
        select = "SELECT reply, digest, owner, until FROM answers WHERE key = ?"
        row = file.execute(select, (key,)).fetchone()
        damaged = False
        if row is not None:
            text, digest, owner, until = row
            reply = None if text is None else _read(key, text, digest)
            if reply is not None:
                return Found(reply)
            damaged = text is not None
            if not damaged and _alive(owner) and until > self._clock.now():
                return Found(None)
        self._put(file, key, owner=_owner(), until=self._clock.now() + _LEASE)
        return Found(None, ours=True, damaged=damaged)

    def renew(self, key: str) -> None:
        """Hold a claim of ours for longer."""
        with self._open() as file, self._writing(file):
            self._put(file, key, owner=_owner(), until=self._clock.now() + _LEASE)

    def write(self, key: str, reply: Reply) -> None:
        """Store an answer; it is on the disk when this returns."""
        text = reply.to_json()
        with self._open() as file:
            file.execute("PRAGMA synchronous = FULL")  # unlike a claim, which may be lost
            with self._writing(file):
                self._put(file, key, reply=text, digest=_digest(key, text))

    def release(self, key: str) -> None:
        """Give a claim of ours up; an answer stays."""
        with self._open() as file, self._writing(file):
            file.execute("DELETE FROM answers WHERE key = ? AND owner = ?", (key, _owner()))

    def _put(
        self,
        file: sqlite3.Connection,
        key: str,
        reply: str | None = None,
        digest: str | None = None,
        owner: str | None = None,
        until: float | None = None,
    ) -> None:
        row = (key, reply, digest, owner, until)
        file.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?)", row)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """A connection of its own for each use, so that threads and forks share none."""
        try:
            connection = sqlite3.connect(self.path, timeout=60, isolation_level=None)
            with closing(connection) as file:
                file.execute("PRAGMA synchronous = NORMAL")
                yield file
        except sqlite3.Error as error:
            raise StoreError(
                explain_error(
                    f"the answers in {self.path} cannot be used: {error}",
                    got="a file that SQLite cannot read or write",
                    expected="a file that pellucid.chat(cache=) has written, and may write",
                    instead=f"move {self.path.name} away, or cache='another.sqlite'",
                )
            ) from error

    def _stay_open(self) -> None:
        """Hold one more connection: whenever the last one closes, SQLite rewrites the file."""
        idle = sqlite3.connect(self.path, check_same_thread=False)
        idle.execute("SELECT count(*) FROM answers").fetchone()
        weakref.finalize(self, _close, idle, os.getpid())

    @contextmanager
    def _writing(self, file: sqlite3.Connection) -> Iterator[None]:
        """A transaction that waits for other writers first, and is undone by an error."""
        file.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            file.execute("ROLLBACK")
            raise
        file.execute("COMMIT")

    def _prepare(self, file: sqlite3.Connection) -> None:
        """Make the table in a new file; leave a file that is another program's as it is."""
        with self._writing(file):
            (mark,) = file.execute("PRAGMA application_id").fetchone()
            (tables,) = file.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if tables and mark != _MARK:
                raise StoreError(
                    explain_error(
                        f"{self.path} belongs to another program",
                        got="an SQLite file with other tables",
                        expected="a new file, or one that pellucid.chat has written",
                        instead="cache='answers.sqlite'",
                    )
                )
            file.execute(f"PRAGMA application_id = {_MARK}")
            file.execute(_TABLE)
        file.execute("PRAGMA journal_mode = WAL")


def _close(connection: sqlite3.Connection, process: int) -> None:
    """Close a connection in the process that opened it; a fork of that must not."""
    if os.getpid() == process:
        connection.close()


def _digest(key: str, reply: str) -> str:
    return hashlib.sha256(f"{key}\n{reply}".encode()).hexdigest()


def _read(key: str, text: object, digest: object) -> Reply | None:
    """The stored answer, or nothing where it is not what was written."""
    if not isinstance(text, str) or digest != _digest(key, text):
        return None
    return Reply.from_json(text)


def _owner() -> str:
    return f"{platform.node()} {os.getpid()} {_PROCESS}"


def _alive(owner: str) -> bool:
    """Whether the process that left a claim may still be asking."""
    host, number, process = owner.rsplit(" ", 2)
    if host != platform.node() or os.name != "posix":
        return True  # which cannot be found out; its lease will end
    if int(number) == os.getpid():
        return process == _PROCESS
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
