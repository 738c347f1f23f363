"""A trajectory as it is shown: with the inputs that its points decode to, and not every point."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pellucid._decoded import Decoded
from pellucid._errors import ArgumentError, PellucidError, explain_error
from pellucid._results import Provenance
from pellucid._trajectory import Trajectory
from pellucid._types import Picture, Text

_POINTS = 100  # that a page has a slider for
_PIXELS = 3_000_000  # numbers in all pictures of one walk: a page of a few megabytes
_TOKENS = 6_000  # tokens in all texts of one walk
_NO_MODEL = (
    "No file holds the model, and without it the points are not decoded; "
    "decoded=trajectory.decode(model) shows them as inputs."
)


@dataclass(frozen=True, eq=False)
class Walk:
    """One trajectory, decoded where that is possible; `undecoded` says why where it is not."""

    trajectory: Trajectory
    decoded: Decoded | None
    undecoded: str = ""

    @classmethod
    def of(cls, trajectory: Trajectory, decoded: Decoded | None = None) -> Walk:
        """With these decoded inputs, or with those that the model at hand gives."""
        if decoded is not None:
            _check_same_points(trajectory, decoded)
            return cls(trajectory, decoded)
        if trajectory.model is None:
            return cls(trajectory, None, _NO_MODEL)
        try:
            return cls(trajectory, trajectory.decode())
        except PellucidError as error:
            why = "; ".join(" ".join(line.split()) for line in str(error).splitlines())
            return cls(trajectory, None, f"The points are not decoded: {why}")

    @property
    def item(self) -> Text | Picture:
        """What was walked from."""
        return self.trajectory.item

    @property
    def provenance(self) -> Provenance:
        """Where the numbers come from."""
        return self.trajectory.provenance

    @property
    def prediction(self) -> dict[str, float]:
        """What the model predicts at the start."""
        first = self.trajectory.probabilities[0].tolist()
        return dict(zip(self.trajectory.labels, first, strict=True))

    @cached_property
    def shown(self) -> list[int]:
        """The saved points that the slider stops at: evenly spaced, the first and last among them.

        All of them, unless they are too many for a page.
        """
        saved = len(self.trajectory.iterations)
        count = min(saved, _POINTS, max(2, self._affordable()))
        return sorted({round(place) for place in np.linspace(0, saved - 1, count)})

    def _affordable(self) -> int:
        """How many decoded inputs fit on a page."""
        if self.decoded is None:
            return _POINTS
        if isinstance(self.item, Picture):
            return _PIXELS // self.item.view.size
        return _TOKENS // max(1, len(self.item.segments))


def _check_same_points(trajectory: Trajectory, decoded: Decoded) -> None:
    if decoded.iterations.tolist() != trajectory.iterations.tolist():
        raise ArgumentError(
            explain_error(
                "these inputs were decoded from another walk",
                got=f"{len(decoded.iterations)} decoded points",
                expected=f"one for each of the {len(trajectory.iterations)} saved points",
                instead="trajectory.to_html(decoded=trajectory.decode(model))",
            )
        )
