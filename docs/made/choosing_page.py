"""Which method: tables from declarations and from stored runs. What is not stored is not shown."""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path

from stored import PASSES, RESULTS, Run, stored_runs

from pellucid._needs import Needs
from pellucid._spec import Method
from pellucid.methods import METHODS
from pellucid.metrics import METRICS

BUDGETS = (1, 2, 25, 250, math.inf)
SHOWN = 6  # columns of a table


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
    counted = [run for run in runs if any(PASSES in scores for scores in run.methods.values())]
    if not counted:
        return "No run is stored yet."
    head = [f"{run.about}, by `{run.judge[1]}`" for run in counted]
    rows = []
    for most in BUDGETS:
        best = [run.best(run.judge, affordable(run, most)) for run in counted]
        cells = [", ".join(map(_linked, names)) or "none" for names in best]
        paid = "any number" if math.isinf(most) else f"at most {most}"
        rows.append(f"| {paid} | {' | '.join(cells)} |")
    return "\n".join([f"| passes | {' | '.join(head)} |", "|---" * (len(head) + 1) + "|", *rows])


def affordable(run: Run, most: float) -> list[str]:
    """The methods, but for the control, that take no more passes."""
    return [
        name
        for name, scores in run.methods.items()
        if name in METHODS and name != "random" and PASSES in scores
        if scores[PASSES].mean <= most
    ]


def table(run: Run) -> str:
    """All methods of a run, the best by its judge first."""
    judge = run.judge
    known = _keys(run)
    measured = [key for key in known if key[1] in METRICS and key != judge]
    columns = [judge, *measured[: SHOWN - 1], *(key for key in known if key == PASSES)]
    names = [name for name in run.methods if judge in run.methods[name]]
    sign = 1 if METRICS[judge[1]].better == "higher" else -1
    names.sort(key=lambda name: -sign * run.methods[name][judge].mean)
    rows = [
        f"| {_linked(name)} | {' | '.join(_cell(run, name, key, names) for key in columns)} |"
        for name in names
    ]
    where = ", ".join(f"{key} {value}" for key, value in run.provenance.items())
    return "\n".join(
        [
            f"### {run.about[:1].upper()}{run.about[1:]}",
            "",
            f"| method | {' | '.join(map(_head, columns))} |",
            "|---" * (len(columns) + 1) + "|",
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


def _cell(run: Run, name: str, key: tuple[str, str], names: list[str]) -> str:
    """A number of a method: bold among the best of these, marked where chance does as well."""
    found = run.methods[name].get(key)
    if found is None:
        return ""
    if key == PASSES:
        return f"{found.mean:.0f}"
    control = run.methods.get("random", {}).get(key)
    text = f"{found.mean:.3f}&nbsp;±&nbsp;{found.se:.3f}"
    if name in run.best(key, names):
        return f"**{text}**"
    if control is None or name == "random" or METRICS[key[1]].family != "faithfulness":
        return text
    return f"{text}&nbsp;†" if run.better(key[1], found, control) < 2 else text


def _head(key: tuple[str, str]) -> str:
    """The name of a metric, which may be broken between its words, and its direction."""
    if key == PASSES:
        return "passes"
    arrow = "↑" if METRICS[key[1]].better == "higher" else "↓"
    return f"<code>{key[1].replace('_', '_<wbr>')}</code>&nbsp;{arrow}"
