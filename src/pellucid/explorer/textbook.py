"""Algorithms 1 and 2 of the SiMEC paper: a fresh metric at every point, then one step of a solver.

Nothing is corrected, so a walk that should stay in its class drifts out of it at the order of its
solver. With `blocks` every token walks by its own block of the metric and its own step length.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pellucid.explorer.eigen import Field, Rule
from pellucid.explorer.level import Level, Seen
from pellucid.explorer.regions import Region
from pellucid.explorer.rows import pick, put, where, within
from pellucid.explorer.solvers import Solver
from pellucid.explorer.state import Outcome, State, Step, norm
from pellucid.explorer.strides import Stride
from pellucid.geometry.outputs import pulled_back
from pellucid.geometry.pullback import Pullback, token_blocks

_TRIES = 24


@dataclass(eq=False)
class Textbook:
    """One step a call; `region` is projected on after it, unless there is none."""

    level: Level
    rule: Rule
    stride: Stride
    solver: Solver
    region: Region | None
    blocks: bool
    zero: float
    absolute: float = 0.0

    def begin(self, state: State) -> None:
        """The metric at the start, and with it the first stride."""
        rows = state.walking
        _, jacobian = self.level.linearise(state.w, rows)
        state.memory["jacobian"] = jacobian.double()
        self.stride.begin(state)

    def step(self, state: State, rows: Tensor) -> Step:
        """One step of each of these inputs; an adaptive one is tried again shorter."""
        jacobian = pick(state.memory["jacobian"], rows).clone()  # it is overwritten on arrival
        metric = self._metric(jacobian, pick(state.y, rows).clone(), rows)
        field = self.rule.field(metric, state, rows)
        velocity = field(metric, torch.arange(len(rows)))
        before = pick(state.w, rows).clone()
        length = self.stride(metric, state, rows)
        moves = (velocity.norm(dim=-1) > 0) & (length > 0) & length.isfinite()
        state.end(where(rows, ~moves.view(len(rows), -1).any(dim=1)), Outcome.SATURATED)
        length = torch.where(moves, length, 0.0)  # no metric, no step
        pending = rows
        result = _Result(before.clone(), torch.zeros(len(rows)).to(before))
        for _ in range(_TRIES):
            at = within(rows, pending).to(before.device)
            w = self._moved(field, velocity[at], before[at], length[at], pending, at)
            failed = self._arrive(state, pending, w, at, result)
            length[at] = self.stride.again(length[at], state, pending)
            pending = where(pending, failed)
            if len(pending) == 0:
                break
        state.end(pending, Outcome.STUCK)
        return self._recorded(metric, state, rows, before, result)

    def _moved(
        self,
        field: Field,
        velocity: Tensor,
        w: Tensor,
        length: Tensor,
        rows: Tensor,
        places: Tensor,
    ) -> Tensor:
        """The solver's step from these states (b t p)."""

        def at(other: Tensor) -> Tensor:
            seen, jacobian = self.level.linearise(other, rows)
            return field(self._metric(jacobian.double(), seen.y, rows), places).view_as(w)

        each = length[..., None] if self.blocks else length[:, None, None]
        return self.solver.step(at, w, velocity.view_as(w), each)

    def _arrive(self, state: State, rows: Tensor, w: Tensor, at: Tensor, result: _Result) -> Tensor:
        """Project, look at the metric there, and stay if the stride allows it."""
        if self.region is not None:
            free = self.level.see(w, rows)
            w = torch.where(
                pick(self.level.selected, rows)[..., None], self.region.project(w, rows), w
            )
        seen, jacobian = self.level.linearise(w, rows)
        failed = self.stride.refuses(state, rows, seen)
        kept = where(rows, ~failed)
        if len(kept):
            inner = within(rows, kept).to(w.device)
            put(state.w, kept, w[inner])
            put(state.y, kept, seen.y[inner])
            put(state.logits, kept, seen.logits[inner])
            put(state.memory["jacobian"], kept, jacobian[inner].double())
            if self.region is not None:
                result.projected[at[inner]] = _largest_change(free, seen)[inner]
        return failed

    def _metric(self, jacobian: Tensor, y: Tensor, rows: Tensor) -> Pullback:
        """The pullback at these states: of all tokens jointly, or of each by itself."""
        b = pulled_back(self.level.coordinates.take(rows), y, jacobian)
        shaped = token_blocks(b) if self.blocks else b.flatten(2)
        return Pullback(shaped, rank=y.shape[1], zero=self.zero, absolute=self.absolute)

    def _recorded(
        self, metric: Pullback, state: State, rows: Tensor, before: Tensor, result: _Result
    ) -> Step:
        """The trapezoid rule for the pseudolength, with the metrics at both ends."""
        move = pick(state.w, rows) - before
        put(state.heading, rows, move)
        after = self._metric(pick(state.memory["jacobian"], rows), pick(state.y, rows), rows)
        ends = [self._joint_norm(one, move) for one in (metric, after)]
        return Step(
            rows, norm(move), (ends[0] + ends[1]) / 2, torch.zeros_like(ends[0]), result.projected
        )

    def _joint_norm(self, metric: Pullback, move: Tensor) -> Tensor:
        """|B v| over all tokens together, whichever way the metric is laid out."""
        if not self.blocks:
            return metric.norm(move.flatten(1))
        along: Tensor = torch.einsum("btqp,btp->bq", metric.rows, move)
        return norm(along[..., None])


@dataclass(eq=False)
class _Result:
    w: Tensor
    projected: Tensor


def _largest_change(one: Seen, other: Seen) -> Tensor:
    """How far the probabilities moved at most (b)."""
    p, q = (seen.logits.double().softmax(dim=-1) for seen in (one, other))
    return (p - q).abs().amax(dim=-1)
