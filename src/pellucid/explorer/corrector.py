"""Back to the level set, by forward passes alone.

With J = A Q at some point on the way (Q orthonormal rows spanning J's, A square), the state is
moved in the span of Q only: x = base - Q' u. What is solved for is u, as many numbers as the
prediction has coordinates. The first guess of the slope is A; Broyden's rank-one rule improves it
from what each pass shows, so the Jacobian can be kept for many steps. What is carried along is the
inverse of the slope, by the formula of Sherman and Morrison, so nothing is ever solved.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pellucid.explorer.level import Level, Seen
from pellucid.explorer.rows import pick, put, where, within

_DIVERGED = 4.0  # times the first residual: no use going on
_TINY = 1e-300


@dataclass(eq=False)
class Frame:
    """An orthonormal basis of J's rows (b r n) and the inverse of the slope along it (b r r)."""

    basis: Tensor
    inverse: Tensor

    @classmethod
    def of(cls, jacobian: Tensor, zero: float) -> Frame:
        """The frame of a Jacobian (b r n); directions that change nothing are left out.

        Their sizes are those of the turned rows themselves: the eigenvalues of J J' have only half
        of the digits, so a root of them is never as small as nothing. What that costs the rows in
        orthogonality is given back by two steps towards (Q Q')^(-1/2) Q, as Newton and Schulz have
        it.
        """
        turned = torch.linalg.eigh(jacobian @ jacobian.transpose(1, 2))[1].transpose(1, 2)
        along = turned @ jacobian  # b r n
        sizes = along.norm(dim=2)
        kept = sizes > zero * sizes.amax(dim=1, keepdim=True)
        inverse = torch.where(kept, 1 / sizes.clamp(min=_TINY), 0.0)[..., None]
        basis, inverse = inverse * along, inverse * turned
        for _ in range(2):
            gap = basis @ basis.transpose(1, 2)
            basis, inverse = (1.5 * one - 0.5 * gap @ one for one in (basis, inverse))
        return cls(basis, inverse)

    def without(self, v: Tensor) -> Tensor:
        """The part of v (b t p) that the basis does not span: twice, so that nothing is left."""
        flat = v.flatten(1)[..., None]  # b n 1
        for _ in range(2):
            flat = flat - self.basis.transpose(1, 2) @ (self.basis @ flat)
        return flat[..., 0].view_as(v)


@dataclass(eq=False)
class Corrected:
    """States on the level set, or as near as they came."""

    w: Tensor  # b t p
    seen: Seen
    inverse: Tensor  # b r r: what the passes taught about the slope
    moved: Tensor  # b r: the correction, in the span of the basis
    sweeps: Tensor  # b
    residual: Tensor  # b


def correct(
    level: Level,
    base: Tensor,
    frame: Frame,
    goal: Tensor,
    rows: Tensor,
    tolerance: float,
    guess: Tensor,
    most: int = 12,
) -> Corrected:
    """Move the states `base` of these inputs until their coordinates are `goal` (b r).

    `guess` (b r) is the correction that is tried first.
    """
    w = base - _times(frame.basis.transpose(1, 2), guess).view_as(base)
    seen = level.see(w, rows)
    gap, moved = seen.y - goal, guess.clone()
    first = gap.norm(dim=1)
    none = torch.zeros_like(first)
    found = Corrected(w, seen, frame.inverse.clone(), moved, none, first.clone())

    def sweep(numbers: Tensor, parts: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return _sweep(level, numbers, *parts)

    for _ in range(most):
        going = (found.residual > tolerance) & (found.residual < _DIVERGED * first + tolerance)
        some = where(rows, going)
        if len(some) == 0:
            break
        at = within(rows, some)
        whole = (base, frame.basis, found.inverse, gap, moved, goal)
        new = level.run("sweep", sweep, tuple(pick(part, at) for part in whole), some)
        for kept, value in zip(
            (found.w, seen.y, seen.logits, found.inverse, gap, moved, found.residual),
            new,
            strict=True,
        ):
            put(kept, at, value)
        found.sweeps += going
    return found


def _sweep(
    level: Level,
    rows: Tensor,
    base: Tensor,
    basis: Tensor,
    inverse: Tensor,
    gap: Tensor,
    moved: Tensor,
    goal: Tensor,
) -> tuple[Tensor, ...]:
    """One correction: a quasi-Newton step, a forward pass, and what it teaches."""
    change = _times(inverse, gap)
    moved = moved + change
    w = base - _times(basis.transpose(1, 2), moved).view_as(base)
    y, logits = level.values(w, rows)
    new_gap = y - goal
    fallen = gap - new_gap  # what the slope should have made of the change
    missed = change - _times(inverse, fallen)
    along = _times(inverse.transpose(1, 2), change)
    size = (along * fallen).sum(dim=1)
    useful = size.abs() > _TINY
    update = missed[..., None] * along[:, None, :] / torch.where(useful, size, 1.0)[:, None, None]
    inverse = inverse + torch.where(useful[:, None, None], update, 0.0)
    residual = new_gap.norm(dim=1).nan_to_num(nan=torch.inf)
    return w, y, logits, inverse, new_gap, moved, residual


def _times(matrix: Tensor, v: Tensor) -> Tensor:
    return (matrix @ v[..., None])[..., 0]
