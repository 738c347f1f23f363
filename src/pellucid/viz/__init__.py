"""The look of results: one self-contained page, a notebook cell, a terminal, matplotlib."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pellucid._errors import ArgumentError, explain_error

if TYPE_CHECKING:
    from pellucid._decoded import Decoded
    from pellucid._results import Explanation
    from pellucid._trajectory import Trajectory
    from pellucid.viz.walk import Walk

    Result: TypeAlias = Explanation | Trajectory | tuple[Trajectory, Decoded]
    Results: TypeAlias = Result | Iterable[Result]

__all__ = ["fragment", "page", "report", "show", "write_page"]


def report(
    results: Results,
    path: str | Path,
    *,
    title: str | None = None,
    overwrite: bool = False,
) -> Path:
    """Write one page that shows the results, methods of one input side by side.

    Results are explanations and trajectories. A trajectory is decoded where its model is at hand;
    `(trajectory, decoded)` is one with its decoded inputs.
    """
    return write_page(page(results, title=title), path, overwrite=overwrite)


def page(results: Results, *, title: str | None = None) -> str:
    """A complete HTML document that needs neither a network nor a server."""
    from pellucid.viz.html import document

    return document(_listed(results), title)


def fragment(results: Results) -> str:
    """The same content for a place inside another page, such as the output of a notebook cell."""
    from pellucid.viz.html import embedded

    return embedded(_listed(results))


def write_page(html: str, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a page whole or not at all, and return where."""
    from pellucid._store import replacing

    goal = Path(path)
    with replacing(goal, overwrite=overwrite) as temporary:
        temporary.write_text(html, encoding="utf-8", newline="\n")
    return goal


def show(result: Result) -> None:
    """Display it in a notebook; elsewhere print it, in colours where the terminal has them."""
    from pellucid._results import Explanation

    (shown,) = _listed(result)
    if in_notebook():
        from IPython.display import HTML, display  # type: ignore[import-not-found,unused-ignore]

        from pellucid.viz.html import embedded

        display(HTML(embedded([shown])))
    elif isinstance(shown, Explanation):
        from pellucid.viz.terminal import print_explanation

        print_explanation(shown)
    else:
        from pellucid.viz.terminal_walk import print_walk

        print_walk(shown)


def in_notebook() -> bool:
    """Whether a notebook's kernel runs this; IPython in a terminal has a shell but no kernel."""
    ipython: Any = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def _listed(results: Results) -> list[Explanation | Walk]:
    """One or several results as a list that is not empty."""
    single = _shown(results)
    if single is not None:
        return [single]
    several: list[Any] = list(results) if isinstance(results, Iterable) else [results]
    found = [_shown(one) for one in several]
    wrong = sorted(
        {type(one).__name__ for one, it in zip(several, found, strict=True) if it is None}
    )
    if several and not wrong:
        return [one for one in found if one is not None]
    raise ArgumentError(
        explain_error(
            "only explanations and trajectories can be shown"
            if wrong
            else "there is nothing to show",
            got=", ".join(wrong) or "an empty list",
            expected="an explanation, a trajectory, or a list of them",
            instead='pellucid.report([pellucid.explain(model, "a fine film")], "report.html")',
        )
    )


def _shown(one: Any) -> Explanation | Walk | None:
    """What is drawn for a result; None for anything that is not one."""
    from pellucid._decoded import Decoded
    from pellucid._results import Explanation
    from pellucid._trajectory import Trajectory
    from pellucid.viz.walk import Walk

    match one:
        case Explanation():
            return one
        case Trajectory():
            return Walk.of(one)
        case (Trajectory() as trajectory, Decoded() as decoded):
            return Walk.of(trajectory, decoded)
    return None
