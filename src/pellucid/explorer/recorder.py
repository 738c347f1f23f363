"""What is kept of a walk while it runs, and the file from which a killed one continues."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from pellucid._errors import StoreError, explain_error
from pellucid._store import replacing
from pellucid._target import check_finite
from pellucid._trajectory import SERIES, kl_divergence, stacked
from pellucid.explorer.rows import put
from pellucid.explorer.state import State, Step

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
            self._first, self._last = (x.clone(), p), psi
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
        return (far & (self._walk.state.outcome == 0)).nonzero()[:, 0].cpu()

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
            "divergence": kl_divergence(self._first[1], p),
        }

    def _sum(self, name: str, new: Tensor) -> Tensor:
        before = self._series[name]
        return before[-1] + new if before else new

    def _keep(self, k: int, x: Tensor, p: Tensor) -> None:
        state_type = self._walk.level.origin.dtype
        shown = p.gather(1, self._walk.classes)
        self._saved[k] = (x.to(state_type).cpu(), shown.cpu(), p.argmax(dim=1).cpu())

    def to_tensors(self) -> dict[str, Tensor]:
        """Everything, to be written to a file."""
        assert self._first is not None
        assert self._last is not None
        tensors = {f"series.{name}": stacked(found).cpu() for name, found in self._series.items()}
        for k, saved in self._saved.items():
            tensors |= {f"{name}.{k}": one for name, one in zip(_SAVED, saved, strict=True)}
        tensors |= {"first.0": self._first[0].cpu(), "first.1": self._first[1].cpu()}
        tensors |= {"last": self._last.cpu(), "lengths": self._lengths}
        return {name: tensor.contiguous() for name, tensor in tensors.items()}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Continue from what `to_tensors` gave."""
        device = self._walk.state.w.device
        for name in SERIES:
            self._series[name] = list(tensors[f"series.{name}"].T.to(device))
        for name in tensors:
            if name.startswith("points."):
                k = int(name.removeprefix("points."))
                points, probabilities, likeliest = (tensors[f"{one}.{k}"] for one in _SAVED)
                self._saved[k] = (points, probabilities, likeliest)
        self._first = (tensors["first.0"].to(device), tensors["first.1"].to(device))
        self._last = tensors["last"].to(device)
        self._lengths = tensors["lengths"]


@dataclass(frozen=True)
class Checkpoint:
    """A file that is written whole after every saved point, or no file at all."""

    path: Path | None
    digest: str

    @classmethod
    def at(cls, path: str | Path | None, part: int, digest: str) -> Checkpoint:
        """The checkpoint of one batch of a call; later batches have files of their own."""
        hashed = hashlib.sha256(digest.encode()).hexdigest()
        if path is None:
            return cls(None, hashed)
        given = Path(path)
        return cls(given if part == 0 else given.with_name(f"{given.name}.{part}"), hashed)

    def write(self, k: int, state: State, recorder: Recorder) -> None:
        """Everything that the next step depends on."""
        if self.path is None:
            return
        tensors = {f"state.{n}": t for n, t in state.to_tensors().items()}
        tensors |= {f"recorder.{n}": t for n, t in recorder.to_tensors().items()}
        with replacing(self.path, overwrite=True) as temporary:
            save_file(tensors, temporary, metadata={"step": str(k), "digest": self.digest})

    def resume(self, state: State, recorder: Recorder) -> int:
        """The step to go on from: 0 where there is no file."""
        if self.path is None or not self.path.exists():
            return 0
        try:
            with safe_open(self.path, framework="pt") as file:
                found = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            k, digest = int(found["step"]), found["digest"]
        except (SafetensorError, OSError, ValueError, KeyError) as error:
            raise self._unusable(f"{type(error).__name__}: {error}") from None
        if digest != self.digest:
            raise self._unusable("it was written by a walk with other inputs, model or rules")
        state.restore(_part(tensors, "state."))
        recorder.restore(_part(tensors, "recorder."))
        return k

    def remove(self) -> None:
        """A finished walk needs no checkpoint."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def _unusable(self, why: str) -> StoreError:
        return StoreError(
            explain_error(
                "the walk cannot be continued from this checkpoint",
                got=f"{self.path} ({why})",
                expected="a file written by the same call",
                instead="another checkpoint= path, or delete that file",
            )
        )


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
