"""Back to the level set, by forward passes alone.

With J = A Q at some point on the way (Q orthonormal rows spanning J's, A square), the state is
moved in the span of Q only: x = base - Q' u. What is solved for is u, as many numbers as the
prediction has coordinates. The first guess of the slope is A; Broyden's rank-one rule improves it
from what each pass shows, so the Jacobian can be kept for many steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pellucid.explorer.level import Level, Seen
from pellucid.explorer.rows import pick, where, within

_DIVERGED = 4.0  # times the first residual: no use going on


@dataclass(eq=False)
class Frame:
    """An orthonormal basis of J's rows (b r n) and the coordinates' slope along it (b r r)."""

    basis: Tensor
    slope: Tensor

    @classmethod
    def of(cls, jacobian: Tensor, zero: float) -> Frame:
        """The frame of a Jacobian (b r n); directions that change nothing are left out."""
        values, vectors = torch.linalg.eigh(jacobian @ jacobian.transpose(1, 2))
        sizes = values.clamp(min=0).sqrt()  # b r
        kept = sizes > zero * sizes[:, -1:]
        inverse = torch.where(kept, 1 / sizes.clamp(min=1e-300), 0.0)
        basis = inverse[..., None] * (vectors.transpose(1, 2) @ jacobian)
        largest = sizes[:, -1:].clamp(min=1e-300)
        slope = vectors * torch.where(kept, sizes, largest)[:, None, :]
        return cls(basis, slope)

    def without(self, v: Tensor) -> Tensor:
        """The part of v (b t p) that the basis does not span: twice, so that nothing is left."""
        flat = v.flatten(1)[..., None]  # b n 1
        for _ in range(2):
            flat = flat - self.basis.transpose(1, 2) @ (self.basis @ flat)
        return flat[..., 0].view_as(v)

    def along(self, u: Tensor, like: Tensor) -> Tensor:
        """Q' u as a move of the state (b r -> b t p)."""
        return (self.basis.transpose(1, 2) @ u[..., None])[..., 0].view_as(like)


@dataclass(eq=False)
class Corrected:
    """States on the level set, or as near as they came."""

    w: Tensor
    seen: Seen
    slope: Tensor
    sweeps: Tensor  # b
    residual: Tensor  # b


def correct(
    level: Level,
    base: Tensor,
    frame: Frame,
    goal: Tensor,
    rows: Tensor,
    tolerance: float,
    most: int = 8,
) -> Corrected:
    """Move the states `base` of these inputs until their coordinates are `goal` (b r)."""
    seen = level.see(base, rows)
    gap = seen.y - goal
    first = gap.norm(dim=1)
    found = Corrected(base.clone(), seen, frame.slope.clone(), torch.zeros_like(first), first)
    moved = torch.zeros_like(gap)
    y, logits = seen.y.clone(), seen.logits.clone()
    for _ in range(most):
        open_ = (found.residual > tolerance) & (found.residual < _DIVERGED * first + tolerance)
        some = where(rows, open_)
        if len(some) == 0:
            break
        at = within(rows, some).to(base.device)
        change = torch.linalg.solve_ex(found.slope[at], gap[at])[0]
        moved[at] += change
        some_frame = Frame(frame.basis[at], frame.slope[at])
        w = base[at] - some_frame.along(moved[at], base[at])
        seen = level.see(w, some)
        new_gap = seen.y - goal[at]
        found.slope[at] += _broyden(found.slope[at], change, gap[at] - new_gap)
        gap[at], y[at], logits[at], found.w[at] = new_gap, seen.y, seen.logits, w
        found.residual[at] = new_gap.norm(dim=1).nan_to_num(nan=torch.inf)
        found.sweeps[at] += 1
    found.seen = Seen(y, logits)
    return found


def _broyden(slope: Tensor, change: Tensor, fallen: Tensor) -> Tensor:
    """The rank-one update after which the slope explains the last move (b r r)."""
    missed = fallen - (slope @ change[..., None])[..., 0]
    size = change.square().sum(dim=1)[:, None, None].clamp(min=1e-300)
    return missed[..., None] * change[:, None, :] / size


def linearised(level: Level, w: Tensor, rows: Tensor, zero: float) -> tuple[Seen, Frame]:
    """The prediction and a fresh frame at these states."""
    seen, jacobian = level.linearise(w, rows)
    return seen, Frame.of(jacobian.flatten(2).double(), zero)


def taken(frame: Frame, rows: Tensor) -> Frame:
    """The frame of some of the inputs."""
    return Frame(pick(frame.basis, rows), pick(frame.slope, rows))
