"""Large arrays of a unit: one safetensors file, written whole or not at all."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from pellucid.bench.units import Array


def write_maps(folder: Path, key: str, maps: Mapping[str, Array]) -> tuple[str, str]:
    """Write the arrays of a unit; where, below the folder, and the SHA-256 of the file.

    The file is on the disk, under its name, before this returns: a row may refer to it.
    """
    from safetensors.numpy import save

    content = save({name: np.ascontiguousarray(array) for name, array in maps.items()})
    goal = folder / key[:2] / f"{key}.safetensors"
    goal.parent.mkdir(parents=True, exist_ok=True)
    partial = goal.with_suffix(f".{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, goal)
    finally:
        partial.unlink(missing_ok=True)
    _flush_names(goal.parent)
    return goal.relative_to(folder).as_posix(), hashlib.sha256(content).hexdigest()


def read_maps(folder: Path, name: str, digest: str) -> dict[str, Array]:
    """Read the arrays of a unit; a file that is not the one written is a ValueError."""
    from safetensors.numpy import load

    content = (folder / name).read_bytes()
    if hashlib.sha256(content).hexdigest() != digest:
        raise ValueError("its contents are not those that were written")
    found: dict[str, Array] = load(content)
    return found


def _flush_names(folder: Path) -> None:
    """Make a new name as durable as what it names, where folders can be opened."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
