"""The tab of comparison: which explanation of this input predicts the model best."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pellucid._catalogue import list_metrics
from pellucid._errors import ArgumentError, PellucidError, explain_error
from pellucid._explain import explain
from pellucid._measure import Measurement, measure
from pellucid._results import Explanation
from pellucid._spec import Metric
from pellucid.adapters.base import Adapter
from pellucid.app.pieces import note, rooted, table
from pellucid.app.session import Explained, alone
from pellucid.viz.markup import Markup, element
from pellucid.viz.wording import number

if TYPE_CHECKING:
    from pellucid.app.desk import Desk, Follower

BASELINE = "random"  # what any explanation should beat
_AT_FIRST = 3


@dataclass(frozen=True)
class Comparison:
    """Explanations by metrics: rows by columns, None where a number could not be had."""

    methods: tuple[str, ...]
    metrics: tuple[Metric, ...]
    values: tuple[tuple[float | None, ...], ...]
    notes: tuple[str, ...]

    def best(self, column: int) -> frozenset[int]:
        """The rows with the best number of a metric, all of them where several share it."""
        known = {i: v for i, row in enumerate(self.values) if (v := row[column]) is not None}
        if len(known) < 2:
            return frozenset()
        pick = max if self.metrics[column].better == "higher" else min
        return frozenset(i for i, v in known.items() if v == pick(known.values()))


def usable(adapter: Adapter) -> list[Metric]:
    """The metrics of explanations that fit the model and need to know nothing but the model."""
    return [
        entry.spec
        for entry in list_metrics(adapter)
        if entry.fits and isinstance(entry.spec, Metric) and entry.spec.truth is None
    ]


def compared(
    adapter: Adapter, explained: Explained, metrics: Sequence[str]
) -> Iterator[Comparison]:
    """The table as it grows, one metric after another; the last one is whole."""
    chosen = [spec for spec in usable(adapter) if spec.name in metrics]
    if not chosen:
        raise ArgumentError(
            explain_error(
                "no metric is chosen",
                got="an empty choice",
                expected="one or several metrics",
                instead=", ".join(spec.name for spec in usable(adapter)[:_AT_FIRST]),
            )
        )
    rows = [*explained.found, *_baseline(adapter, explained)]
    columns: list[tuple[float | None, ...]] = []
    notes: list[str] = []
    for done, spec in enumerate(chosen, 1):
        measured = [_measured(adapter, one, spec, notes) for one in rows]
        columns.append(tuple(None if one is None else one.value for one in measured))
        yield Comparison(
            tuple(one.method for one in rows),
            tuple(chosen[:done]),
            tuple(zip(*columns, strict=True)),
            tuple(dict.fromkeys(notes)),
        )


def _baseline(adapter: Adapter, explained: Explained) -> list[Explanation]:
    """Random scores for the same class, where they are not there already."""
    if any(one.method == BASELINE for one in explained.found):
        return []
    target = explained.found[0].index if adapter.labels else None
    return [explain(adapter, explained.raw, method=BASELINE, target=target)]


def _measured(
    adapter: Adapter, explanation: Explanation, spec: Metric, notes: list[str]
) -> Measurement | None:
    """One number, or a note on why there is none."""
    try:
        found: Measurement = measure(adapter, explanation, metric=spec)
    except PellucidError as error:
        notes.append(f"{spec.name} of {explanation.method}: {str(error).splitlines()[0]}")
        return None
    if found.skipped:
        notes.append(f"{spec.name} of {explanation.method}: {found.skipped}")
    return found


def shown(found: Comparison) -> Markup:
    """The table, the best of each metric marked, and what the metrics are."""
    arrows = {"higher": "↑", "lower": "↓"}
    head = ["method", *(f"{spec.name} {arrows[spec.better]}" for spec in found.metrics)]
    rows = [
        [method, *("-" if value is None else number(value) for value in values)]
        for method, values in zip(found.methods, found.values, strict=True)
    ]
    best = [frozenset[int](), *(found.best(i) for i in range(len(found.metrics)))]
    meanings = [
        element("li", element("strong", spec.name), f", {spec.better} is better: {spec.summary}")
        for spec in found.metrics
    ]
    notes = [element("li", one) for one in found.notes]
    return rooted(
        table("Of this one input; the best of each column is marked", head, rows, best),
        element("ul", *meanings, *notes, class_="meanings"),
        element(
            "p",
            "One input says little: a method is compared on a data set, with intervals.",
            class_="muted",
        ),
    )


def tab(desk: Desk) -> list[Follower]:
    """Lay the tab out; what of it follows the choice of the model."""
    gr = desk.gr
    metrics = gr.Dropdown(multiselect=True, label="Metrics", elem_id="metrics")
    gr.HTML(note("Compares the explanations made in the first tab, and random scores beside them."))
    with gr.Row():
        start = gr.Button("Compare", variant="primary", elem_id="compare")
        stop = gr.Button("Stop", min_width=80, scale=0)
    result = gr.HTML(elem_id="compared")

    def run(given: Any, chosen: list[str], progress: Any) -> Iterator[Markup]:
        made = given.session.explained_for(given.model, given.raw)
        done: list[Comparison] = []

        def told(count: int) -> None:
            progress((len(done), len(chosen)), desc=f"pass {count}", unit="metrics")

        with alone(given.served, given.session.stop, told) as adapter:
            for one in compared(adapter, made, chosen):
                done.append(one)
                yield shown(one)

    desk.runs(start, run, [metrics], result)
    desk.stops(stop)
    return [(metrics, lambda a: {"choices": _names(a), "value": _names(a)[:_AT_FIRST]})]


def _names(adapter: Adapter) -> list[str]:
    return [spec.name for spec in usable(adapter)]
