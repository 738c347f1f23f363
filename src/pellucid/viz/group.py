"""What belongs together: the explanations of one input of one model, and the walks from it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from pellucid._results import Explanation, Provenance
from pellucid._types import Picture, Text
from pellucid.viz.walk import Walk

_SAME = 0.005  # probabilities this close are one prediction, computed on another device or dtype


@dataclass(frozen=True)
class Group:
    """Explanations and walks of one input of one model, each in the order they were given in."""

    explanations: tuple[Explanation, ...]
    walks: tuple[Walk, ...] = ()

    @property
    def first(self) -> Explanation | Walk:
        """The one that speaks for what all have in common: an explanation where there is one."""
        return self.explanations[0] if self.explanations else self.walks[0]

    @property
    def item(self) -> Text | Picture:
        """The input."""
        return self.first.item

    @property
    def provenance(self) -> Provenance:
        """The model, among other things."""
        return self.first.provenance

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


def grouped(shown: Sequence[Explanation | Walk]) -> list[Group]:
    """The groups, in the order in which their inputs first appear."""
    found: dict[Hashable, list[Explanation | Walk]] = {}
    for one in shown:
        found.setdefault(_key(one), []).append(one)
    return [
        Group(
            tuple(one for one in members if isinstance(one, Explanation)),
            tuple(one for one in members if isinstance(one, Walk)),
        )
        for members in found.values()
    ]


def _key(shown: Explanation | Walk) -> Hashable:
    """The model and the content of the input."""
    item, source = shown.item, shown.provenance
    parts = item.parts if isinstance(item, Text) else (item.view.shape, item.view.tobytes())
    return source.model, source.weights, parts
