"""One run writes to a folder at a time; the system lets go of the lock when the process ends."""

from __future__ import annotations

import os
import platform
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pellucid._errors import StoreError, explain_error


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Hold the folder, or say who does.

    The lock is the one that SQLite takes on a file, which exists on every system and does not
    outlive its process however that ends.
    """
    connection = sqlite3.connect(folder / "writer.lock", timeout=0, isolation_level=None)
    holder = folder / "writer.txt"
    try:
        try:
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
            raise _held(folder, holder) from None
        holder.write_text(f"process {os.getpid()} on {platform.node()}\n", encoding="utf-8")
        yield
    finally:
        connection.close()


def _held(folder: Path, holder: Path) -> StoreError:
    who = "another process"
    with suppress(OSError):
        who = holder.read_text(encoding="utf-8").strip() or who
    return StoreError(
        explain_error(
            "another run is writing to this folder",
            got=f"{folder}, held by {who}",
            expected="a folder that no other run writes to",
            instead="wait for it, or share the work between folders: --shard 1/2 and --shard 2/2",
        )
    )
