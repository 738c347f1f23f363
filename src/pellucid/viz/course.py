"""How a walk went, in the sentences that the page, the terminal and the plot have in common."""

from __future__ import annotations

from dataclasses import dataclass

from pellucid._decoded import Decoded
from pellucid._trajectory import Trajectory
from pellucid.viz.walk import Walk
from pellucid.viz.wording import name_of, number, percent


@dataclass(frozen=True)
class Said:
    """The likeliest class and its probability, where that was kept."""

    label: str
    probability: float | None

    def __str__(self) -> str:
        name = name_of(self.label)
        return name if self.probability is None else f"{name}, {percent(self.probability)}"


def title(trajectory: Trajectory) -> str:
    """What kind of walk it is."""
    start = name_of(trajectory.predicted[0])
    named = {"stay": f"Walk inside the class {start}", "leave": f"Walk out of the class {start}"}
    return named.get(trajectory.goal, f"Walk to the class {name_of(trajectory.goal)}")


def extent(trajectory: Trajectory) -> str:
    """How far it went, and through what."""
    moved, total = len(trajectory.tokens), max(1, len(trajectory.segments))
    steps = f"{trajectory.steps} step{'' if trajectory.steps == 1 else 's'}"
    return f"{steps} in the space {trajectory.space!r}; {moved} of {total} tokens moved"


def settings(trajectory: Trajectory) -> list[str]:
    """What decided the walk, as it is typed."""
    return [f"{name}={value!r}" for name, value in trajectory.settings.items() if value is not None]


def result(trajectory: Trajectory) -> str:
    """Whether the class was kept, and where it was lost."""
    predicted = trajectory.predicted
    first, last = predicted[0], predicted[-1]
    if trajectory.kept_class:
        where = f" at all {len(predicted)} saved points" if len(predicted) > 1 else ""
        return f"The prediction is {name_of(first)}{where}."
    place = next(i for i, label in enumerate(predicted) if label != first)
    where = f"by iteration {int(trajectory.iterations[place])}"
    to = f"The prediction changes from {name_of(first)} to {name_of(predicted[place])} {where}"
    return f"{to}." if last == predicted[place] else f"{to}, and ends as {name_of(last)}."


def point_said(trajectory: Trajectory, point: int) -> Said:
    """What the model predicts at a saved point."""
    label = trajectory.predicted[point]
    if label not in trajectory.labels:
        return Said(label, None)
    return Said(label, float(trajectory.probabilities[point, trajectory.labels.index(label)]))


def decoded_said(trajectory: Trajectory, decoded: Decoded, point: int) -> Said:
    """What it predicts of the input that the point decodes to.

    Of many classes only some are kept, so the likeliest of those need not be the likeliest of all.
    """
    if decoded.predicted:
        label = decoded.predicted[point]
    else:
        label = trajectory.predicted[point] if decoded.agrees[point] else "another class"
    if label not in decoded.labels:
        return Said(label, None)
    return Said(label, float(decoded.probabilities[point, decoded.labels.index(label)]))


def agreement(decoded: Decoded) -> str:
    """At how many points the decoded input is predicted as the point is."""
    agreed, count = int(decoded.agrees.sum()), len(decoded.agrees)
    return f"{agreed} of {count} decoded inputs are predicted as their points are."


def changes(decoded: Decoded, point: int, kind: str) -> str:
    """How many tokens or patches are other ones than at the start, and how well decoding went."""
    found = []
    if decoded.changed is not None:
        row = decoded.changed[point]
        unit = "tokens" if kind == "text" else "patches"
        found.append(f"{int(row.sum())} of {len(row)} moved {unit} differ from the original")
    quality = [
        f"{name.replace('_', ' ')} {number(float(values[point]))}"
        for name, values in decoded.quality.items()
    ]
    if quality:
        found.append(f"decoding: {', '.join(quality)}")
    return "; ".join(found)


def remarks(walk: Walk) -> list[str]:
    """What else a reader should know."""
    trajectory, decoded = walk.trajectory, walk.decoded
    found = [walk.undecoded] if walk.undecoded else []
    if len(walk.shown) < len(trajectory.iterations):
        found.append(
            f"{len(walk.shown)} of {len(trajectory.iterations)} saved points can be stepped "
            "through; the curves are of all."
        )
    other = sum(label not in trajectory.labels for label in trajectory.predicted)
    if other:
        found.append(
            f"Probabilities are kept for {len(trajectory.labels)} classes; at {other} of "
            f"{len(trajectory.predicted)} saved points the prediction is another one."
        )
    if decoded is not None:
        found += [f"Decoded with using={decoded.using!r}. {agreement(decoded)}", *decoded.notes]
    return [*found, *trajectory.notes]


def at(trajectory: Trajectory, point: int) -> dict[str, str]:
    """The numbers of a saved point."""
    step = int(trajectory.iterations[point])
    return {
        "drift": number(float(trajectory.drift[step])),
        "distance": number(float(trajectory.displacement[step])),
        "path": number(float(trajectory.length[step])),
    }
