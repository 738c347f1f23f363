"""A table of scores: a row a method, a column a metric, and under it what the numbers mean."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text as Line

from pellucid._configured import Configured
from pellucid._spec import Metric
from pellucid._table import Row, Table
from pellucid.viz import in_notebook
from pellucid.viz.html import embedded_table, whole
from pellucid.viz.markup import Markup, element, visible
from pellucid.viz.wording import number

_ARROWS = {"higher": "↑", "lower": "↓"}
_MANY_TIES = 0.5  # of the scores; beyond it the tie policy decides more of the order than they do


def show_table(table: Table, console: Console | None = None) -> None:
    """Print it, or display it in a notebook."""
    if console is None and in_notebook():
        from IPython.display import HTML, display  # type: ignore[import-not-found,unused-ignore]

        display(HTML(fragment(table)))
        return
    console = console or Console(highlight=False)
    grid = Grid(title=visible(_title(table)), title_justify="left")
    for place, name in enumerate(_header(table)):
        grid.add_column(Line(visible(name)), justify="right" if place else "left", overflow="fold")
    for cells in _body(table):
        grid.add_row(*(Line(visible(cell)) for cell in cells))
    console.print(grid)
    for note in notes(table):
        console.print(Line(visible(note), style="dim"))


def markdown(table: Table) -> str:
    """The table and its notes, as Markdown."""
    header, body = _header(table), _body(table)
    rule = ["---", *["---:"] * (len(header) - 1)]
    lines = [_markdown_row(cells) for cells in (header, rule, *body)]
    remarks = [f"- {_plain(note)}" for note in notes(table)]
    return "\n".join([f"{_plain(_title(table))}:", "", *lines, "", *remarks]) + "\n"


def page(table: Table) -> str:
    """A whole page with the table."""
    head = element("header", element("h1", _title(table)), class_="page-head")
    return whole(_title(table), element("div", head, element("main", _content(table))))


def fragment(table: Table) -> str:
    """The table for a place inside another page."""
    return embedded_table(element("main", element("h2", _title(table)), _content(table)))


def notes(table: Table) -> list[str]:
    """What the numbers are, how they were made, and what they leave out."""
    return [
        "Mean ± standard error over samples. The class that is explained and read is "
        f"{table.target}. Seed {table.seed}; {table.evaluations:,} forward passes in all; "
        f"pellucid {table.versions.get('pellucid', '')}, weights {table.weights[:12]}.",
        *(_definition(metric) for metric in table.metrics),
        *_skips(table),
        *_ties(table),
    ]


# ---- the parts -----------------------------------------------------------------------------------


def _title(table: Table) -> str:
    count = len(table.samples)
    return f"{count} sample{'' if count == 1 else 's'} of {table.model}"


def _header(table: Table) -> list[str]:
    return ["method", *(f"{m.label} {_ARROWS[m.spec.better]}" for m in table.metrics)]


def _body(table: Table) -> list[list[str]]:
    count = len(table.samples)
    return [
        [method.label, *(_cell(table.row(method.label, by.label), count) for by in table.metrics)]
        for method in table.methods
    ]


def _cell(row: Row, samples: int) -> str:
    """The number with its error, and of how many samples where it is not of all."""
    if row.mean is None:
        return "none"
    error = "" if row.se is None else f" ± {row.se:.2g}"
    return number(row.mean) + error + ("" if row.n == samples else f" (n={row.n})")


def _definition(metric: Configured[Metric]) -> str:
    params = ", ".join(f"{name}={value!r}" for name, value in metric.params.items())
    pooled = (
        " One number of the counts of all samples together; its error is that of the jackknife."
        if metric.spec.pool is not None
        else ""
    )
    settings = f" [{params}]" if params else ""
    better = f"{metric.spec.better} is better"
    return f"{metric.label} ({better}): {metric.spec.summary}{pooled}{settings}"


def _skips(table: Table) -> list[str]:
    """How many samples have no number and why, for the metrics and methods for which it is so."""
    found: dict[tuple[str, int, tuple[str, ...]], list[str]] = defaultdict(list)
    for metric in table.metrics:
        methods: dict[tuple[str, int], list[str]] = defaultdict(list)
        for row in (table.row(one.label, metric.label) for one in table.methods):
            for reason, count in row.skipped.items():
                methods[reason, count].append(row.method)
        for (reason, count), names in methods.items():
            found[reason, count, tuple(names)].append(metric.label)
    return [
        f"{count} of {len(table.samples)} samples skipped by {_all(metrics, table.metrics)} for "
        f"{_all(methods, table.methods)}: {reason}."
        for (reason, count, methods), metrics in found.items()
    ]


def _ties(table: Table) -> list[str]:
    """Where a policy decides more of an order than the scores do."""
    found: dict[tuple[str, str, Any], list[str]] = defaultdict(list)
    for row in table.rows:
        if row.ties > _MANY_TIES and "ties" in row.params:
            found[row.method, f"{row.ties:.0%}", row.params["ties"]].append(row.metric)
    return [
        f"{method}: {share} of the scores equal another; ties={policy!r} orders them for "
        f"{', '.join(metrics)}."
        for (method, share, policy), metrics in found.items()
    ]


def _all(names: Sequence[str], among: Sequence[Configured[Any]]) -> str:
    """The names, or in one word that they are all."""
    kind = among[0].spec.role
    return f"every {kind}" if len(names) == len(among) else ", ".join(names)


def _content(table: Table) -> Markup:
    heads = [element("th", name, scope="col") for name in _header(table)]
    rows = [
        element("tr", element("th", name, scope="row"), *(element("td", cell) for cell in cells))
        for name, *cells in _body(table)
    ]
    grid = element(
        "table",
        element("thead", element("tr", *heads)),
        element("tbody", *rows),
    )
    remarks = element("ul", *(element("li", note) for note in notes(table)), class_="muted")
    return element("section", element("div", grid, class_="scores"), remarks)


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_plain(cell) for cell in cells)} |"


def _plain(text: str) -> str:
    """The text where it is not taken for Markdown."""
    for special in "\\|*_`<[":
        text = text.replace(special, f"\\{special}")
    return visible(" ".join(text.split()))
