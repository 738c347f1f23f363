"""Stored runs of many methods: what was measured, and what it tells apart.

A file of `docs/results` holds ``methods -> section -> metric -> {mean, se, n}``.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pellucid.metrics import METRICS

RESULTS = Path(__file__).parent.parent / "results"
# What decides, of each stored run, where it has been measured: section, metric.
JUDGES = {
    "reviews": ("all", "comprehensiveness"),
    "digits": ("all", "insertion_minus_deletion"),
    "pets": ("predicted", "aopc"),
}
PASSES = ("all", "passes")


@dataclass(frozen=True)
class Score:
    """A stored mean with its standard error."""

    mean: float
    se: float
    n: int

    def apart(self, other: Score) -> float:
        """How many standard errors of the difference two means are apart."""
        difference, error = self.mean - other.mean, math.hypot(self.se, other.se)
        if error:
            return difference / error
        return math.copysign(math.inf, difference) if difference else 0.0


@dataclass(frozen=True)
class Run:
    """A stored run."""

    name: str
    about: str
    provenance: dict[str, Any]
    methods: dict[str, dict[tuple[str, str], Score]]

    @property
    def judge(self) -> tuple[str, str]:
        """What decides which method is the better one."""
        return JUDGES[self.name]

    def better(self, metric: str, a: Score, b: Score) -> float:
        """By how many standard errors the first is better."""
        return a.apart(b) if METRICS[metric].better == "higher" else b.apart(a)

    def best(self, key: tuple[str, str], names: list[str]) -> list[str]:
        """The best of these methods, and all that two standard errors do not tell from it."""
        known = [name for name in names if key in self.methods[name]]
        sign = 1 if METRICS[key[1]].better == "higher" else -1
        known.sort(key=lambda name: -sign * self.methods[name][key].mean)
        if not known:
            return []
        top = self.methods[known[0]][key]
        return [
            name
            for name in known
            if name == known[0] or self.better(key[1], top, self.methods[name][key]) < 2
        ]


def stored_runs(folder: Path = RESULTS) -> list[Run]:
    """All runs in a folder that hold what they are judged by."""
    found = [_read(path) for path in sorted(folder.glob("*.json")) if path.stem in JUDGES]
    return [run for run in found if any(run.judge in one for one in run.methods.values())]


def _read(path: Path) -> Run:
    stored = json.loads(path.read_text(encoding="utf-8"))
    methods = {
        name: {
            (section, metric): Score(one["mean"], one.get("se") or 0.0, one["n"])
            for section, scores in sections.items()
            if isinstance(scores, dict)
            for metric, one in scores.items()
            if one.get("mean") is not None
        }
        for name, sections in stored["methods"].items()
    }
    return Run(path.stem, stored.get("about", path.stem), stored["provenance"], methods)
