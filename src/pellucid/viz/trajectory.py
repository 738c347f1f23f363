"""The card of a walk: its inputs and its numbers step by step, and its curves."""

from __future__ import annotations

from pellucid._trajectory import Trajectory
from pellucid._types import Picture
from pellucid.viz.changes import texts
from pellucid.viz.chart import chart
from pellucid.viz.course import (
    at,
    changes,
    decoded_said,
    extent,
    point_said,
    remarks,
    result,
    settings,
    title,
)
from pellucid.viz.curves import decoded_curves, probability_curves, series_curve
from pellucid.viz.frames import frames, stack
from pellucid.viz.markup import Markup, element, join
from pellucid.viz.provenance import notes, provenance
from pellucid.viz.walk import Walk


def walk_card(walk: Walk) -> Markup:
    """One walk; a slider moves through its points, and without a script the last one is seen."""
    trajectory = walk.trajectory
    return element(
        "article",
        _head(trajectory),
        _controls(walk),
        element(
            "div",
            _inputs(walk),
            stack([_readout(walk, point) for point in walk.shown]),
            class_="stage",
        ),
        _charts(walk),
        element(
            "div",
            notes(remarks(walk)),
            _settings(trajectory),
            provenance(trajectory.provenance),
            class_="details",
        ),
        class_="walk",
        style=f"--at:{1 if trajectory.steps else 0}",
    )


def _head(trajectory: Trajectory) -> Markup:
    ended = "outcome" if trajectory.completed else "outcome early"
    return element(
        "header",
        element("h3", element("bdi", title(trajectory))),
        element("p", extent(trajectory), class_="muted"),
        element("p", trajectory.outcome, " ", element("bdi", result(trajectory)), class_=ended),
    )


def _controls(walk: Walk) -> Markup:
    """A button, a slider and the iteration, where there is more than one point."""
    trajectory, last = walk.trajectory, len(walk.shown) - 1
    if last == 0:
        return Markup()
    iterations = trajectory.iterations[walk.shown].tolist()
    slider = element(
        "input",
        type="range",
        min=0,
        max=last,
        value=last,
        step=1,
        class_="steps",
        autocomplete="off",
        aria_label="saved point of the walk",
        data_iterations=" ".join(map(str, iterations)),
        data_steps=trajectory.steps,
    )
    return element(
        "div",
        element("button", "Play", type="button", class_="play"),
        slider,
        element("output", class_="iteration number", aria_live="off"),  # the slider says it
        class_="controls needs-script",
    )


def _inputs(walk: Walk) -> Markup:
    """What the points look like, where they could be decoded."""
    decoded, item = walk.decoded, walk.item
    if decoded is None:
        return Markup()
    if isinstance(item, Picture):
        return frames(walk, item, decoded) if decoded.frames is not None else Markup()
    return texts(walk, item, decoded)


def _readout(walk: Walk, point: int) -> Markup:
    """What the model says at a point and of the input it decodes to, and where the point is."""
    trajectory, decoded = walk.trajectory, walk.decoded
    rows = [_stat("iteration", str(int(trajectory.iterations[point])))]
    rows.append(_stat("the point is", str(point_said(trajectory, point))))
    if decoded is not None:
        agrees = bool(decoded.agrees[point])
        badge = element("span", "✓ agrees" if agrees else "✗ predicted otherwise", class_="badge")
        said = join(element("bdi", str(decoded_said(trajectory, decoded, point))), " ", badge)
        rows.append(_stat("its input is", said, "agrees" if agrees else "differs"))
    rows += [_stat(name, digits) for name, digits in at(trajectory, point).items()]
    changed = changes(decoded, point, trajectory.kind) if decoded is not None else ""
    listed = element("dl", *rows, class_="readout")
    return join(listed, element("p", changed, class_="muted") if changed else Markup())


def _stat(name: str, value: str, kind: str | None = None) -> Markup:
    shown = value if isinstance(value, Markup) else element("bdi", value)
    return element("div", element("dt", name), element("dd", shown), class_=kind)


def _charts(walk: Walk) -> Markup:
    trajectory, steps = walk.trajectory, walk.trajectory.steps
    dots = decoded_curves(walk)
    crosses: list[float] = []
    if walk.decoded is not None:
        apart = [point for point in walk.shown if not bool(walk.decoded.agrees[point])]
        crosses = [float(trajectory.iterations[point]) for point in apart]
    legend = "Lines: the point. Circles: the input it decodes to." if dots else ""
    legend += " ×: that input is predicted otherwise." if crosses else ""
    return element(
        "div",
        chart(
            "class probabilities",
            probability_curves(trajectory, walk.decoded),
            steps=steps,
            top=1.0,
            dots=dots,
            crosses=crosses,
            legend=legend,
        ),
        chart(
            "drift: largest change of any probability",
            [series_curve(trajectory, "drift")],
            steps=steps,
            log=True,
        ),
        chart(
            "distance",
            [
                series_curve(trajectory, "displacement", "from start"),
                series_curve(trajectory, "length", "path"),
            ],
            steps=steps,
        ),
        class_="charts",
    )


def _settings(trajectory: Trajectory) -> Markup:
    listed = [element("code", one) for one in settings(trajectory)]
    chips = element("p", *listed, class_="settings")
    return element("details", element("summary", "Settings"), chips)
