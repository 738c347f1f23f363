"""The curves of a walk as plain numbers, whatever they are drawn with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pellucid._decoded import Decoded
from pellucid._trajectory import Trajectory
from pellucid.viz.colour import Array
from pellucid.viz.walk import Walk
from pellucid.viz.wording import name_of

_CLASSES = 4  # curves with a colour and a label of their own
_LEAST = 0.01  # other classes that are never likelier than this are not drawn
_BUCKETS = 200  # of a long series, each drawn by its least and its largest number


@dataclass(frozen=True, eq=False)
class Curve:
    """One line of a chart, or the marks on it."""

    label: str
    x: Array
    y: Array


def probability_curves(trajectory: Trajectory, decoded: Decoded | None = None) -> list[Curve]:
    """The main classes at every saved point."""
    x = trajectory.iterations.double().numpy()
    return [
        Curve(name_of(trajectory.labels[i]), x, trajectory.probabilities[:, i].double().numpy())
        for i in main_classes(trajectory, decoded)
    ]


def decoded_curves(walk: Walk) -> list[Curve]:
    """The same classes of the decoded inputs that are shown; no number where none was kept."""
    if walk.decoded is None:
        return []
    decoded, points = walk.decoded, walk.shown
    x = decoded.iterations[points].double().numpy()
    found = []
    for place in main_classes(walk.trajectory, decoded):
        label = walk.trajectory.labels[place]
        y = np.full(len(points), np.nan)
        if label in decoded.labels:
            y = decoded.probabilities[points, decoded.labels.index(label)].double().numpy()
        found.append(Curve(name_of(label), x, y))
    return found


def main_classes(trajectory: Trajectory, decoded: Decoded | None = None) -> list[int]:
    """The places among the kept classes of those that are drawn, of the point or its input.

    The first one, the one that is walked to, then the likeliest anywhere along the walk.
    """
    labels = trajectory.labels
    most = trajectory.probabilities.amax(dim=0).tolist()
    if decoded is not None:
        own = dict(zip(decoded.labels, decoded.probabilities.amax(dim=0).tolist(), strict=True))
        most = [max(p, own.get(label, 0.0)) for p, label in zip(most, labels, strict=True)]
    likely = sorted((i for i, p in enumerate(most) if p >= _LEAST), key=lambda i: -most[i])
    first = int(trajectory.probabilities[0].argmax())
    goal = [place for place, label in enumerate(labels) if label == trajectory.goal]
    return list(dict.fromkeys([first, *goal, *likely]))[:_CLASSES]


def series_curve(trajectory: Trajectory, name: str, label: str = "") -> Curve:
    """One number a step."""
    y = trajectory.series[name].double().numpy()
    return Curve(label, np.arange(len(y), dtype=np.float64), y)


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
