"""The plain data that flows from the input to the explanation.

Axes have fixed letters everywhere: b batch, t tokens, s source tokens, h heads, l layers,
d width, c classes, p people, w words, n = t * d flattened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
from torch import Tensor

Role = Literal["content", "special", "continuation"]
Removal = Literal["delete", "mask", "unk", "pad"]  # what becomes of tokens that are taken away
IGNORED, OUTSIDE, INSIDE = -1, 0, 1  # of a pixel of a mask


@dataclass(frozen=True, slots=True)
class Segment:
    """One token of the model, as a person would point at it.

    `content` is what the user gave; `special` is what the model adds ([CLS], registers, a chat
    template); `continuation` is text that a target asked for and that is not explained.
    """

    text: str
    role: Role = "content"
    span: tuple[int, int] | None = None  # characters [start, end) of its part
    part: int = 0  # which text of a pair
    box: tuple[int, int, int, int] | None = None  # top, left, bottom, right pixels of the view


@dataclass(frozen=True)
class Text:
    """One text, or a pair of them, with the tokens that the model reads.

    `rows` are the integers that the tokenizer made of it (input_ids and whatever runs beside them);
    a text that was read from a file, or that a black box cuts, has none.
    """

    parts: tuple[str, ...]
    segments: tuple[Segment, ...]
    notes: tuple[str, ...] = ()
    rows: Mapping[str, tuple[int, ...]] | None = None


@dataclass(frozen=True, eq=False)
class Picture:
    """One image as the model sees it: after resizing and cropping, before normalisation."""

    view: np.ndarray[tuple[int, int, int], np.dtype[np.uint8]]  # height, width, channels
    segments: tuple[Segment, ...] = ()
    grid: tuple[int, int] | None = None  # rows and columns of patches
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Marks:
    """What people marked in a text: a number for each of its words, one row a person."""

    spans: tuple[tuple[int, int], ...]  # characters [start, end) of every word
    numbers: Tensor  # p w


@dataclass(frozen=True, eq=False)
class Batch:
    """Several encoded inputs, padded to one length on the device of the model."""

    inputs: Mapping[str, Tensor]  # keyword arguments of the model's forward
    items: tuple[Text | Picture, ...]
    mask: Tensor  # b t: True where a token is real, False on padding
    reads: Tensor | None = None  # b k: positions whose per-token logits are the prediction
    kept: Tensor | None = None  # b t': tokens of the stream that stay when others are dropped
    start: Tensor | None = None  # b t d: what enters the first block, where it is known already

    def __len__(self) -> int:
        return len(self.items)

    @property
    def content(self) -> Tensor:
        """True where a token is part of what the user gave (b t)."""
        out = torch.zeros_like(self.mask)
        for row, real, item in zip(out, self.mask, self.items, strict=True):
            roles = [segment.role == "content" for segment in item.segments]
            row[real] = torch.tensor(roles, dtype=torch.bool, device=out.device)
        return out

    def take(self, rows: Sequence[int] | Tensor) -> Batch:
        """The batch of these rows, in this order; a row may be taken several times."""
        index = torch.as_tensor(rows, dtype=torch.long, device=self.mask.device)

        def pick(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else tensor[index]

        return Batch(
            inputs={name: tensor[index] for name, tensor in self.inputs.items()},
            items=tuple(self.items[i] for i in index.tolist()),
            mask=self.mask[index],
            reads=pick(self.reads),
            kept=pick(self.kept),
            start=pick(self.start),
        )


@dataclass(frozen=True, eq=False)
class Attribution:
    """What a method returns when it has more to say than its scores.

    `extras` are tensors with one row an input, or lists of one tensor an input, kept in the
    explanation under their names and never read by a metric; tensors with one number a token (b t)
    lose their padding, as scores do. `notes` are sentences for the reader, one tuple an input.
    `signed` is given where the parameters of the method decide it.
    """

    scores: Tensor  # b t for tokens and patches, b h w for pixels
    extras: Mapping[str, Tensor | Sequence[Tensor]] = field(default_factory=dict)
    notes: Sequence[Sequence[str]] = ()
    signed: bool | None = None


@dataclass(frozen=True, eq=False)
class Measured:
    """What a metric returns: one entry an explanation in every field that is given.

    A value of None means that the explanation was skipped, and `skipped` says why. `counts` are
    what the number of a whole data set is made of.
    """

    values: Sequence[float | None]
    curves: Sequence[Tensor] = ()
    ties: Sequence[float] = ()  # the fraction of scores that equal another one
    skipped: Sequence[str] = ()
    counts: Sequence[Mapping[str, int]] = ()
