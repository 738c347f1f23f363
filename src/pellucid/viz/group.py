"""Which explanations belong side by side: those of one input of one model."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from pellucid._results import Explanation
from pellucid._types import Text

_SAME = 0.005  # probabilities this close are one prediction, computed on another device or dtype


@dataclass(frozen=True)
class Group:
    """Explanations of one input of one model, in the order in which they were given."""

    explanations: tuple[Explanation, ...]

    @property
    def first(self) -> Explanation:
        """The explanation that speaks for what all have in common."""
        return self.explanations[0]

    @property
    def prediction(self) -> Mapping[str, float]:
        """What the model predicts for the input."""
        return self.first.prediction

    @property
    def labels(self) -> frozenset[str]:
        """The classes that were explained."""
        return frozenset(one.label for one in self.explanations)

    def predicts_otherwise(self, explanation: Explanation) -> bool:
        """Whether this explanation is of another prediction, as of another masked word."""
        other = explanation.prediction
        names = {*self.prediction, *other}
        return any(abs(self.prediction.get(n, 0.0) - other.get(n, 0.0)) > _SAME for n in names)


def grouped(explanations: Sequence[Explanation]) -> list[Group]:
    """The groups, in the order in which their inputs first appear."""
    found: dict[Hashable, list[Explanation]] = {}
    for explanation in explanations:
        found.setdefault(_key(explanation), []).append(explanation)
    return [Group(tuple(members)) for members in found.values()]


def _key(explanation: Explanation) -> Hashable:
    """The model and the content of the input."""
    item, source = explanation.item, explanation.provenance
    parts = item.parts if isinstance(item, Text) else (item.view.shape, item.view.tobytes())
    return source.model, source.weights, parts
