"""The numbers of every step, from the points of several steps at once.

Stacked points have the steps in front (n b ...); `before` is the point that the first of them was
reached from, and `start` the one where the walk began.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

SUMMED = {"length": "step", "pseudolength": "pseudolength", "output_length": "output_length"}
SUMMED |= {"arc": "arc"}  # a series, and the numbers of single steps that it is the sum of
MEASURED = (
    *("step", "turn", "displacement", "drift", "variation", "divergence"),
    *("output_drift", "output_length", "arc"),
)


@dataclass(frozen=True, eq=False)
class Points:
    """Where walks stand: one row an input, or steps and inputs in front."""

    x: Tensor  # b t d, float64: the states
    heading: Tensor  # b t d: the direction that they were reached by, of length one or none
    p: Tensor  # b c: the probabilities
    psi: Tensor  # b q: what lengths of predictions are measured in

    def at(self, step: int) -> Points:
        """The points after one of the steps."""
        return Points(*(part[step].clone() for part in self._parts))

    def shifted(self, before: Points) -> Points:
        """The points that these were reached from."""
        pairs = zip(before._parts, self._parts, strict=True)
        return Points(*(torch.cat([first[None], later[:-1]]) for first, later in pairs))

    @property
    def _parts(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return self.x, self.heading, self.p, self.psi


def headed(x: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
    """The lengths of the steps to these states (n b), and their directions (n b t d)."""
    moves = x - torch.cat([before[None], x[:-1]])
    lengths = moves.flatten(2).norm(dim=2)
    inverse = torch.where(lengths > 0, 1 / lengths.clamp(min=1e-300), 0.0)
    return lengths, moves * inverse[..., None, None]


def measure(points: Points, before: Points, start: Points, task: str) -> dict[str, Tensor]:
    """All series of points, apart from the lengths of steps (n b each)."""
    last = points.shifted(before)
    change, whole = (points.p - start.p).abs(), distributions(task, points.p)
    first = distributions(task, start.p)
    return {
        "turn": turn(last.heading, points.heading),
        "displacement": (points.x - start.x).flatten(2).norm(dim=2),
        "drift": change.amax(dim=2),
        "variation": (whole - first).abs().sum(dim=(2, 3)) / 2,
        "divergence": kl_divergence(first, whole).sum(dim=2),
        "output_drift": (points.psi - start.psi).norm(dim=2),
        "output_length": (points.psi - last.psi).norm(dim=2),
        "arc": fisher_arc(distributions(task, last.p), whole),
    }


def distributions(task: str, p: Tensor) -> Tensor:
    """Probabilities (... c) as distributions (... m c), each of which sums to one.

    Labels that do not exclude each other are one distribution each; the number that a regression
    predicts is none, and counts as one that never changes.
    """
    if task == "multilabel":
        return torch.stack([p, 1 - p], dim=-1)
    return torch.ones_like(p[..., None, :1]) if task == "regression" else p[..., None, :]


def kl_divergence(first: Tensor, then: Tensor) -> Tensor:
    """KL(first || then) of distributions (b c -> b), never negative."""
    logs = [p.clamp(min=1e-300).log() for p in (first, then)]
    return (first * (logs[0] - logs[1])).sum(dim=-1).clamp(min=0)


def fisher_arc(first: Tensor, then: Tensor) -> Tensor:
    """How far distributions are from each other in the Fisher metric (... m c -> ...).

    Of one pair it is 2 arccos sum sqrt(p p'), the angle between the unit vectors sqrt(p) at radius
    two; by way of the chord, which keeps its digits where the angle is small. Distributions that
    are independent of each other are orthogonal directions.
    """
    chords = (then.sqrt() - first.sqrt()).norm(dim=-1)  # ... m
    arcs = 4 * (chords / 2).clamp(max=1).asin()
    found: Tensor = arcs.norm(dim=-1)
    return found


def turn(first: Tensor, then: Tensor) -> Tensor:
    """The angle between directions (n b t d -> n b), zero where one is none."""
    u, v = first.flatten(2), then.flatten(2)
    angle = 2 * torch.atan2((u - v).norm(dim=2), (u + v).norm(dim=2))  # exact when small
    there = (u != 0).any(dim=2) & (v != 0).any(dim=2)
    return torch.where(there, angle, 0.0)


def completed(noted: dict[str, Tensor]) -> dict[str, Tensor]:
    """The series of whole walks (b k+1), from the numbers of their single steps."""
    step, pseudolength = noted["step"], noted["pseudolength"]
    energy = torch.where(step > 0, pseudolength**2 / step.clamp(min=1e-300), 0.0)
    sums = {name: noted[of].cumsum(dim=1) for name, of in SUMMED.items()}
    return noted | sums | {"energy": energy.cumsum(dim=1)}
