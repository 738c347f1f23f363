"""The tab of explanations: several methods on one input, side by side, with what each costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pellucid._catalogue import list_methods
from pellucid._errors import ArgumentError, PellucidError, explain_error
from pellucid._explain import explain
from pellucid._results import Explanation
from pellucid.adapters.base import Adapter
from pellucid.app.pieces import folded, framed, message, rooted, table
from pellucid.app.session import Explained, alone
from pellucid.viz import page
from pellucid.viz.markup import Markup, join

if TYPE_CHECKING:
    from pellucid.app.desk import Desk, Follower

PREDICTED = "predicted"  # instead of the number of a class
FIRST = ("gradient_x_input", "integrated_gradients", "attn_lrp", "transformer_mm", "occlusion")


@dataclass(frozen=True)
class Failed:
    """A method that could not explain this input."""

    method: str
    error: PellucidError


def offered(adapter: Adapter) -> list[str]:
    """The methods that fit the model."""
    return [entry.name for entry in list_methods(adapter) if entry.fits]


def refused(adapter: Adapter) -> Markup:
    """The methods that do not fit, each with its reason."""
    rows = [[entry.name, entry.why_not] for entry in list_methods(adapter) if not entry.fits]
    if not rows:
        return Markup()
    count = f"{len(rows)} method{'s do' if len(rows) > 1 else ' does'} not fit this model"
    return rooted(folded(count, table("", ["method", "why not"], rows)))


def explanations(
    adapter: Adapter, raw: Any, methods: Sequence[str], target: int | None = None
) -> Iterator[Explanation | Failed]:
    """The input by each of the methods; one that fails does not take the others with it."""
    if not methods:
        raise ArgumentError(
            explain_error(
                "no method is chosen",
                got="an empty choice",
                expected="one or several methods",
                instead=FIRST[0],
            )
        )
    for method in dict.fromkeys(methods):
        try:
            yield explain(adapter, raw, method=method, target=target, progress=False)
        except PellucidError as error:
            yield Failed(method, error)


def shown(found: Sequence[Explanation | Failed]) -> Markup:
    """The report of what was found, what it cost, and what failed."""
    good = [one for one in found if isinstance(one, Explanation)]
    problems = [message(one.error) for one in found if isinstance(one, Failed)]
    if not good:
        return join(*problems)
    return join(*problems, framed(page(good), "explanations"), rooted(costs(good)))


def costs(found: Sequence[Explanation]) -> Markup:
    """Seconds and passes through the model, the cheapest first."""
    ordered = sorted(found, key=lambda one: one.provenance.seconds)
    rows = [
        [
            one.method,
            f"{1000 * one.provenance.seconds:.1f} ms",
            str(one.provenance.forwards),
            str(one.provenance.backwards),
        ]
        for one in ordered
    ]
    return table("What each method cost", ["method", "time", "forwards", "backwards"], rows)


def tab(desk: Desk) -> list[Follower]:
    """Lay the tab out; what of it follows the choice of the model."""
    gr = desk.gr
    with gr.Row():
        methods = gr.Dropdown(multiselect=True, label="Methods", scale=3, elem_id="methods")
        target = gr.Dropdown(label="Explained class", scale=1, min_width=180, elem_id="target")
    reasons = gr.HTML()
    with gr.Row():
        start = gr.Button("Explain", variant="primary", elem_id="explain")
        stop = gr.Button("Stop", min_width=80, scale=0)
    result = gr.HTML(elem_id="explained")

    def run(
        given: Any, chosen: list[str], label: int | str | None, progress: Any
    ) -> Iterator[Markup]:
        goal = label if isinstance(label, int) else None
        found: list[Explanation | Failed] = []

        def told(count: int) -> None:
            doing = chosen[min(len(found), len(chosen) - 1)]
            progress((len(found), len(chosen)), desc=f"{doing}, pass {count}", unit="methods")

        with alone(given.served, given.session.stop, told) as adapter:
            for one in explanations(adapter, given.raw, chosen, goal):
                found.append(one)
        good = tuple(one for one in found if isinstance(one, Explanation))
        given.session.explained = Explained(given.model, given.raw, good)
        yield shown(found)

    desk.runs(start, run, [methods, target], result)
    desk.stops(stop)
    return [
        (methods, lambda a: {"choices": offered(a), "value": _at_first(a)}),
        (target, lambda a: {"choices": [PREDICTED, *classes(a)], "value": PREDICTED}),
        (reasons, lambda a: {"value": refused(a)}),
    ]


def classes(adapter: Adapter) -> list[tuple[str, int]]:
    """The classes of a model by name, each with its number; none where they are words."""
    return [(label or f"class {i}", i) for i, label in enumerate(adapter.labels)]


def _at_first(adapter: Adapter) -> list[str]:
    """A few methods of different kinds."""
    fitting = offered(adapter)
    return [name for name in FIRST if name in fitting] or fitting[:3]
