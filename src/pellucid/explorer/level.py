"""The map whose level sets are walked: from states to the coordinates of the prediction.

Each input of a batch is on its own; any subset of them can be evaluated, so that what has arrived
stops costing passes. On a GPU both programs, values alone and values with all reverse rows, are
captured once and replayed, because such small passes are bound by their launches.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pellucid._case import Case
from pellucid._errors import NumericalError, explain_error
from pellucid._types import Batch
from pellucid.adapters.torch_model import TorchAdapter
from pellucid.explorer.regions import Everywhere, Region
from pellucid.explorer.rows import pick, put
from pellucid.explorer.space import Space
from pellucid.geometry.jacobian import reverse_rows
from pellucid.geometry.outputs import Coordinates
from pellucid.record.attention import AttentionWatch
from pellucid.record.places import recorded

Parts = tuple[Tensor, ...]
Program = Callable[[Tensor, Parts], Parts]  # of the inputs' numbers and their parts


@dataclass(frozen=True, eq=False)
class Seen:
    """What the model says at some states."""

    y: Tensor  # b r, float64: the coordinates that a class holds fixed
    logits: Tensor  # b c


class Level:
    """States in, coordinates out, with the reverse rows on request.

    `selected` (b t) are the tokens that move; the others stay what they were, bit for bit.
    """

    def __init__(
        self,
        case: Case,
        space: Space,
        origin: Tensor,
        selected: Tensor,
        coordinates: Coordinates,
        region: Region | None = None,
    ) -> None:
        self.case = case
        self.origin = origin  # b t d: the unchanged states, in the model's own type
        self.selected = selected
        self.coordinates = coordinates
        self.region = region or Everywhere()
        self.linearisations = 0
        self._space = space
        self._adapter: TorchAdapter = case.adapter  # type: ignore[assignment]  # spaces ask for it
        self._batches: dict[tuple[int, ...], Batch] = {}
        self._read = self._adapter.read_positions(case.batch)
        self._captured: dict[str, Captured] = {}

    def state(self, w: Tensor, rows: Tensor) -> Tensor:
        """The states (b t d) at these coordinates of the region, in float64."""
        moved = self.region.chart(w, rows)
        moving = pick(self.selected, rows)[..., None]
        return torch.where(moving, moved, pick(self.origin, rows).to(moved))

    def see(self, w: Tensor, rows: Tensor) -> Seen:
        """The prediction at the states of these inputs: one forward pass."""
        return Seen(*self.run("values", lambda own, parts: self.values(parts[0], own), (w,), rows))

    def linearise(self, w: Tensor, rows: Tensor) -> tuple[Seen, Tensor]:
        """The prediction, and the Jacobian of its coordinates by `w` (b r t p)."""
        self.linearisations += 1
        y, logits, jacobian = self.run(
            "rows", lambda own, parts: self._rows(parts[0], own), (w,), rows
        )
        self.case.meter.backwards += y.shape[1]
        _check_derivative(jacobian, self.case.adapter.name)
        return Seen(y, logits), jacobian

    def run(self, name: str, program: Program, parts: Parts, rows: Tensor) -> Parts:
        """A program of one forward pass, for some inputs; `parts` have one row for each of them.

        On a GPU it is captured for all inputs under its name, so what it uses besides its parts
        must stay the same.
        """
        self.case.meter.forward(rows)
        if not parts[0].is_cuda:
            return program(rows, parts)
        if name not in self._captured:
            whole = torch.arange(len(self.case.batch))
            full = tuple(self._spread(part, rows) for part in parts)
            self._captured[name] = Captured(lambda buffers: program(whole, buffers), full)
        return self._captured[name](parts, rows)

    def values(self, w: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Coordinates and logits, without a graph; counted by who runs it."""
        with torch.no_grad(), self._adapter.exact_softmax():
            return self._forward(w, rows)

    # ---- inside ------------------------------------------------------------------------------

    def _rows(self, w: Tensor, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        with torch.enable_grad():
            leaf = w.detach().clone().requires_grad_()
            with AttentionWatch():  # fused attention has no batched derivative
                y, logits = self._forward(leaf, rows)
            jacobian = reverse_rows(y, leaf)
        moving = pick(self.selected, rows)[:, None, :, None]
        return y.detach(), logits.detach(), jacobian.detach().masked_fill(~moving, 0.0)

    def _forward(self, w: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        batch = self._batch(rows)
        state = self.state(w, rows).to(self.origin.dtype)
        hidden = self.coordinates.output.quantity == "hidden"
        last = {"last": self._adapter.anatomy.last} if hidden else {}
        with ExitStack() as stack:
            seen = stack.enter_context(recorded(last))
            stack.enter_context(self._reading(rows))
            output = self._space.output(batch, state)
        logits = self._logits(output, batch)
        if not hidden:
            return self.coordinates.take(rows)(logits), logits
        readout = pick(self.case.readout, rows).to(seen["last"])
        return torch.einsum("bt,btd->bd", readout, seen["last"]).double(), logits

    def _reading(self, rows: Tensor) -> AbstractContextManager[Any]:
        read = None if self._read is None else pick(self._read, rows)
        return self._adapter.only_read(read, self.selected.shape[1])

    def _logits(self, output: Any, batch: Batch) -> Tensor:
        return self._adapter.rows(output, batch)[:, 0]

    def _batch(self, rows: Tensor) -> Batch:
        """The inputs that are evaluated; the ones of the last calls are kept."""
        if len(rows) == len(self.case.batch):
            return self.case.batch
        key = tuple(rows.tolist())
        if key not in self._batches:
            if len(self._batches) >= 64:
                self._batches.clear()
            self._batches[key] = self.case.batch.take(rows)
        return self._batches[key]

    def _spread(self, part: Tensor, rows: Tensor) -> Tensor:
        """One row for every input of the batch; those that are not asked for repeat the first."""
        full = part[:1].repeat(len(self.case.batch), *[1] * (part.dim() - 1))
        put(full, rows, part)
        return full


def _check_derivative(jacobian: Tensor, name: str) -> None:
    """No direction can be told from numbers that are not finite."""
    if not torch.isfinite(jacobian).all():
        raise NumericalError(
            explain_error(
                f"the derivative of the output of {name} is not finite",
                got=f"{int((~torch.isfinite(jacobian)).sum())} of {jacobian.numel()} numbers",
                expected="a walk through states at which the model has a derivative",
                instead="longest=0.1, and an output= that is smooth",
            )
        )


class Captured:
    """A CUDA graph of a program: the same kernels for all inputs, launched at once."""

    def __init__(self, program: Callable[[Parts], Parts], example: Parts) -> None:
        self._buffers = tuple(part.clone() for part in example)
        device = example[0].device
        side = torch.cuda.Stream(device)
        side.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(side):
            for _ in range(3):  # libraries choose their kernels and workspaces before the capture
                program(self._buffers)
        torch.cuda.current_stream(device).wait_stream(side)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._outputs = program(self._buffers)

    def __call__(self, parts: Parts, rows: Tensor) -> Parts:
        """The program's outputs for these inputs."""
        for buffer, part in zip(self._buffers, parts, strict=True):
            put(buffer, rows, part)
        self._graph.replay()
        return tuple(pick(output, rows).clone() for output in self._outputs)
