"""Pieces of HTML that the tabs share: a message, a page in a frame, a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pellucid.viz.markup import Markup, element, join
from pellucid.viz.prediction import prediction

_SANDBOX = "allow-scripts"  # of an origin of its own: it sees nothing of the app


def rooted(*children: str) -> Markup:
    """Content under the style of the reports."""
    return element("div", *children, class_="pellucid")


def message(error: BaseException) -> Markup:
    """A designed error: what failed, then what was got, expected, and what to do instead."""
    first, *rest = str(error).splitlines() or [type(error).__name__]
    lines = [element("li", line.strip()) for line in rest]
    told = element("ul", *lines) if lines else Markup()
    return rooted(element("div", element("strong", first), told, class_="problem", role="alert"))


def note(text: str) -> Markup:
    """A sentence beside the results."""
    return rooted(element("p", text, class_="muted"))


def framed(page: str, title: str) -> Markup:
    """A report inside the app: its scripts run, and reach nothing outside their frame."""
    return element("iframe", srcdoc=page, sandbox=_SANDBOX, title=title, class_="report")


def table(
    caption: str,
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    best: Sequence[frozenset[int]] = (),
) -> Markup:
    """A table; `best` are the rows to mark, column by column."""
    marked = {(row, column) for column, chosen in enumerate(best) for row in chosen}
    titles = element("tr", *(element("th", one, scope="col") for one in head))
    body = [
        element(
            "tr",
            *(
                element("td", cell, class_="best" if (i, j) in marked else None)
                for j, cell in enumerate(row)
            ),
        )
        for i, row in enumerate(rows)
    ]
    made = element(
        "table",
        element("caption", caption),
        element("thead", titles),
        element("tbody", *body),
        class_="wide",
    )
    return element("div", made, class_="scrolls")


def folded(summary: str, *children: str) -> Markup:
    """What few people need, behind a line to open it with."""
    return element("details", element("summary", summary), *children)


def predicted(found: Mapping[str, float], title: str = "") -> Markup:
    """The model's prediction as bars."""
    head = element("h3", title) if title else Markup()
    return element("div", join(head, prediction(found, frozenset())), class_="side")
