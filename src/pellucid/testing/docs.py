"""What documents show of the code, written from it: ``python -m pellucid.testing.docs``.

The two tables of the README, and the part of the diff in CONTRIBUTING that touches our own tables.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Callable
from difflib import unified_diff
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


EXAMPLE, EXAMPLE_SOURCE = "gradient_norm", "li2016visualizing"
_SOURCE_LINES = [
    f'    "{EXAMPLE_SOURCE}": "J. Li, X. Chen, E. Hovy, D. Jurafsky. Visualizing and "\n',
    '    "Understanding Neural Models in NLP. NAACL 2016. arXiv:1506.01066",\n',
]


def with_diff(text: str, root: Path) -> str:
    """CONTRIBUTING with its diff as it applies to the tables as they are; the new file stays.

    Where somebody has applied it, it stays as it is.
    """
    if EXAMPLE in METHODS:
        return text
    found = re.search(r"(```diff\n).*?(diff --git a/\S*/gradient_norm\.py )", text, re.DOTALL)
    assert found is not None, "CONTRIBUTING has no diff of a new method"
    table, references = "src/pellucid/methods/__init__.py", "src/pellucid/_references.py"
    hunks = _diff(root, references, _with_source) + _diff(root, table, _with_method)
    return f"{text[: found.start()]}{found[1]}{hunks}{found[2]}{text[found.end() :]}"


def _diff(root: Path, path: str, change: Callable[[list[str]], list[str]]) -> str:
    """One file's part of a diff as git writes it."""
    before = (root / path).read_text(encoding="utf-8").splitlines(keepends=True)
    lines = unified_diff(before, change(before), f"a/{path}", f"b/{path}")
    return f"diff --git a/{path} b/{path}\n{''.join(lines)}"


def _with_source(lines: list[str]) -> list[str]:
    """The references with that of the example, in the order of their keys."""
    starts = [i for i, line in enumerate(lines) if re.match(r'    "\w+": ', line)]
    at = next((i for i in starts if lines[i] > _SOURCE_LINES[0]), lines.index("}\n"))
    return [*lines[:at], *_SOURCE_LINES, *lines[at:]]


def _with_method(lines: list[str]) -> list[str]:
    """The table with the example: its import in order, its line before the control."""
    line = f"from pellucid.methods.{EXAMPLE} import {EXAMPLE}\n"
    imports = [i for i, one in enumerate(lines) if one.startswith("from pellucid.methods.")]
    at = imports[0] + bisect([lines[i] for i in imports], line)
    changed = [*lines[:at], line, *lines[at:]]
    last = changed.index("        random,\n")
    return [*changed[:last], f"        {EXAMPLE},\n", *changed[last:]]


def _sources(spec: Method | Metric) -> str:
    """The first author, year and title of every source."""
    return "<br>".join(REFERENCES[key] for key in spec.cite) or "control"


if __name__ == "__main__":
    readme, contributing = Path("README.md"), Path("CONTRIBUTING.md")
    readme.write_text(with_tables(readme.read_text(encoding="utf-8")), encoding="utf-8")
    shown = with_diff(contributing.read_text(encoding="utf-8"), Path())
    contributing.write_text(shown, encoding="utf-8")
