"""A page for every metric of explanations, and one for those of walks."""

from __future__ import annotations

from collections.abc import Callable

from prose import body_of, cell, defaults_of, module_of, presets_of, prose, source_of, sources
from tried import COMPARED, Valued

from pellucid._needs import MEANING, flags
from pellucid._spec import Metric, WalkMetric
from pellucid.metrics import METRICS
from pellucid.metrics.walks import WALK_METRICS

Try = Callable[[Metric], list[Valued]]
_TRUTH = {
    "mask": "the mask of the object",
    "label": "the right class",
    "rationale": "the words that people gave as their reasons",
    "attention": "the words that people looked at",
}


def pages(run: Try) -> dict[str, str | bytes]:
    """All pages by their paths; `run` tries a metric."""
    made: dict[str, str | bytes] = {"metrics/index.md": index(), "metrics/walks.md": walks()}
    return made | {f"metrics/{name}.md": page(spec, run(spec)) for name, spec in METRICS.items()}


def index() -> str:
    """The list of all metrics by family."""
    parts = [
        "# Metrics",
        "`pellucid.measure(model, ex, metric=...)` puts one number on an explanation. No metric "
        "says that an explanation is right; each says what would follow if it were. Those of walks "
        "have [a page of their own](walks.md).",
    ]
    for family in dict.fromkeys(spec.family for spec in METRICS.values()):
        rows = [
            f"| [`{name}`]({name}.md) | {cell(spec.summary)} | {' and '.join(spec.kinds)} "
            f"| {spec.better} |"
            for name, spec in METRICS.items()
            if spec.family == family
        ]
        head = ["| metric | what it measures | for | better |", "|---|---|---|---|"]
        parts += [f"## {family.capitalize()}", "\n".join([*head, *rows])]
    return "\n\n".join(parts) + "\n"


def page(spec: Metric, tried: list[Valued]) -> str:
    """The page of one metric."""
    title, body, misleads = module_of(spec.function)
    needs = [MEANING[flag] for flag in flags(spec.needs)] + (
        [_TRUTH[spec.truth] + " (`truth=`)"] if spec.truth else []
    )
    settings = defaults_of(spec.function, 2 + (spec.truth is not None))
    parts = [
        f"# {spec.name}",
        f"{prose(spec.summary)} **{spec.better.capitalize()} is better.**",
        "## What it is",
        prose(f"{title}\n\n{body}".strip()),
        prose(body_of(spec.function)),
        source_of(spec.function, "The metric, as it runs"),
        f"## Parameters\n\n```python\n{spec.name}({settings})\n```" if settings else "",
        presets_of(spec.presets),
        "## What it needs",
        "\n".join(f"- {one}" for one in needs) or "Predictions, nothing else.",
        "## What it gives and costs",
        _values(tried),
        "## When it misleads",
        prose(misleads),
        "## Source",
        sources(spec.cite),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _values(tried: list[Valued]) -> str:
    rows = [
        f"| `{one.model}` | {' | '.join(_number(one.values[name]) for name in COMPARED)} "
        f"| {one.evaluations} |"
        for one in tried
    ]
    names = " | ".join(f"`{name}`" for name in COMPARED)
    head = [f"| model | {names} | evaluations |", "|---" * (len(COMPARED) + 2) + "|"]
    said = (
        "One bundled input, its log-odds explained by three methods. A single input ranks nothing: "
        "it shows the scale."
    )
    return "\n".join([said, "", *head, *rows])


def _number(value: float | None) -> str:
    return "skipped" if value is None else f"{value:.3g}"


def walks() -> str:
    """The page of all metrics of walks."""
    parts = [
        "# Metrics of walks",
        "`pellucid.measure_walk(walk, metric=...)` measures [a walk](../walks.md). A walk that "
        "stays and one that leaves are not good for the same reasons: each has its direction, or "
        "none.",
    ]
    for name, spec in WALK_METRICS.items():
        parts += [f"## {name}", _walk(spec)]
    return "\n\n".join(parts) + "\n"


def _walk(spec: WalkMetric) -> str:
    title, body, misleads = module_of(spec.function)
    better = ", ".join(
        f"{goal}: {way} is better"
        for goal, way in (("stay", spec.stay), ("leave", spec.leave))
        if way
    )
    settings = defaults_of(spec.function, 1)
    parts = [
        f"{prose(spec.summary)}" + (f" *{better.capitalize()}.*" if better else ""),
        prose("\n\n".join(one for one in (title, body, body_of(spec.function)) if one)),
        prose(misleads),
        f"```python\n{spec.name}({settings})\n```" if settings else "",
    ]
    return "\n\n".join(part for part in parts if part)
