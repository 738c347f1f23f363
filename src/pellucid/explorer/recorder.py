"""What is kept of a walk while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pellucid._target import check_finite
from pellucid._trajectory import SERIES, stacked
from pellucid.explorer.rows import put
from pellucid.explorer.state import Step, check_like

if TYPE_CHECKING:
    from pellucid.explorer.plan import Plan


_SAVED = ("points", "probabilities", "likeliest")


@dataclass(frozen=True, eq=False)
class Kept:
    """What is kept of one walk."""

    series: dict[str, Tensor]  # k + 1 each
    iterations: Tensor  # s
    points: Tensor  # s m d
    probabilities: Tensor  # s c
    likeliest: list[int]  # s: the classes that were predicted


class Recorder:
    """Series of every step, and points of some; one row an input, on the device until the end."""

    def __init__(self, walk: Plan, save_every: int) -> None:
        self._walk = walk
        self._every = save_every
        self._series: dict[str, list[Tensor]] = {name: [] for name in SERIES}
        self._saved: dict[int, tuple[Tensor, Tensor, Tensor]] = {}  # points, probabilities, classes
        self._lengths = torch.full((len(walk.state.w),), -1, dtype=torch.long)
        self._last: Tensor | None = None  # psi
        self._first: tuple[Tensor, Tensor] | None = None  # state and probabilities

    def note(self, k: int, step: Step | None) -> None:
        """Account for a step; None is the start."""
        state, level = self._walk.state, self._walk.level
        everyone = torch.arange(len(state.w))
        x = level.state(state.w, everyone)
        p = self._walk.probabilities(state.logits)
        psi = self._walk.coordinates.psi(state.y).clone()
        if self._first is None or self._last is None:
            self._first, self._last = (x.clone(), p.clone()), psi
        values = self._values(x, p, psi, step)
        for name in SERIES:
            self._series[name].append(values[name])
        self._last = psi
        moved = everyone if step is None else step.rows
        self._lengths[moved] = k
        if k % self._every == 0:
            check_finite(state.logits, self._walk.case.adapter.name)
            self._keep(k, x, p)

    @property
    def displacement(self) -> Tensor:
        """How far from its start each input is (b)."""
        return self._series["displacement"][-1]

    def beyond(self, distance: float) -> Tensor:
        """The inputs that are still walking and as far from their start as asked."""
        far = self.displacement >= distance
        return (far.cpu() & (self._walk.state.outcome == 0)).nonzero()[:, 0]

    def finish(self, k: int) -> None:
        """Keep the last points too."""
        if k not in self._saved:
            state, level = self._walk.state, self._walk.level
            x = level.state(state.w, torch.arange(len(state.w)))
            self._keep(k, x, self._walk.probabilities(state.logits))

    def of(self, row: int) -> Kept:
        """What was kept of one input."""
        last = int(self._lengths[row])
        series = {
            name: stacked(found)[row, : last + 1].double().cpu().clone()
            for name, found in self._series.items()
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

    def _values(self, x: Tensor, p: Tensor, psi: Tensor, step: Step | None) -> dict[str, Tensor]:
        """The value of every series after this step (b each)."""
        assert self._first is not None
        assert self._last is not None
        none = torch.zeros(len(x), dtype=torch.float64, device=x.device)
        new = {name: none.clone() for name in ("step", "pseudolength", "sweeps", "projected")}
        if step is not None:
            put(new["step"], step.rows, step.length)
            put(new["pseudolength"], step.rows, step.pseudolength)
            put(new["sweeps"], step.rows, step.sweeps)
            put(new["projected"], step.rows, step.projected)
        speed = torch.where(
            new["step"] > 0, new["pseudolength"] ** 2 / new["step"].clamp(1e-300), none
        )
        return {
            "drift": (p - self._first[1]).abs().amax(dim=1),
            "displacement": (x - self._first[0]).flatten(1).norm(dim=1),
            "length": self._sum("length", new["step"]),
            "pseudolength": self._sum("pseudolength", new["pseudolength"]),
            "output_length": self._sum("output_length", (psi - self._last).norm(dim=1)),
            "energy": self._sum("energy", speed),
            "step": new["step"],
            "sweeps": new["sweeps"],
            "projected": new["projected"],
            "divergence": self._walk.divergence(self._first[1], p),
        }

    def _sum(self, name: str, new: Tensor) -> Tensor:
        before = self._series[name]
        return before[-1] + new if before else new

    def _keep(self, k: int, x: Tensor, p: Tensor) -> None:
        state_type = self._walk.level.origin.dtype
        shown = p.gather(1, self._walk.classes)
        self._saved[k] = (x.to(state_type).cpu(), shown.cpu(), p.argmax(dim=1).cpu())

    # ---- keeping and continuing ------------------------------------------------------------------

    @property
    def lengths(self) -> Tensor:
        """How many steps each input has taken."""
        return self._lengths

    def since(self, step: int) -> dict[str, Tensor]:
        """What was noted after this step, up to the last saved point: one part of a file."""
        last = max(self._saved)
        noted = [torch.stack(found[step + 1 : last + 1]) for found in self._series.values()]
        parts = dict(zip(_SAVED, self._saved[last], strict=True))
        return parts | {"series": torch.stack(noted).cpu()}  # n k b

    def extend(self, part: Mapping[str, Tensor]) -> None:
        """Account for what `since` gave; a ValueError where that is of another walk."""
        noted, known = part["series"], self._series["drift"]
        check_like(noted, torch.empty(len(SERIES), noted.shape[1], *known[0].shape).double())
        points, probabilities, likeliest = (part[name] for name in _SAVED)
        for found, like in zip((points, probabilities, likeliest), self._saved[0], strict=True):
            check_like(found, like)
        for name, values in zip(SERIES, noted.to(known[0].device), strict=True):
            self._series[name] += list(values)
        self._saved[len(known) - 1] = (points, probabilities, likeliest)

    def go_on(self, k: int, lengths: Tensor) -> None:
        """Continue behind step k, when the state and all parts have been read."""
        check_like(lengths, self._lengths)
        if k != len(self._series["drift"]) - 1 or k not in self._saved:
            raise ValueError(f"parts of {len(self._series['drift']) - 1} steps, where {k} are due")
        self._lengths = lengths
        self._last = self._walk.coordinates.psi(self._walk.state.y).clone()
