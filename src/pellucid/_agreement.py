"""How far several explanations of one input say the same. Krishna et al., TMLR 2024, section 4."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from pellucid._arguments import integer, real
from pellucid._errors import ArgumentError, InputError, explain_error, unknown_name
from pellucid._rank_statistics import kendall, rank_biased_overlap, top_overlap
from pellucid._results import Explanation
from pellucid._statistics import spearman
from pellucid._types import Picture

By = Literal["spearman", "kendall", "top", "rbo"]


@dataclass(frozen=True, eq=False, repr=False)
class Agreement:
    """A number for each pair of explanations, 1 for those that say the same."""

    names: tuple[str, ...]
    values: Tensor  # e e
    by: str

    def __repr__(self) -> str:
        width = max(len(name) for name in self.names)
        numbers = [f"{i + 1}" for i in range(len(self.names))]
        lines = [" " * width + "".join(f"{number:>8}" for number in numbers) + f"  {self.by}"]
        for number, name, row in zip(numbers, self.names, self.values.tolist(), strict=True):
            lines.append(f"{name:<{width}}" + "".join(f"{v:8.3f}" for v in row) + f"  {number}")
        return "\n".join(lines)


def agreement(
    explanations: Sequence[Explanation],
    *,
    by: By = "spearman",
    top: int = 5,
    persistence: float = 0.9,
    absolute: bool = False,
) -> Agreement:
    """Compare explanations of one input by the order of their scores, each with each.

    `by` is "spearman" or "kendall" (tau-b), the part of the `top` highest that both have, or "rbo",
    rank-biased overlap, where depth d weighs `persistence` as much as the one before. `absolute`
    compares sizes, as where some methods have signs and others none.
    """
    if by not in get_args(By):
        raise ArgumentError(unknown_name("comparison", by, get_args(By), write="by={!r}"))
    integer("top", top, 1, 5)
    _check_persistence(persistence)
    scores = [one.abs() if absolute else one for one in _comparable(list(explanations))]
    names = _names(explanations)
    values = torch.eye(len(scores), dtype=torch.float64)
    for i, one in enumerate(scores):
        for j in range(i):
            found = _compared(one, scores[j], by, top, persistence)
            if found is None:
                raise _constant(names[j if len(one.unique()) > 1 else i])
            values[i, j] = values[j, i] = found
    return Agreement(names, values, f"top {top}" if by == "top" else by)


def _compared(one: Tensor, other: Tensor, by: By, top: int, persistence: float) -> float | None:
    if by == "spearman":
        return spearman(one, other)
    if by == "kendall":
        return kendall(one, other)
    return (
        top_overlap(one, other, top)
        if by == "top"
        else rank_biased_overlap(one, other, persistence)
    )


def _comparable(explanations: Sequence[Explanation]) -> list[Tensor]:
    """The scores of the user's tokens or patches (n), or maps (h w) where those differ."""
    if len(explanations) < 2 or not all(isinstance(one, Explanation) for one in explanations):
        raise ArgumentError(
            explain_error(
                "agreement is between explanations",
                got=f"a list of {len(explanations)}",
                expected="two or more that pellucid.explain returned",
                instead="pellucid.agreement([pellucid.explain(model, x, method=m) for m in names])",
            )
        )
    first = explanations[0]
    if not all(_same_input(first, one) for one in explanations):
        raise InputError(
            explain_error(
                "these explanations are of different inputs",
                got=", ".join(repr(one) for one in explanations)[:300],
                expected="one input, cut into the same tokens, explained in several ways",
                instead="pellucid.agreement(found_for_one_text)",
            )
        )
    alike = all(one.scores.dim() == 1 and one.segments == first.segments for one in explanations)
    if not alike:
        return [one.map() for one in explanations]
    own = [index for index, segment in enumerate(first.segments) if segment.role == "content"]
    return [one.scores[own].double() for one in explanations]


def _same_input(one: Explanation, other: Explanation) -> bool:
    if isinstance(one.item, Picture) and isinstance(other.item, Picture):
        views = one.item.view, other.item.view
        return views[0].shape == views[1].shape and bool((views[0] == views[1]).all())
    return one.kind == other.kind == "text" and (
        (one.item.parts, one.segments) == (other.item.parts, other.segments)  # type: ignore[union-attr]
    )


def _names(explanations: Sequence[Explanation]) -> tuple[str, ...]:
    """The methods; with the class where one stands there twice."""
    methods = Counter(one.method for one in explanations)
    return tuple(
        f"{one.method} ({one.label})" if methods[one.method] > 1 else one.method
        for one in explanations
    )


def _check_persistence(persistence: float) -> None:
    if not 0 < real("persistence", persistence, 0.9) < 1:
        raise ArgumentError(
            explain_error(
                "persistence is a part of the weight that each depth hands on",
                got=f"persistence={persistence!r}",
                expected="a number above 0 and below 1",
                instead="persistence=0.9",
            )
        )


def _constant(name: str) -> InputError:
    return InputError(
        explain_error(
            "scores that are all the same have no order to compare",
            got=f"the explanation by {name}",
            expected="at least two different scores",
            instead="leave it out of the list",
        )
    )
