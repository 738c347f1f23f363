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

from pellucid.explorer.level import Level
from pellucid.explorer.rows import pick, renewed
from pellucid.explorer.state import scaled, unit

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


def without(basis: Tensor, v: Tensor) -> Tensor:
    """The part of v (b t p) that a basis (b r n) does not span: twice, so that nothing is left."""
    flat = v.flatten(1)[..., None]  # b n 1
    for _ in range(2):
        flat = flat - basis.transpose(1, 2) @ (basis @ flat)
    return flat[..., 0].view_as(v)


def moved_in(basis: Tensor, base: Tensor, u: Tensor) -> Tensor:
    """base - Q' u (b t p)."""
    return base - _times(basis.transpose(1, 2), u).view_as(base)


@dataclass(frozen=True, eq=False)
class Corrected:
    """States on the level set, or as near as they came; what decides is on the CPU."""

    w: Tensor  # b t p
    y: Tensor  # b r
    logits: Tensor  # b c
    inverse: Tensor  # b r r: what the passes taught about the slope
    gap: Tensor  # b r: what is missing to the goal
    moved: Tensor  # b r: the correction, in the span of the basis
    residual: Tensor  # b: the size of the gap
    sweeps: Tensor  # b: corrections that were made

    def after(self, new: tuple[Tensor, ...], at: Tensor) -> Corrected:
        """The same with what one more sweep made of the inputs at these places."""
        own = (self.w, self.y, self.logits, self.inverse, self.gap, self.moved, self.residual)
        w, y, logits, inverse, gap, moved, residual = (
            renewed(old, at, one) for old, one in zip(own, new, strict=True)
        )
        sweeps = self.sweeps.index_add(0, at, torch.ones_like(at))
        return Corrected(w, y, logits, inverse, gap, moved, residual, sweeps)


@dataclass(frozen=True, eq=False)
class Guess:
    """How far a step goes, and what its correction will be: a sum of those of earlier steps."""

    stride: Tensor  # b
    bends: Tensor  # b k r: corrections, each for a step of length one
    weights: Tensor  # b k


def predict(
    level: Level,
    w: Tensor,
    heading: Tensor,
    frame: Frame,
    guess: Guess,
    goal: Tensor,
    rows: Tensor,
) -> tuple[Corrected, Tensor, Tensor]:
    """Go along the kernel: where the guess leads, the unit tangent, and the end of the tangent."""

    def program(numbers: Tensor, parts: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        w, heading, basis, goal, stride, bends, weights = parts
        tangent = unit(without(basis, heading))
        base = w + scaled(tangent, stride)
        moved = (weights[..., None] * bends).sum(dim=1)  # b r
        reached = moved_in(basis, base, moved)
        y, logits = level.values(reached, numbers)
        gap = y - goal
        return reached, y, logits, gap, moved, _size(gap), tangent, base

    parts = (w, heading, frame.basis, goal, guess.stride, guess.bends, guess.weights)
    reached, y, logits, gap, moved, residual, tangent, base = level.run(
        "predict", program, parts, rows
    )
    none = torch.zeros(len(rows), dtype=torch.long)
    found = Corrected(reached, y, logits, frame.inverse, gap, moved, residual.cpu(), none)
    return found, tangent, base


def correct(
    level: Level,
    found: Corrected,
    base: Tensor,
    basis: Tensor,
    goal: Tensor,
    rows: Tensor,
    tolerance: float,
    most: int = 12,
) -> Corrected:
    """Move the states further in the span of a basis until their coordinates are `goal` (b r).

    `found` is where a first guess led from the states `base`.
    """

    def sweep(numbers: Tensor, parts: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return _sweep(level, numbers, *parts)

    hopeless = _DIVERGED * found.residual + tolerance
    for _ in range(most):
        at = ((found.residual > tolerance) & (found.residual < hopeless)).nonzero()[:, 0]
        if len(at) == 0:
            break
        parts = (base, basis, found.inverse, found.gap, found.moved, goal)
        some = tuple(pick(part, at) for part in parts)
        *tensors, residual = level.run("sweep", sweep, some, rows[at])
        found = found.after((*tensors, residual.cpu()), at)
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
    w = moved_in(basis, base, moved)
    y, logits = level.values(w, rows)
    new_gap = y - goal
    fallen = gap - new_gap  # what the slope should have made of the change
    missed = change - _times(inverse, fallen)
    along = _times(inverse.transpose(1, 2), change)
    size = (along * fallen).sum(dim=1)
    useful = size.abs() > _TINY
    update = missed[..., None] * along[:, None, :] / torch.where(useful, size, 1.0)[:, None, None]
    inverse = inverse + torch.where(useful[:, None, None], update, 0.0)
    return w, y, logits, inverse, new_gap, moved, _size(new_gap)


def _size(gap: Tensor) -> Tensor:
    """How far off the coordinates are (b); what is not a number is infinitely far."""
    found: Tensor = gap.norm(dim=1).nan_to_num(nan=torch.inf)
    return found


def _times(matrix: Tensor, v: Tensor) -> Tensor:
    return (matrix @ v[..., None])[..., 0]
