"""`pellucid methods`, `metrics` and `models`: what exists and what fits."""

from __future__ import annotations

from typing import Annotated

import typer

For = Annotated[
    str | None, typer.Option("--for", metavar="MODEL", help="Say which of them run on this model.")
]


def methods(for_: For = None) -> None:
    """List the explanation methods."""
    from pellucid import list_methods
    from pellucid.cli._common import load_model, print_table

    listed = list_methods(None if for_ is None else load_model(for_))
    if for_ is None:
        rows = [[e.name, ", ".join(e.spec.kinds), e.summary] for e in listed]
        print_table(["method", "explains", "what it does"], rows)
    else:
        rows = [[e.name, "yes" if e.fits else "no", e.why_not or e.summary] for e in listed]
        print_table(["method", "fits", "why not, or what it does"], rows)


def metrics(for_: For = None) -> None:
    """List the metrics: those of explanations, then those of walks."""
    from pellucid import list_metrics
    from pellucid._spec import Metric, WalkMetric
    from pellucid.cli._common import load_model, print_table

    rows, walks = [], []
    for entry in list_metrics(None if for_ is None else load_model(for_)):
        spec, told = entry.spec, entry.why_not or entry.summary
        if isinstance(spec, WalkMetric):
            walks.append([entry.name, spec.stay or "", spec.leave or "", told])
        else:
            assert isinstance(spec, Metric)
            direction = f"{spec.better} is better"
            rows.append([entry.name, direction, ", ".join(spec.kinds), told])
    print_table(["metric", "direction", "measures", "why not, or what it does"], rows)
    head = ["metric of walks", "staying", "leaving", "why not, or what it does"]
    print_table(head, walks)


def models() -> None:
    """List the models that come with the package."""
    from pellucid import list_models
    from pellucid.cli._common import print_table
    from pellucid.models import model_summary

    rows = [[name, model_summary(name.removeprefix("pellucid/"))] for name in list_models()]
    print_table(["model", "what it is"], rows)
