"""Which method: tables from declarations and from the stored runs of `docs/results/*.json`.

A stored run holds ``methods -> section -> metric -> {mean, se, n}``; what is not stored is not
shown.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pellucid._needs import Needs
from pellucid._spec import Method
from pellucid.methods import METHODS
from pellucid.metrics import METRICS

RESULTS = Path(__file__).parent.parent / "results"
BUDGETS = (1, 2, 25, 250, math.inf)
# What decides, of each stored run, where it has been measured: section, metric.
JUDGES = {
    "reviews": ("all", "comprehensiveness"),
    "digits": ("all", "insertion_minus_deletion"),
    "pets": ("predicted", "aopc"),
}
SHOWN = 6  # columns of a table


@dataclass(frozen=True)
class Score:
    """A stored mean with its standard error."""

    mean: float
    se: float
    n: int

    def apart(self, other: Score) -> float:
        """How many standard errors of the difference two means are apart."""
        error = math.hypot(self.se, other.se)
        return (self.mean - other.mean) / error if error else math.inf


@dataclass(frozen=True)
class Run:
    """A stored run."""

    name: str
    about: str
    provenance: dict[str, Any]
    methods: dict[str, dict[tuple[str, str], Score]]

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
    return [run for run in found if any(JUDGES[run.name] in one for one in run.methods.values())]


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


def tables(folder: Path = RESULTS) -> dict[str, str]:
    """What stands in the places of the page that are marked."""
    runs = stored_runs(folder)
    return {"have": have(), "budget": budget(runs), "runs": "\n\n".join(map(table, runs))}


def have() -> str:
    """Methods by what they ask of a model."""
    found = defaultdict(list)
    for name, spec in METHODS.items():
        found[asked(spec)].append(f"[`{name}`](methods/{name}.md)")
    rows = [f"| {what} | {', '.join(found[what])} |" for what in found]
    return "\n".join(["| you have | what runs |", "|---|---|", *rows])


def asked(spec: Method) -> str:
    """What a model must be for a method, in words."""
    if spec.needs is Needs.NOTHING:
        return "only predictions: an API, a function"
    if spec.needs is Needs.GRADIENTS:
        return "a torch model of any architecture, with gradients"
    if Needs.RULES in spec.needs:
        return "a model whose operations all have a rule of relevance"
    if Needs.ATTENTION in spec.needs and spec.class_specific:
        return "a Transformer, with gradients of its attention"
    if Needs.ATTENTION in spec.needs:
        return "a Transformer, and one forward pass"
    return "a model whose tokens can be reached, or left out, inside"


def budget(runs: list[Run]) -> str:
    """The best method for every number of passes that can be paid, in every run."""
    runs = [run for run in runs if any(("all", "passes") in one for one in run.methods.values())]
    if not runs:
        return "No run is stored yet."
    head = [f"{run.about}, by `{JUDGES[run.name][1]}`" for run in runs]
    rows = []
    for most in BUDGETS:
        cells = []
        for run in runs:
            names = [
                name
                for name, scores in run.methods.items()
                if name in METHODS
                and name != "random"
                and ("all", "passes") in scores
                and scores["all", "passes"].mean <= most
            ]
            best = run.best(JUDGES[run.name], names)
            cells.append(", ".join(f"[`{name}`](methods/{name}.md)" for name in best) or "none")
        paid = "any number" if math.isinf(most) else f"at most {most}"
        rows.append(f"| {paid} | {' | '.join(cells)} |")
    return "\n".join([f"| passes | {' | '.join(head)} |", "|---" * (len(runs) + 1) + "|", *rows])


def table(run: Run) -> str:
    """All methods of a run, the best by its judge first."""
    judge = JUDGES[run.name]
    counted = [key for key in _keys(run) if key[1] in METRICS]
    columns = [judge, *(key for key in counted if key != judge)][:SHOWN]
    names = [name for name in run.methods if judge in run.methods[name]]
    sign = 1 if METRICS[judge[1]].better == "higher" else -1
    names.sort(key=lambda name: -sign * run.methods[name][judge].mean)
    best = {key: set(run.best(key, names)) for key in columns}
    rows = [
        f"| {_linked(name)} | {' | '.join(_cell(run, name, key, best[key]) for key in columns)} "
        f"| {_passes(run, name)} |"
        for name in names
    ]
    where = ", ".join(f"{key} {value}" for key, value in run.provenance.items())
    return "\n".join(
        [
            f"### {run.about[:1].upper()}{run.about[1:]}",
            "",
            f"| method | {' | '.join(map(_head, columns))} | passes |",
            "|---" * (len(columns) + 2) + "|",
            *rows,
            "",
            f"<small>{where}</small>",
        ]
    )


def _keys(run: Run) -> list[tuple[str, str]]:
    """The numbers that most methods have, in the order in which they were stored."""
    found = dict.fromkeys(key for scores in run.methods.values() for key in scores)
    return [k for k in found if 2 * sum(k in s for s in run.methods.values()) > len(run.methods)]


def _linked(name: str) -> str:
    return f"[`{name}`](methods/{name}.md)" if name in METHODS else name


def _cell(run: Run, name: str, key: tuple[str, str], best: set[str]) -> str:
    found = run.methods[name].get(key)
    if found is None:
        return ""
    control = run.methods.get("random", {}).get(key)
    text = f"{found.mean:.3f}&nbsp;±&nbsp;{found.se:.3f}"
    if name in best:
        return f"**{text}**"
    if control is None or name == "random" or METRICS[key[1]].family != "faithfulness":
        return text
    return f"{text}&nbsp;†" if run.better(key[1], found, control) < 2 else text


def _passes(run: Run, name: str) -> str:
    found = run.methods[name].get(("all", "passes"))
    return "" if found is None else f"{found.mean:.0f}"


def _head(key: tuple[str, str]) -> str:
    """The name of a metric, which may be broken between its words, and its direction."""
    arrow = "↑" if METRICS[key[1]].better == "higher" else "↓"
    return f"<code>{key[1].replace('_', '_<wbr>')}</code>&nbsp;{arrow}"
