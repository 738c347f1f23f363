"""The look of an explanation: one self-contained page, a notebook cell, a terminal, matplotlib."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pellucid._errors import ArgumentError, explain_error

if TYPE_CHECKING:
    from pellucid._results import Explanation

    Explanations = Explanation | Iterable[Explanation]

__all__ = ["fragment", "page", "report", "show", "write_page"]


def report(
    explanations: Explanations,
    path: str | Path,
    *,
    title: str | None = None,
    overwrite: bool = False,
) -> Path:
    """Write one page that shows the explanations, methods of one input side by side."""
    return write_page(page(explanations, title=title), path, overwrite=overwrite)


def page(explanations: Explanations, *, title: str | None = None) -> str:
    """A complete HTML document that needs neither a network nor a server."""
    from pellucid.viz.html import document

    return document(_listed(explanations), title)


def fragment(explanations: Explanations) -> str:
    """The same content for a place inside another page, such as the output of a notebook cell."""
    from pellucid.viz.html import embedded

    return embedded(_listed(explanations))


def write_page(html: str, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a page whole or not at all, and return where."""
    from pellucid._store import replacing

    goal = Path(path)
    with replacing(goal, overwrite=overwrite) as temporary:
        temporary.write_text(html, encoding="utf-8", newline="\n")
    return goal


def show(explanation: Explanation) -> None:
    """Display it in a notebook; elsewhere print it, in colours where the terminal has them."""
    if _in_notebook():
        from IPython.display import HTML, display  # type: ignore[import-not-found,unused-ignore]

        display(HTML(fragment([explanation])))
    else:
        from pellucid.viz.terminal import print_explanation

        print_explanation(explanation)


def _in_notebook() -> bool:
    """Whether a notebook's kernel runs this; IPython in a terminal has a shell but no kernel."""
    ipython: Any = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def _listed(explanations: Explanations) -> list[Explanation]:
    """One or several explanations as a list that is not empty."""
    from pellucid._results import Explanation

    if isinstance(explanations, Explanation):
        return [explanations]
    several: list[Any] = (
        list(explanations) if isinstance(explanations, Iterable) else [explanations]
    )
    wrong = sorted({type(one).__name__ for one in several if not isinstance(one, Explanation)})
    if several and not wrong:
        return several
    raise ArgumentError(
        explain_error(
            "only explanations can be shown" if wrong else "there is no explanation to show",
            got=", ".join(wrong) or "an empty list",
            expected="an explanation, or a list of them",
            instead='pellucid.report([pellucid.explain(model, "a fine film")], "report.html")',
        )
    )
