"""What methods and metrics give on the bundled models: pictures, colours, numbers, passes."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from rich.console import Console
from rich.terminal_theme import TerminalTheme

import pellucid
from pellucid._spec import Method, Metric
from pellucid.viz.terminal import print_explanation

IMAGE, TEXT = "pellucid/digits-vit", "pellucid/reviews-bert"
SENTENCE = "It is not a great film, but I enjoyed it."
MARKED = [0, 0, 0, 0, 1, 0, 0, 0, 1, 0]  # "great" and "enjoyed", as a person might have it
COMPARED = ("random", "gradient_x_input", "attn_lrp")
_WIDTH = 78
_INK = (25, 25, 25)  # on colours as light as ours
_THEME = TerminalTheme((250, 250, 250), _INK, [_INK] * 8)


@dataclass(frozen=True)
class Shown:
    """One method on one bundled model."""

    model: str
    forwards: int
    backwards: int
    notes: tuple[str, ...]
    picture: bytes | None  # of an image
    colours: str | None  # of a text, as HTML


@dataclass(frozen=True)
class Valued:
    """One metric on one bundled model: the value of a few methods, and what it cost."""

    model: str
    values: dict[str, float | None]
    evaluations: int


@cache
def model(name: str) -> Any:
    """A bundled model, loaded once."""
    return pellucid.load(name)


@cache
def digit() -> Any:
    """The picture that all pages show."""
    return next(path for path in pellucid.models.sample_images() if path.name == "digit-8.png")


def _subjects(kinds: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    if "image" in kinds:
        yield IMAGE, digit()
    if "text" in kinds:
        yield TEXT, SENTENCE


def shown(spec: Method) -> list[Shown]:
    """What a method, as it comes, says of the digit and of the sentence."""
    found = []
    for name, item in _subjects(spec.kinds):
        ex = pellucid.explain(model(name), item, method=spec.name)
        costs = ex.provenance.forwards, ex.provenance.backwards
        picture = _picture(ex) if ex.kind == "image" else None
        colours = _colours(ex) if ex.kind == "text" else None
        found.append(Shown(name, *costs, ex.notes, picture, colours))
    return found


def valued(spec: Metric) -> list[Valued]:
    """What a metric gives for a few methods on the digit and on the sentence."""
    found = []
    for name, item in _subjects(spec.kinds):
        values, evaluations = {}, 0
        for method in COMPARED:
            ex = pellucid.explain(
                model(name), item, method=method, target=pellucid.Target.log_odds()
            )
            options = {**_truth(spec, ex), **_needed(spec)}
            measured = pellucid.measure(model(name), ex, metric=spec.name, **options)
            values[method], evaluations = measured.value, measured.evaluations
        found.append(Valued(name, values, evaluations))
    return found


def _truth(spec: Metric, ex: Any) -> dict[str, Any]:
    """What the metric compares with: the ink, the class, or two words."""
    if spec.truth is None:
        return {}
    if spec.truth == "mask":
        return {"truth": ex.item.view[..., 0] > 127}
    return {"truth": ex.label if spec.truth == "label" else MARKED}


def _needed(spec: Metric) -> dict[str, Any]:
    """Parameters without which a metric says nothing."""
    if spec.name == "naive_bayes_correlation":
        return {"weights": {"not": -0.4, "great": 0.9, "enjoyed": 0.7, "but": -0.1, "film": 0.0}}
    return {}


def _picture(ex: Any) -> bytes:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.6, 3.4), layout="constrained")
    ex.plot(figure.subplots())
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=110)
    return out.getvalue()


def _colours(ex: Any) -> str:
    console = Console(
        record=True,
        file=io.StringIO(),
        width=_WIDTH,
        force_terminal=True,
        color_system="truecolor",
        highlight=False,
    )
    print_explanation(ex, console)
    return console.export_html(
        theme=_THEME, inline_styles=True, code_format='<pre class="terminal">{code}</pre>'
    )
