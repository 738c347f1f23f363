"""Where a walk stands: all that its next step depends on, so that it can be stopped and resumed."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

_GENERATOR, _MEMORY = "generator.", "memory."


class Outcome(enum.Enum):
    """How a walk ended; each value is the sentence that a person reads."""

    COMPLETED = "All steps were taken."
    ARRIVED = "The walk arrived where it was to go and stopped there."
    STUCK = (
        "No step, however short, kept the prediction within the tolerance; the walk stopped. "
        "A larger tolerance=, more tokens or within=None give it more room."
    )
    SATURATED = (
        "The metric vanished: the model is so certain that no direction changes its prediction "
        "measurably. output='centred_logits' does not saturate."
    )
    HALTED = "The walk was halted before it had taken all its steps."


@dataclass(eq=False)
class State:
    """One row an input. `w` are the coordinates of the region that is walked in."""

    w: Tensor  # b t p, float64
    y: Tensor  # b r: the coordinates of the prediction
    logits: Tensor  # b c
    heading: Tensor  # b t p: the last direction, or the one that is held
    stride: Tensor  # b: the length of the next step, wherever its stepper keeps it
    outcome: Tensor  # b, on the CPU: 0 while walking, else 1 + the number of the Outcome
    generators: list[torch.Generator]
    memory: dict[str, Tensor] = field(default_factory=dict)  # what a kind of step keeps besides

    @property
    def walking(self) -> Tensor:
        """The inputs that have not ended, as numbers on the CPU."""
        return (self.outcome == 0).nonzero()[:, 0]

    def end(self, rows: Tensor, outcome: Outcome) -> None:
        """These inputs stop here."""
        self.outcome[rows] = 1 + list(Outcome).index(outcome)

    def to_tensors(self) -> dict[str, Tensor]:
        """Everything, to be written to a file."""
        own = {name: getattr(self, name) for name in _TENSORS}
        own |= {f"{_MEMORY}{name}": tensor for name, tensor in self.memory.items()}
        own |= {f"{_GENERATOR}{i}": g.get_state() for i, g in enumerate(self.generators)}
        return {name: tensor.detach().cpu().contiguous() for name, tensor in own.items()}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Continue from what `to_tensors` gave; a ValueError where that is of another walk.

        The memory must hold what `begin` put there; what steps add to it is like the states.
        """
        own = self.to_tensors()
        for name, like in own.items():
            check_like(tensors[name], like)
        for name in tensors.keys() - own.keys():
            check_like(tensors[name], own["w"])
        outcomes = tensors["outcome"]
        if not ((outcomes >= 0) & (outcomes <= len(Outcome))).all():
            raise ValueError("an outcome that does not exist")
        for name in _TENSORS:
            setattr(self, name, _own(tensors[name], getattr(self, name).device))
        for name, tensor in tensors.items():
            if name.startswith(_MEMORY):
                like = self.memory.get(name.removeprefix(_MEMORY), self.w)
                self.memory[name.removeprefix(_MEMORY)] = _own(tensor, like.device)
        for i, generator in enumerate(self.generators):
            generator.set_state(tensors[f"{_GENERATOR}{i}"])


_TENSORS = ("w", "y", "logits", "heading", "stride", "outcome")


@dataclass(frozen=True, eq=False)
class Step:
    """What a step was like, one number an input that took it."""

    rows: Tensor  # the inputs that moved, on the CPU
    pseudolength: Tensor  # its length in the pullback metric
    more: Mapping[str, Tensor] = field(default_factory=dict)  # numbers of the SERIES of that name


def _own(tensor: Tensor, device: torch.device) -> Tensor:
    """A copy of our own; what lies in a file has another alignment, and products of it round so."""
    return tensor.to(device, copy=True)


def draw(state: State, rows: Tensor, moving: Tensor) -> Tensor:
    """Standard normal numbers for the tokens that move (b t p), each input from its own source."""
    like = state.w
    out = torch.zeros(len(rows), *like.shape[1:], dtype=like.dtype)
    for place, row in enumerate(rows.tolist()):
        chosen = moving[row].cpu()
        shape = (int(chosen.sum()), like.shape[2])
        out[place, chosen] = torch.randn(shape, generator=state.generators[row], dtype=like.dtype)
    return out.to(like.device)


def norm(v: Tensor) -> Tensor:
    """The Euclidean length of each input's row (b t p -> b)."""
    found: Tensor = v.flatten(1).norm(dim=1)
    return found


def scaled(v: Tensor, factor: Tensor) -> Tensor:
    """Each input's row times its own factor."""
    return v * factor[:, None, None]


def unit(v: Tensor) -> Tensor:
    """Each input's row at length one; a row of zeros stays."""
    size = norm(v)
    return scaled(v, torch.where(size > 0, 1 / size.clamp(min=1e-300), 0.0))


def check_like(found: Tensor, like: Tensor) -> None:
    """A ValueError unless the tensor has the shape and type of the other, and no NaN."""
    if found.shape != like.shape or found.dtype != like.dtype or found.isnan().any():
        raise ValueError(
            f"{found.dtype} of shape {tuple(found.shape)}, where {like.dtype} of shape "
            f"{tuple(like.shape)} is due"
        )
