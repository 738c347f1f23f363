"""Algorithms 1 and 2 of the SiMEC paper: a fresh metric at every point, then one step of a solver.

Nothing is corrected, so a walk that should stay in its class drifts out of it at the order of its
solver. With `blocks` every token walks by its own block of the metric and its own step length.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pellucid.explorer.eigen import Field, Rule
from pellucid.explorer.level import Level
from pellucid.explorer.predictions import probabilities
from pellucid.explorer.regions import Region, clamped
from pellucid.explorer.rows import pick, put, renewed, where, within
from pellucid.explorer.solvers import Solver
from pellucid.explorer.spectrum import SPECTRUM, by_name, spectrum
from pellucid.explorer.state import Outcome, State, Step, norm
from pellucid.explorer.strides import Stride
from pellucid.geometry.outputs import pulled_back
from pellucid.geometry.pullback import Pullback, token_blocks

PROJECTION = ("projected", "unprojected", "clamped")
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
    growing: Tensor | None = None  # b: the classes whose outputs are to grow

    @property
    def also(self) -> tuple[str, ...]:
        """The series that only some walks have, and these do."""
        projection = () if self.region is None else PROJECTION[1:]
        return (*SPECTRUM, *projection, *(() if self.growing is None else ("growth",)))

    def begin(self, state: State) -> None:
        """The metric at the start, and with it the first stride."""
        rows = state.walking
        _, jacobian = self.level.linearise(state.w, rows)
        state.memory["jacobian"] = jacobian.double()
        self._first = self._probabilities(state.logits).clone()
        self._start = state.y.clone()
        self.stride.begin(state)

    def step(self, state: State, rows: Tensor) -> Step:
        """One step of each of these inputs; an adaptive one is tried again shorter."""
        y = pick(state.y, rows).clone()  # it is overwritten on arrival
        metric = self._metric(pick(state.memory["jacobian"], rows), y, rows)
        field = self.rule.field(metric, state, rows)
        velocity = field(metric, torch.arange(len(rows)))
        before = pick(state.w, rows).clone()
        length = self.stride(metric, state, rows)
        moves = (velocity.norm(dim=-1) > 0) & (length > 0) & length.isfinite()
        state.end(where(rows, ~moves.view(len(rows), -1).any(dim=1)), Outcome.SATURATED)
        length = torch.where(moves, length, 0.0)  # no metric, no step
        pending = rows
        result = before.new_zeros(len(rows), len(PROJECTION))
        for _ in range(_TRIES):
            at = within(rows, pending)
            v, x, h = (pick(one, at) for one in (velocity, before, length))
            w = self._moved(field, v, x, h, pending, at)
            failed = self._arrive(state, pending, w, at, result)
            length = renewed(length, at, self.stride.again(h, state, pending))
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

    def _arrive(self, state: State, rows: Tensor, w: Tensor, at: Tensor, result: Tensor) -> Tensor:
        """Project, look at the metric there, and stay if the stride allows it."""
        if self.region is not None:
            free, moving = w, pick(self.level.selected, rows)
            before = self._probabilities(self.level.see(free, rows).logits)
            w = torch.where(moving[..., None], self.region.project(free, rows), free)
        seen, jacobian = self.level.linearise(w, rows)
        failed = self.stride.refuses(state, rows, seen)
        kept = where(rows, ~failed)
        if len(kept):
            inner, memory = within(rows, kept), state.memory
            put(state.w, kept, pick(w, inner))
            put(state.y, kept, pick(seen.y, inner))
            put(state.logits, kept, pick(seen.logits, inner))
            there = pick(jacobian, inner).double()
            memory["jacobian"] = renewed(memory["jacobian"], kept, there)
            if self.region is not None:
                changes = (self._probabilities(seen.logits), pick(self._first, rows))
                projected, unprojected = ((before - p).abs().amax(dim=1) for p in changes)
                told = (projected, unprojected, clamped(free, w, moving))
                put(result, at[inner], pick(torch.stack(told, dim=1), inner))
        return failed

    def _metric(self, jacobian: Tensor, y: Tensor, rows: Tensor) -> Pullback:
        """The pullback at these states: of all tokens jointly, or of each by itself."""
        b = pulled_back(self.level.coordinates.take(rows), y, jacobian)
        shaped = token_blocks(b) if self.blocks else b.flatten(2)
        return Pullback(shaped, rank=y.shape[1], zero=self.zero, absolute=self.absolute)

    def _recorded(
        self, metric: Pullback, state: State, rows: Tensor, before: Tensor, result: Tensor
    ) -> Step:
        """The trapezoid rule for the pseudolength, with the metrics at both ends."""
        move = pick(state.w, rows) - before
        put(state.heading, rows, move)
        after = self._metric(pick(state.memory["jacobian"], rows), pick(state.y, rows), rows)
        ends = [self._joint_norm(one, move) for one in (metric, after)]
        more = by_name(spectrum(metric))
        if self.region is not None:
            more |= dict(zip(PROJECTION, result.unbind(dim=1), strict=True))
        if self.growing is not None:
            own, classes = self.level.coordinates.take(rows), pick(self.growing, rows)
            now, start = (pick(y, rows) for y in (state.y, self._start))
            more["growth"] = own.class_output(now, classes) - own.class_output(start, classes)
        return Step(rows, (ends[0] + ends[1]) / 2, more)

    def _joint_norm(self, metric: Pullback, move: Tensor) -> Tensor:
        """|B v| over all tokens together, whichever way the metric is laid out."""
        if not self.blocks:
            return metric.norm(move.flatten(1))
        along: Tensor = torch.einsum("btqp,btp->bq", metric.rows, move)
        return norm(along[..., None])

    def _probabilities(self, logits: Tensor) -> Tensor:
        return probabilities(self.level.case.adapter.task, logits)
