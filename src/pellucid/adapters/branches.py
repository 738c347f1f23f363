"""The two branches of every block: what they were added to, and what they were given to read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from torch import Tensor

from pellucid.adapters.anatomy import Anatomy
from pellucid.record.places import Place


@dataclass(frozen=True, eq=False)
class Branch:
    """One kind of branch, layer by layer (b t d each)."""

    before: list[Tensor]  # the stream that it is added to
    read: list[Tensor]  # what it is given: the stream, normalised where a block does that first
    after: list[Tensor]  # the sum

    @property
    def added(self) -> list[Tensor]:
        """What the branch computed."""
        return [after - before for before, after in zip(self.before, self.after, strict=True)]


def places_of_branches(anatomy: Anatomy) -> dict[str, Place]:
    """What has to be recorded, beside the stream, to know the branches."""
    places: dict[str, Place] = {}
    for i, (first, second) in enumerate(anatomy.middles):
        places |= {f"second {i}": second, f"from second {i}": replace(second, side="output")}
        if first is not None:
            places |= {f"first {i}": first, f"from first {i}": replace(first, side="output")}
    return places


def branches_of(anatomy: Anatomy, seen: Mapping[str, Tensor]) -> tuple[Branch, Branch]:
    """Attention and the feed-forward part, from what was seen at their places and in the stream.

    A block that normalises first adds attention to what entered it, then the feed-forward part to
    that sum; one that normalises afterwards adds the feed-forward part to a normalised sum.
    """
    layers = range(len(anatomy.blocks))
    entering = [seen[str(i)] for i in layers]
    second = [seen[f"second {i}"] for i in layers]
    if anatomy.pre_norm:
        normed = [seen.get(f"from first {i}", entering[i]) for i in layers]
        normed_again = [seen[f"from second {i}"] for i in layers]
        leaving = [seen[str(i + 1)] for i in layers]
        return Branch(entering, normed, second), Branch(second, normed_again, leaving)
    first = [seen[f"first {i}"] for i in layers]
    between = [seen[f"from first {i}"] for i in layers]
    return Branch(entering, entering, first), Branch(between, between, second)
