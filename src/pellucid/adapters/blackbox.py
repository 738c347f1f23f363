"""A function from texts or images to scores, and nothing else: what can still be explained."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from pellucid._errors import ArgumentError, InputError, ModelError, explain_error
from pellucid._needs import Needs
from pellucid._target import Target
from pellucid._types import Batch, Picture, Segment, Text
from pellucid._words import word_spans
from pellucid.adapters.base import Adapter, Kind
from pellucid.adapters.image import ImageReader, Resize, patch_segments
from pellucid.adapters.text import text_parts

Split = Callable[[str], Sequence[str]]
Scores = Literal["logits", "probabilities"]


class BlackBox(Adapter):
    """Scores without a model: no gradients, no attention, but predictions for any input."""

    task = "classification"

    def __init__(
        self,
        function: Callable[[list[Any]], Any],
        kind: Kind,
        labels: Sequence[str],
        *,
        scores: Scores | None = None,
        split: Split | int | None = None,
        size: tuple[int, int] | None = None,
        name: str | None = None,
    ) -> None:
        self._function = function
        self.kind = kind
        self.labels = tuple(labels)
        self.name = name or str(getattr(function, "__name__", type(function).__name__))
        self._split = split
        self._scores = scores
        if kind == "image" and size is None:
            raise ArgumentError(
                explain_error(
                    "images need one size",
                    got="size=None",
                    expected="(height, width) of the pictures that the function takes",
                    instead="pellucid.blackbox(f, kind='image', labels=[...], size=(224, 224))",
                )
            )
        plain = Resize(size or (1, 1), mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0))
        self._reader = ImageReader(plain)

    @cached_property
    def offers(self) -> Needs:
        if self.kind == "text":
            return Needs.TOKENS | Needs.TOKEN_DROP
        return Needs.TOKENS if self._split else Needs.NOTHING

    def missing(self, flag: Needs) -> str:
        if flag is Needs.TOKENS:
            return "a function of images has patches only if split=PIXELS says how large they are"
        return "a function gives scores only"

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    @property
    def dtype(self) -> torch.dtype:
        return torch.float64

    def read(self, raw: Any, target: Target, **options: Any) -> Text | Picture:
        if self.kind == "text":
            return self._cut(raw)
        picture = self._reader.read(raw)
        if not isinstance(self._split, int):
            return picture
        side = self._split
        grid = (picture.view.shape[0] // side, picture.view.shape[1] // side)
        return replace(picture, segments=patch_segments(grid, (side, side), ()), grid=grid)

    def batch(self, items: Sequence[Text | Picture], target: Target) -> Batch:
        if self.kind == "text":
            return self._texts([item for item in items if isinstance(item, Text)])
        pictures = [item for item in items if isinstance(item, Picture)]
        return self._reader.batch(pictures, self.device, self.dtype)

    def with_pixels(self, batch: Batch, pixels: Tensor) -> Batch:
        """The batch with other pixels in the place of its own."""
        return replace(batch, inputs={**batch.inputs, self._reader.argument: pixels})

    @property
    def reader(self) -> ImageReader:
        return self._reader

    def output(self, batch: Batch) -> Tensor:
        scores = torch.as_tensor(np.asarray(self._function(self._raw(batch))), dtype=self.dtype)
        if scores.shape != (len(batch), len(self.labels)):
            raise ModelError(
                explain_error(
                    f"the function {self.name} returned scores of another shape",
                    got=f"{tuple(scores.shape)} for {len(batch)} inputs",
                    expected=f"({len(batch)}, {len(self.labels)}): one score a label",
                )
            )
        return self._as_logits(scores)

    def _as_logits(self, scores: Tensor) -> Tensor:
        if self._scores == "logits":
            return scores
        sums_to_one = (scores.sum(dim=1) - 1).abs().max() < 1e-6
        alike = bool(sums_to_one and (scores >= 0).all() and (scores <= 1).all())
        if self._scores is None and alike and scores.shape[1] > 1:
            raise ModelError(
                explain_error(
                    f"the function {self.name} seems to return probabilities",
                    got=f"rows that sum to 1, as {[round(v, 3) for v in scores[0].tolist()]}",
                    expected="to be told what they are",
                    instead="pellucid.blackbox(..., scores='probabilities'), or scores='logits'",
                )
            )
        return scores.log() if self._scores == "probabilities" else scores

    def rows(self, output: Any, batch: Batch) -> Tensor:
        found: Tensor = output
        return found[:, None]

    def keep(self, batch: Batch, keep: Tensor) -> Batch:
        items = []
        for item, row in zip(batch.items, keep & batch.mask, strict=True):
            assert isinstance(item, Text)
            flags = row[: len(item.segments)].tolist()
            items.append(_without(item, flags))
        return self._texts(items)

    def weights_hash(self) -> str:
        return "unknown: a function"

    def check_state(self) -> None:
        """A function has no state that we could check."""

    def _raw(self, batch: Batch) -> list[Any]:
        if self.kind == "text":
            texts = [item for item in batch.items if isinstance(item, Text)]
            return [text.parts if len(text.parts) > 1 else text.parts[0] for text in texts]
        pixels = (batch.inputs[self._reader.argument] * 255).round().clamp(0, 255)
        return list(pixels.to(torch.uint8).permute(0, 2, 3, 1).cpu().numpy())

    def _cut(self, raw: Any) -> Text:
        """A text as the pieces that can be left out: words, or what `split` says."""
        parts = text_parts(raw)
        segments: list[Segment] = []
        for part, text in enumerate(parts):
            spans = (
                word_spans(text) if not callable(self._split) else _find(text, self._split(text))
            )
            segments += [Segment(text[a:b], span=(a, b), part=part) for a, b in spans]
        return Text(parts, tuple(segments))

    def _texts(self, items: Sequence[Text]) -> Batch:
        longest = max((len(item.segments) for item in items), default=0)
        mask = torch.zeros(len(items), longest, dtype=torch.bool)
        for row, item in zip(mask, items, strict=True):
            row[: len(item.segments)] = True
        return Batch({}, tuple(items), mask)


def _find(text: str, pieces: Sequence[str]) -> list[tuple[int, int]]:
    """Where the pieces stand in the text, in order."""
    spans, position = [], 0
    for piece in pieces:
        start = text.find(piece, position)
        if start < 0 or not piece:
            raise InputError(
                explain_error(
                    "split returned a piece that is not in the text",
                    got=repr(piece),
                    expected="substrings of the text, in their order",
                    instead="split=str.split",
                )
            )
        position = start + len(piece)
        spans.append((start, position))
    return spans


def _without(text: Text, keep: Sequence[bool]) -> Text:
    """The text with the segments that are not kept cut out, and single spaces where they stood."""
    parts, segments = [], []
    for number, part in enumerate(text.parts):
        written, end = "", 0
        for segment, stays in zip(text.segments, keep, strict=True):
            if segment.part != number or segment.span is None:
                continue
            gap = re.sub(r"\s+", " ", part[end : segment.span[0]])
            end = segment.span[1]
            if not stays:
                written += " " if gap and not written.endswith(" ") else ""
                continue
            written += gap if not (written.endswith(" ") or not written) else gap.lstrip()
            start = len(written)
            written += segment.text
            segments.append(replace(segment, span=(start, len(written))))
        parts.append(written.rstrip())
    return Text(tuple(parts), tuple(segments), text.notes)
