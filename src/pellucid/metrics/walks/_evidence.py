"""What a metric of walks may read: a walk, what it was decoded to, and another walk beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from torch import Tensor

from pellucid._arguments import integer
from pellucid._decoded import Decoded, Prompt
from pellucid._errors import ArgumentError, explain_error
from pellucid._trajectory import Trajectory

Of = Literal["points", "decoded"]  # predictions of the walked states, or of what they look like
Against = Literal["previous", "start"]  # what a point is compared with


class Skip(Exception):
    """A walk has no such number, and this says why."""


@dataclass(frozen=True, eq=False)
class WalkMeasured:
    """What a metric of walks returns: a number, and the points that it is made of."""

    value: float
    curve: Tensor | None = None  # one number for each of `iterations`; NaN where there is none
    iterations: Tensor | None = None
    more: dict[str, float] = field(default_factory=dict)  # other numbers beside it


@dataclass(frozen=True)
class Suggested:
    """One input that a walk suggests: a decoded point, or an alternative prompt."""

    iteration: int
    probability: float  # of the class that the original was predicted as
    changed: bool  # it is predicted otherwise: in Y_c, else in Y_s


@dataclass(frozen=True, eq=False)
class Evidence:
    """One walk and what is known of it. What was not given is asked for by a designed error."""

    walk: Trajectory
    given_decoded: Decoded | None = None
    given_prompts: Sequence[Prompt] | None = None
    given_other: Trajectory | None = None

    def __post_init__(self) -> None:
        _check(self.walk, "walk", Trajectory, "what pellucid.explore returned", "explore(...)")
        if self.given_decoded is not None:
            what = "what walk.decode() returned"
            _check(self.given_decoded, "decoded", Decoded, what, "decoded=walk.decode()")
            _check_decoded(self.walk, self.given_decoded)
        if self.given_prompts is not None:
            _check_prompts(self.walk, self.given_prompts)
        if self.given_other is not None:
            what = "another walk"
            _check(self.given_other, "other", Trajectory, what, "other=pellucid.explore(...)")

    @property
    def decoded(self) -> Decoded:
        """The saved points as inputs."""
        if self.given_decoded is None:
            raise _missing("what the points were decoded to", "decoded", "walk.decode(...)")
        return self.given_decoded

    @property
    def other(self) -> Trajectory:
        """The walk to compare with."""
        if self.given_other is None:
            raise _missing("another walk from the same input", "other", "pellucid.explore(...)")
        return self.given_other

    @property
    def suggested(self) -> list[Suggested]:
        """The alternative prompts where there are any, or else the decoded inputs."""
        walk = self._classified
        if self.given_prompts is not None:
            found = [Suggested(p.iteration, p.probability, p.changed) for p in self.given_prompts]
            if not found:
                raise Skip("no alternative prompts")
            return found
        if self.given_decoded is None:
            raise _missing(
                "the inputs that it suggests",
                "prompts",
                "walk.alternatives(...), or decoded=walk.decode(...)",
            )
        decoded = self.given_decoded
        changed = [name != walk.predicted[0] for name in decoded.predicted]
        probability = decoded.probabilities[:, self.original]
        each = zip(decoded.iterations.tolist(), probability.tolist(), changed, strict=True)
        return [Suggested(*one) for one in each]

    @property
    def _classified(self) -> Trajectory:
        if len(self.walk.classes) < 2:
            raise Skip("the model has one output, and no classes")
        return self.walk

    @property
    def original(self) -> int:
        """Where the class that was predicted at the start is among the kept ones."""
        return int(self.walk.probabilities[0].argmax())

    def rows(self, stride: int) -> Tensor:
        """The saved points that many iterations apart, from the start on; at least two."""
        stride, kept = integer("stride", stride, 1, 10), self.walk.iterations.tolist()
        due = range(kept[0], kept[-1] + 1, stride)
        places = {k: i for i, k in enumerate(kept)}
        if len(kept) < 2:
            raise Skip("one recorded point")
        if len(due) < 2:
            raise Skip(f"the walk ended before iteration {stride}")
        if any(k not in places for k in due):
            raise ArgumentError(
                explain_error(
                    "the walk kept no points that many iterations apart",
                    got=f"stride={stride}, and points at {kept[:3]} and so on",
                    expected="a stride at whose multiples points were kept",
                    instead=f"stride={kept[1] - kept[0]}, or explore(..., save_every={stride})",
                )
            )
        return torch.tensor([places[k] for k in due])

    def course(self, of: Of, stride: int) -> Trajectory:
        """The walk by its points that many iterations apart, predicted as they or as decoded."""
        walk, rows = self._classified, self.rows(stride)
        told: Any = walk if of == "points" else self.decoded
        return replace(
            walk,
            iterations=walk.iterations[rows],
            points=walk.points[rows],
            probabilities=told.probabilities[rows],
            predicted=tuple(told.predicted[i] for i in rows.tolist()),
        )


def among(walk: Trajectory, top: int | None) -> Tensor:
    """The probabilities of the classes that are ranked: the likeliest at the start, or all."""
    if top is None:
        return walk.probabilities
    chosen = integer("top", top, 2, 5)
    first = walk.probabilities[0].argsort(descending=True, stable=True)
    return walk.probabilities[:, first[:chosen]]


def _missing(what: str, name: str, how: str) -> ArgumentError:
    return ArgumentError(
        explain_error(
            f"this metric needs {what}",
            got="a walk alone",
            expected=f"{name}=, for a list of walks one for each",
            instead=f"pellucid.measure_walk(walk, metric=..., {name}={how})",
        )
    )


def _check(found: Any, name: str, kind: type, expected: str, instead: str) -> None:
    if not isinstance(found, kind):
        raise ArgumentError(
            explain_error(
                f"{name} is something else",
                got=type(found).__name__,
                expected=expected,
                instead=instead,
            )
        )


def _check_decoded(walk: Trajectory, decoded: Decoded) -> None:
    same = torch.equal(walk.iterations, decoded.iterations) and walk.labels == decoded.labels
    if not same or decoded.expected != walk.predicted:
        raise ArgumentError(
            explain_error(
                "these inputs were decoded from another walk",
                got=f"{len(decoded.iterations)} decoded points of {len(decoded.labels)} classes",
                expected=f"the {len(walk.iterations)} saved points of this walk",
                instead="decoded=walk.decode()",
            )
        )


def _check_prompts(walk: Trajectory, prompts: Any) -> None:
    known = set(walk.iterations.tolist())
    listed = isinstance(prompts, Sequence) and all(isinstance(one, Prompt) for one in prompts)
    if not listed or not {one.iteration for one in prompts} <= known:
        raise ArgumentError(
            explain_error(
                "these are not the alternative prompts of this walk",
                got=type(prompts).__name__ if not listed else "prompts of other iterations",
                expected="what walk.alternatives(...) returned",
                instead="prompts=walk.alternatives(...)",
            )
        )
