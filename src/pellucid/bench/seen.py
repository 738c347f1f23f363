"""What a report shows besides numbers: mean curves, and the first samples under their heat."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pellucid.bench.store import Record, Store
from pellucid.bench.table import Group
from pellucid.bench.units import Array

GRID = np.linspace(0.0, 1.0, 101)  # curves of any length, by the share that is replaced


@dataclass(frozen=True)
class Heat:
    """One method's scores of one sample, on its picture or its words."""

    signed: bool
    view: Array | None = None  # h w c
    heat: Array | None = None  # rows columns
    words: tuple[tuple[str, float], ...] = ()


@dataclass
class Seen:
    """Curves by group and measure, and heat by group and number of the sample."""

    curves: dict[tuple[Group, str], Array] = field(default_factory=dict)  # means, on the grid
    heats: dict[Group, dict[int, Heat]] = field(default_factory=lambda: defaultdict(dict))
    names: dict[tuple[Group, int], str] = field(default_factory=dict)  # of samples, by rivals


def seen_in(store: Store) -> Seen:
    """Read the arrays of all units, one unit at a time."""
    columns = store.about()["columns"]
    found = Seen()
    sums: dict[tuple[Group, str], Array] = defaultdict(lambda: np.zeros(len(GRID)))
    times: dict[tuple[Group, str], int] = defaultdict(int)
    for record in store.records():
        group = _group(record, columns)
        maps = store.maps(record)
        for name, array in maps.items():
            kind, _, rest = name.partition("/")
            if kind == "curve":
                measure = rest.rpartition("/")[0]
                x = np.linspace(0.0, 1.0, len(array))
                sums[group, measure] += np.interp(GRID, x, array)
                times[group, measure] += 1
            elif kind == "signed":
                number = int(rest)
                found.heats[group][number] = _heat(maps, rest)
                found.names.setdefault((group[:-1], number), _name(record, number))
    found.curves = {key: total / times[key] for key, total in sums.items()}
    return found


def _group(record: Record, columns: list[str]) -> Group:
    return tuple(record.labels[name] for name in columns)


def _name(record: Record, number: int) -> str:
    """The id of a sample, and the class that was read."""
    classes = {row.sample: row.detail["class"] for row in record.rows}  # in the samples' order
    return "{} ({})".format(*list(classes.items())[number - record.work["start"]])


def _heat(maps: dict[str, Array], number: str) -> Heat:
    signed = bool(maps[f"signed/{number}"][0])
    if f"words/{number}" in maps:
        words: list[list[Any]] = json.loads(maps[f"words/{number}"].tobytes())
        return Heat(signed, words=tuple((str(text), float(score)) for text, score in words))
    return Heat(signed, maps[f"view/{number}"], maps[f"heat/{number}"])
