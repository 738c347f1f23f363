"""What is kept of a walk while it runs.

A step costs the walk a few copies. Everything else is computed for several steps at once, at the
saved points, or before where the states would take too much memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pellucid._target import check_finite
from pellucid._trajectory import SERIES
from pellucid.explorer.rows import renewed
from pellucid.explorer.series import MEASURED, Points, completed, headed, measure
from pellucid.explorer.state import Step, check_like

if TYPE_CHECKING:
    from pellucid.explorer.plan import Plan


_SAVED = ("points", "probabilities", "likeliest")
_STEPS = ("pseudolength", "sweeps", "projected")  # what every step says of itself
_MEMORY = 2**24  # bytes of states and predictions that wait to be accounted for


@dataclass(frozen=True, eq=False)
class Kept:
    """What is kept of one walk."""

    series: dict[str, Tensor]  # k + 1 each
    iterations: Tensor  # s
    points: Tensor  # s m d
    probabilities: Tensor  # s c
    likeliest: list[int]  # s: the classes that were predicted


@dataclass(frozen=True, eq=False)
class _Noted:
    """What a step leaves to be accounted for."""

    w: Tensor  # b t p
    y: Tensor  # b r
    logits: Tensor  # b c
    step: Step | None


class Recorder:
    """Series of every step, and points of some; one row an input, on the device until the end."""

    def __init__(self, walk: Plan, save_every: int) -> None:
        self._walk = walk
        self._every = save_every
        self._of_steps = (*_STEPS, *walk.stepper.also)
        self._names = (*MEASURED, *self._of_steps)
        self._noted: list[_Noted] = []
        self._series: list[Tensor] = []  # b f, one a step
        self._saved: dict[int, tuple[Tensor, Tensor, Tensor]] = {}  # points, probabilities, classes
        self._lengths = torch.full((len(walk.state.w),), -1, dtype=torch.long)
        self._start: Points | None = None
        self._last: Points | None = None
        self._far: Tensor | None = None
        self._whole: dict[str, Tensor] | None = None
        state = walk.state
        size = 8 * (state.w.numel() + state.logits.numel())
        self._most = max(1, _MEMORY // size)

    def note(self, k: int, step: Step | None) -> None:
        """Account for a step; None is the start."""
        state = self._walk.state
        noted = _Noted(state.w.clone(), state.y.clone(), state.logits.clone(), step)
        self._noted.append(noted)
        self._far = None
        self._lengths[slice(None) if step is None else step.rows] = k
        saved = k % self._every == 0
        if saved or len(self._noted) >= self._most:
            self._account()
        if saved:
            check_finite(state.logits, self._walk.case.adapter.name)
            self._keep(k)

    @property
    def displacement(self) -> Tensor:
        """How far from its start each input is (b)."""
        assert self._start is not None
        if self._far is None:
            state, level = self._walk.state, self._walk.level
            x = level.state(state.w, torch.arange(len(state.w)))
            self._far = (x - self._start.x).flatten(1).norm(dim=1)
        return self._far

    def beyond(self, distance: float) -> Tensor:
        """The inputs that are still walking and as far from their start as asked."""
        far = self.displacement >= distance
        return (far.cpu() & (self._walk.state.outcome == 0)).nonzero()[:, 0]

    def finish(self, k: int) -> None:
        """Keep the last points too."""
        self._account()
        if k not in self._saved:
            self._keep(k)

    def of(self, row: int) -> Kept:
        """What was kept of one input."""
        last = int(self._lengths[row])
        if self._whole is None:
            found = torch.stack(self._series).cpu().permute(2, 1, 0)  # f b k
            self._whole = completed(dict(zip(self._names, found, strict=True)))
        own = {name: found[row, : last + 1] for name, found in self._whole.items()}
        series = {
            name: own[name].clone(memory_format=torch.contiguous_format)
            for name in SERIES
            if name in own
        }
        kept = [(k, self._saved[k]) for k in sorted(self._saved) if k <= last]
        if kept[-1][0] < last:  # it ended between two saved points, and stayed where it was
            kept.append((last, self._saved[min(k for k in self._saved if k > last)]))
        chosen = self._walk.level.selected[row].cpu()
        points = torch.stack([saved[0][row][chosen] for _, saved in kept])
        probabilities = torch.stack([saved[1][row] for _, saved in kept])
        likeliest = [int(saved[2][row]) for _, saved in kept]
        return Kept(series, torch.tensor([k for k, _ in kept]), points, probabilities, likeliest)

    # ---- inside ------------------------------------------------------------------------------

    def _account(self) -> None:
        """The series of the steps that wait for it."""
        noted, self._noted = self._noted, []
        if not noted:
            return
        x, p, psi = self._seen(noted)
        before = self._last or Points(x[0], torch.zeros_like(x[0]), p[0], psi[0])
        lengths, headings = headed(x, before.x)
        points = Points(x, headings, p, psi)
        self._start = self._start or before
        task = self._walk.case.adapter.task
        values = measure(points, before, self._start, task) | {"step": lengths}
        measured = torch.stack([values[name] for name in MEASURED], dim=2)  # n b f
        own = torch.stack([self._told(one.step) for one in noted])
        self._series += torch.cat([measured, own], dim=2)
        self._last = points.at(-1)

    def _seen(self, noted: list[_Noted]) -> tuple[Tensor, Tensor, Tensor]:
        """States, probabilities and what lengths of predictions are measured in (n b ...)."""
        w = torch.cat([one.w for one in noted])
        rows = torch.arange(len(self._lengths)).repeat(len(noted))
        x = self._walk.level.state(w, rows).unflatten(0, (len(noted), -1))
        p = self._walk.probabilities(torch.stack([one.logits for one in noted]))
        psi = self._walk.coordinates.psi(torch.stack([one.y for one in noted]))
        return x, p, psi

    def _told(self, step: Step | None) -> Tensor:
        """What a step says of itself (b f); zero for inputs that did not take it."""
        like = self._walk.state.w
        nothing = like.new_zeros(len(like), len(self._of_steps))
        if step is None:
            return nothing
        given = {"pseudolength": step.pseudolength, **step.more}
        none = nothing[: len(step.rows), 0]
        told = [given.get(name, none).to(like, non_blocking=True) for name in self._of_steps]
        return renewed(nothing, step.rows, torch.stack(told, dim=1))

    def _keep(self, k: int) -> None:
        assert self._last is not None
        x, p = self._last.x, self._last.p
        shown = p.gather(1, self._walk.classes)
        state_type = self._walk.level.origin.dtype
        self._saved[k] = (x.to(state_type).cpu(), shown.cpu(), p.argmax(dim=1).cpu())

    # ---- keeping and continuing ------------------------------------------------------------------

    def to_tensors(self) -> dict[str, Tensor]:
        """What the next step adds to: how many each input has taken, and the last direction."""
        assert self._last is not None
        return {"lengths": self._lengths, "direction": self._last.heading.cpu()}

    def since(self, step: int) -> dict[str, Tensor]:
        """What was noted after this step, up to the last saved point: one part of a file."""
        last = max(self._saved)
        noted = torch.stack(self._series[step + 1 : last + 1])  # n b f
        return dict(zip(_SAVED, self._saved[last], strict=True)) | {"series": noted.cpu()}

    def extend(self, part: Mapping[str, Tensor]) -> None:
        """Account for what `since` gave; a ValueError where that is of another walk."""
        noted, known = part["series"], self._series[0]
        check_like(noted, known.new_empty(noted.shape[0], *known.shape))
        points, probabilities, likeliest = (part[name] for name in _SAVED)
        for found, like in zip((points, probabilities, likeliest), self._saved[0], strict=True):
            check_like(found, like)
        self._series += noted.to(known.device)
        self._saved[len(self._series) - 1] = (points, probabilities, likeliest)

    def go_on(self, k: int, tensors: Mapping[str, Tensor]) -> None:
        """Continue behind step k, when the state and all parts have been read."""
        own, known = self.to_tensors(), len(self._series) - 1
        for name, like in own.items():
            check_like(tensors[name], like)
        if k != known or k not in self._saved:
            raise ValueError(f"parts of {known} steps, where {k} are due")
        self._lengths = tensors["lengths"]
        state = self._walk.state
        x, p, psi = self._seen([_Noted(state.w, state.y, state.logits, None)])
        self._last = Points(x[0], tensors["direction"].to(x.device, copy=True), p[0], psi[0])
        self._far = None
