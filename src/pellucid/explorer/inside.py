"""Walking inside an equivalence class without leaving it: predict along the kernel, then correct.

The direction persists: at each point it is what is left of the last one when the directions that
change the prediction are taken out. A Jacobian is kept for as long as the corrector gets along with
it. As long as it is kept, corrections change smoothly from step to step, so each is guessed from
the last three before any pass is made. Steps grow while corrections are easy and shrink when they
fail, so how far a step goes is decided by how curved the class is there, and never by how much
drift is allowed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from pellucid.explorer.corrector import Frame, Guess, correct, predict
from pellucid.explorer.directions import Reference
from pellucid.explorer.level import Level
from pellucid.explorer.rows import pick, put, within
from pellucid.explorer.spectrum import SPECTRUM, by_name, spectrum
from pellucid.explorer.state import Outcome, State, Step
from pellucid.geometry.outputs import pulled_back
from pellucid.geometry.pullback import Pullback

_EASY, _HARD = 5, 8  # corrections: up to here the step grows; beyond there the Jacobian is renewed
_GROW, _SHRINK = 2.0, 0.5
_TRIES = 24
_GUESS = torch.tensor(  # the value of the polynomial through those corrections that are known
    [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [2.0, -1.0, 0.0], [3.0, -3.0, 1.0]], dtype=torch.float64
)
_KNOWN = 3  # corrections, each for a step of length one


@dataclass(eq=False)
class Inside:
    """Steps that stay in the class; `goal` (b r) are the coordinates that are held.

    What decides (strides, ages, residuals) is on the CPU, so one number an input and correction is
    all that crosses over from a GPU.
    """

    level: Level
    reference: Reference
    goal: Tensor
    tolerance: float
    first: Tensor  # b: the first step, on the CPU
    longest: Tensor  # b: no step is longer; on the CPU
    zero: float
    also: ClassVar[tuple[str, ...]] = SPECTRUM

    def begin(self, state: State) -> None:
        """Memory for the Jacobians in use; none is known yet."""
        count, size = state.w.shape[0], state.w[0].numel()
        rank = self.goal.shape[1]
        state.memory["basis"] = state.w.new_zeros(count, rank, size)
        state.memory["inverse"] = state.w.new_zeros(count, rank, rank)
        state.memory["bends"] = state.w.new_zeros(count, _KNOWN, rank)
        state.memory["known"] = torch.zeros(count, dtype=torch.long)
        state.memory["spectrum"] = state.w.new_zeros(count, len(SPECTRUM))
        state.memory["age"] = torch.full((count,), -1)  # -1: none
        state.stride = self.first.clone()

    def step(self, state: State, rows: Tensor) -> Step:
        """One step of each of these inputs, tried again shorter where it fails."""
        y = pick(state.y, rows).clone()
        drawn = self.reference(state, rows)
        sweeps = torch.zeros(len(rows), dtype=torch.long)
        pending = rows
        for _ in range(_TRIES):
            at = within(rows, pending)
            failed, taken = self._try(state, pending, pick(drawn, at))
            sweeps[at] += taken
            pending = pending[failed]
            if len(pending) == 0:
                break
        state.end(pending, Outcome.STUCK)
        own = self.level.coordinates.take(rows)
        change = (own.psi(pick(state.y, rows)) - own.psi(y)).norm(dim=1)
        ends = by_name(pick(state.memory["spectrum"], rows).clone())
        return Step(rows, change, {"sweeps": sweeps, **ends})

    def _try(self, state: State, rows: Tensor, drawn: Tensor) -> tuple[Tensor, Tensor]:
        """Try a step; which inputs failed, and how many corrections each made."""
        self._renew(state, rows)
        memory = state.memory
        frame = Frame(pick(memory["basis"], rows), pick(memory["inverse"], rows))
        w, goal = pick(state.w, rows), pick(self.goal, rows)
        stride = pick(state.stride, rows).clone()
        weights = _GUESS[pick(memory["known"], rows)] * stride[:, None]  # b k
        guess = Guess(stride.to(w), pick(memory["bends"], rows), weights.to(w))
        found, tangent, base = predict(self.level, w, drawn, frame, guess, goal, rows)
        found = correct(self.level, found, base, frame.basis, goal, rows, self.tolerance)
        bend = found.moved / guess.stride[:, None]
        good = found.residual <= self.tolerance
        self._learn(state, rows, good, found.sweeps)
        at = good.nonzero()[:, 0]
        kept = rows[at]
        if len(kept):
            put(state.w, kept, pick(found.w, at))
            put(state.y, kept, pick(found.y, at))
            put(state.logits, kept, pick(found.logits, at))
            put(state.heading, kept, pick(tangent, at))
            put(memory["inverse"], kept, pick(found.inverse, at))
            self._remember(state, kept, pick(bend, at))
        return ~good, found.sweeps

    def _remember(self, state: State, rows: Tensor, bend: Tensor) -> None:
        """One more correction, for a step of length one."""
        before = pick(state.memory["bends"], rows)
        put(state.memory["bends"], rows, torch.cat([bend[:, None], before[:, :-1]], dim=1))
        known = pick(state.memory["known"], rows)
        put(state.memory["known"], rows, (known + 1).clamp(max=_KNOWN))

    def _renew(self, state: State, rows: Tensor) -> None:
        """New Jacobians for the inputs that have none to use."""
        memory = state.memory
        some = rows[pick(memory["age"], rows) < 0]
        if len(some) == 0:
            return
        seen, jacobian = self.level.linearise(pick(state.w, some), some)
        put(memory["spectrum"], some, self._spectrum(seen.y, jacobian.double(), some))
        frame = Frame.of(jacobian.flatten(2).double(), self.zero)
        put(memory["basis"], some, frame.basis)
        put(memory["inverse"], some, frame.inverse)
        for name in ("age", "known"):
            put(memory[name], some, torch.zeros(len(some), dtype=torch.long))

    def _spectrum(self, y: Tensor, jacobian: Tensor, rows: Tensor) -> Tensor:
        """The ends of the metric's spectrum (b 3): known again whenever the Jacobian is."""
        b = pulled_back(self.level.coordinates.take(rows), y, jacobian)
        return spectrum(Pullback(b.flatten(2), rank=y.shape[1], zero=self.zero))

    def _learn(self, state: State, rows: Tensor, good: Tensor, sweeps: Tensor) -> None:
        """The next stride, and whether the Jacobian is kept for it."""
        age, stride = pick(state.memory["age"], rows), pick(state.stride, rows)
        longest = pick(self.longest, rows)
        grown = torch.where(sweeps <= _EASY, stride * _GROW, stride).minimum(longest)
        shrunk = torch.where(age == 0, stride * _SHRINK, stride)  # an old Jacobian may be to blame
        put(state.memory["age"], rows, torch.where(good & (sweeps <= _HARD), age + 1, -1))
        put(state.stride, rows, torch.where(good, grown, shrunk))
