"""The curves of a walk as plain numbers, whatever they are drawn with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pellucid._trajectory import Trajectory
from pellucid.viz.colour import Array
from pellucid.viz.walk import Walk
from pellucid.viz.wording import name_of

_CLASSES = 4  # curves with a colour and a label of their own
_BUCKETS = 200  # of a long series, each drawn by its least and its largest number


@dataclass(frozen=True, eq=False)
class Curve:
    """One line of a chart, or the marks on it."""

    label: str
    x: Array
    y: Array


def probability_curves(trajectory: Trajectory) -> list[Curve]:
    """The classes that are likeliest anywhere along the walk, and the one that is walked to."""
    x = trajectory.iterations.double().numpy()
    return [
        Curve(
            name_of(trajectory.labels[place]),
            x,
            trajectory.probabilities[:, place].double().numpy(),
        )
        for place in main_classes(trajectory)
    ]


def decoded_curves(walk: Walk) -> list[Curve]:
    """The same classes as `probability_curves`, of the decoded inputs that are shown."""
    if walk.decoded is None:
        return []
    decoded, points = walk.decoded, walk.shown
    found = []
    for place in main_classes(walk.trajectory):
        label = walk.trajectory.labels[place]
        if label in decoded.labels:
            y = decoded.probabilities[points, decoded.labels.index(label)].double().numpy()
        else:
            y = np.full(len(points), np.nan)
        found.append(Curve(name_of(label), decoded.iterations[points].double().numpy(), y))
    return found


def main_classes(trajectory: Trajectory) -> list[int]:
    """The places of the drawn classes among the kept ones, the likeliest first."""
    most = trajectory.probabilities.amax(dim=0)
    order = most.argsort(descending=True, stable=True).tolist()
    goal = [place for place, label in enumerate(trajectory.labels) if label == trajectory.goal]
    chosen = list(dict.fromkeys([*order[: _CLASSES - len(goal[:1])], *goal[:1], *order]))[:_CLASSES]
    return sorted(chosen, key=order.index)


def series_curve(trajectory: Trajectory, name: str, label: str = "") -> Curve:
    """One number a step."""
    y = trajectory.series[name].double().numpy()
    return Curve(label or name, np.arange(len(y), dtype=np.float64), y)


def thinned(curve: Curve) -> Curve:
    """A long curve's least and largest number in every stretch, so that no peak is lost."""
    if len(curve.x) <= 2 * _BUCKETS:
        return curve
    kept = {0, len(curve.x) - 1}
    for stretch in np.array_split(np.arange(len(curve.x)), _BUCKETS):
        y = curve.y[stretch]
        kept |= {int(stretch[y.argmin()]), int(stretch[y.argmax()])}
    order = sorted(kept)
    return Curve(curve.label, curve.x[order], curve.y[order])
