"""A trajectory beside the model that it was walked in, checked to belong together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pellucid._errors import ArgumentError, InputError, explain_error
from pellucid._target import Target
from pellucid._trajectory import Trajectory
from pellucid._types import Batch, Picture, Text
from pellucid.adapters import as_adapter
from pellucid.adapters.torch_model import TorchAdapter
from pellucid.explorer.space import Space, find_space

_DECODED = {"text": ("embedding", "word"), "image": ("embedding", "pixels")}


@dataclass(frozen=True, eq=False)
class Walked:
    """What every way of decoding starts from."""

    trajectory: Trajectory
    adapter: TorchAdapter
    space: Space
    target: Target
    batch: Batch  # of the one input
    start: Tensor  # 1 t d: its unchanged states

    @classmethod
    def of(cls, trajectory: Trajectory, model: Any) -> Walked:
        """The trajectory in its model, or an error where one is not the other's."""
        adapter = as_adapter(model)
        _check_kind(trajectory, adapter.kind)
        space = find_space(adapter, trajectory.space)  # an error for what cannot be walked in
        assert isinstance(adapter, TorchAdapter)
        adapter.check_state()
        _check_weights(trajectory, adapter)
        _check_space(trajectory)
        target = Target(mask=int(trajectory.settings.get("mask", 0)))
        batch = adapter.batch([trajectory.item], target)
        start = space.start(batch)
        _check_tokens(trajectory, start)
        return cls(trajectory, adapter, space, target, batch, start)

    @property
    def item(self) -> Text | Picture:
        """The input, with its ids where it is a text."""
        return self.batch.items[0]

    @property
    def own(self) -> list[int]:
        """Which of the walked tokens are the input's: the model's own have nothing to decode to."""
        segments, tokens = self.trajectory.segments, self.trajectory.tokens
        found = [i for i, t in enumerate(tokens) if not segments or segments[t].role == "content"]
        if not found:
            names = [segments[t].text for t in tokens]
            raise ArgumentError(
                explain_error(
                    "the model's own tokens cannot be decoded: no input has others in their place",
                    got=f"a walk that moved only {names}",
                    expected="a walk that moved tokens of the input",
                    instead="pellucid.explore(..., tokens=None)",
                )
            )
        return found

    @property
    def places(self) -> list[int]:
        """The numbers of the tokens that are decoded."""
        return [self.trajectory.tokens[i] for i in self.own]

    @property
    def notes(self) -> tuple[str, ...]:
        """Which walked tokens stay what they are."""
        tokens, own = self.trajectory.tokens, self.own
        names = [self.trajectory.segments[t].text for i, t in enumerate(tokens) if i not in own]
        if not names:
            return ()
        return (f"tokens of the model's own stay as they were: {', '.join(names)}",)

    def states(self) -> Tensor:
        """The states of all tokens at the start and at every saved point (1+s t d)."""
        points = self.trajectory.points.to(self.start.device)
        found = self.start.to(points.dtype).repeat(1 + len(points), 1, 1)
        found[1:, list(self.trajectory.tokens)] = points
        return found


def _check_kind(trajectory: Trajectory, kind: str) -> None:
    if trajectory.kind != kind:
        raise ArgumentError(
            explain_error(
                "the model reads something else than this trajectory is of",
                got=f"a model of {kind}s for a walk from a {trajectory.kind}",
                expected=f"the model that was walked in, {trajectory.provenance.model}",
                instead=f"trajectory.decode(pellucid.load({trajectory.provenance.model!r}))",
            )
        )


def _check_weights(trajectory: Trajectory, adapter: TorchAdapter) -> None:
    found, expected = adapter.weights_hash(), trajectory.provenance.weights
    if found != expected:
        dtype = trajectory.provenance.dtype.partition(",")[0]
        raise ArgumentError(
            explain_error(
                "the trajectory is of another model, or of this one in other numbers",
                got=f"{adapter.name} with weights {found[:12]}",
                expected=f"{trajectory.provenance.model} in {dtype} with weights {expected[:12]}",
                instead=f"trajectory.decode(pellucid.load({trajectory.provenance.model!r}, "
                f"dtype={dtype!r}))",
            )
        )


def _check_space(trajectory: Trajectory) -> None:
    known = _DECODED[trajectory.kind]
    if trajectory.space not in known:
        raise ArgumentError(
            explain_error(
                "states behind the first block have no inputs that they could be decoded to",
                got=f"a walk with space={trajectory.space!r}",
                expected="a walk with space=" + " or ".join(map(repr, known)),
                instead="pellucid.explore(..., space='embedding')",
            )
        )


def _check_tokens(trajectory: Trajectory, start: Tensor) -> None:
    width, tokens = trajectory.points.shape[2], len(trajectory.segments) or 1
    if (tokens, width) != tuple(start.shape[1:]) or not torch.isfinite(trajectory.points).all():
        raise InputError(
            explain_error(
                "the model reads this input otherwise than when the walk was made",
                got=f"{start.shape[1]} tokens of width {start.shape[2]}",
                expected=f"{tokens} tokens of width {width}, and finite points",
                instead="walk again, and decode before the model or its tokenizer is changed",
            )
        )
