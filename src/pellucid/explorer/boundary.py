"""Leaving on purpose: the shortest move to the nearest linearised boundary, until it is crossed.

Not Algorithm 2 but another rule, in the manner of DeepFool (Moosavi-Dezfooli et al., CVPR 2016):
with f the lead of a class over its strongest rival and g its gradient, the shortest move after
which the linearised f is positive is -f g / |g|^2. Of several classes the one with the smallest
|f| / |g| is walked to.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pellucid.explorer.level import Level
from pellucid.explorer.regions import Everywhere, Region, clamped
from pellucid.explorer.rows import pick, put, where
from pellucid.explorer.state import Outcome, State, Step, scaled
from pellucid.geometry.outputs import Coordinates

_OVERSHOOT = 1.02
_BEYOND = 1e-3  # lead in logits with which the boundary counts as crossed


@dataclass(eq=False)
class ToBoundary:
    """Steps towards classes; `level` has their leads as its coordinates (b m)."""

    level: Level
    coordinates: Coordinates
    longest: Tensor  # b
    region: Region  # that every step is projected on

    @property
    def also(self) -> tuple[str, ...]:
        """What the projection did to the states, where there is one."""
        return () if isinstance(self.region, Everywhere) else ("clamped",)

    def begin(self, state: State) -> None:
        """Where an input is of an asked class already there is nothing to walk."""
        lead = self.level.see(state.w, state.walking).y
        rows = state.walking
        state.end(where(rows, lead.amax(dim=1) > 0), Outcome.ARRIVED)

    def step(self, state: State, rows: Tensor) -> Step:
        w = pick(state.w, rows).clone()
        seen, jacobian = self.level.linearise(w, rows)
        gradient = jacobian.double()  # b m t p
        size = gradient.flatten(2).norm(dim=2)  # b m
        distance = (_BEYOND - seen.y).clamp(min=0) / size.clamp(min=1e-300)
        distance = torch.where(size > 0, distance, torch.inf)
        nearest = distance.argmin(dim=1)
        lost = ~distance.gather(1, nearest[:, None])[:, 0].isfinite()
        state.end(where(rows, lost), Outcome.SATURATED)
        at = torch.arange(len(rows), device=w.device)
        shortest = (_OVERSHOOT * distance[at, nearest]).minimum(pick(self.longest, rows))
        shortest = torch.where(lost, 0.0, shortest)
        heading = scaled(gradient[at, nearest], 1 / size[at, nearest].clamp(min=1e-300))
        moving = pick(self.level.selected, rows)
        free = w + scaled(heading, shortest)
        moved = torch.where(moving[..., None], self.region.project(free, rows), w)
        after = self.level.see(moved, rows)
        own = self.coordinates.take(rows)
        y = own(after.logits)
        change = (own.psi(y) - own.psi(pick(state.y, rows))).norm(dim=1)
        for name, value in (("w", moved), ("y", y), ("logits", after.logits), ("heading", heading)):
            put(getattr(state, name), rows, value)
        state.end(where(rows, after.y.amax(dim=1) > 0), Outcome.ARRIVED)
        share = {name: clamped(free, moved, moving) for name in self.also}
        return Step(rows, change, share)
