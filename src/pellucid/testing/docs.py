"""The tables of the README, written from the code: ``python -m pellucid.testing.docs``."""

from __future__ import annotations

import re
from pathlib import Path

from pellucid._references import REFERENCES
from pellucid._spec import Method, Metric
from pellucid.methods import METHODS
from pellucid.metrics import METRICS


def methods_table() -> str:
    """One row a method: what it does, whether its scores have a sign, and its source."""
    rows = [
        f"| `{spec.name}` | {spec.summary} | {'signed' if spec.signed else 'unsigned'} "
        f"| {_sources(spec)} |"
        for spec in METHODS.values()
    ]
    return "\n".join(["| method | what it does | scores | source |", "|---|---|---|---|", *rows])


def metrics_table() -> str:
    """One row a metric: what it measures, in which direction, and its source."""
    rows = [
        f"| `{spec.name}` | {spec.summary} | {spec.better} is better | {_sources(spec)} |"
        for spec in METRICS.values()
    ]
    head = ["| metric | what it measures | direction | source |", "|---|---|---|---|"]
    return "\n".join([*head, *rows])


def with_tables(text: str) -> str:
    """The README with its two tables as the code has them."""
    for name, table in (("methods", methods_table()), ("metrics", metrics_table())):
        between = re.compile(
            rf"(<!-- {name}: begin[^\n]*-->\n).*?(<!-- {name}: end -->)", re.DOTALL
        )
        found = between.search(text)
        assert found is not None, f"the README has no place for the table of {name}"
        text = f"{text[: found.start()]}{found[1]}{table}\n{found[2]}{text[found.end() :]}"
    return text


def _sources(spec: Method | Metric) -> str:
    """The first author, year and title of every source."""
    return "<br>".join(REFERENCES[key] for key in spec.cite) or "control"


if __name__ == "__main__":
    readme = Path("README.md")
    readme.write_text(with_tables(readme.read_text(encoding="utf-8")), encoding="utf-8")
