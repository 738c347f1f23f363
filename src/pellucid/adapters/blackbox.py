"""A function from texts or images to scores, and nothing else: what can still be explained."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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
        _check_settings(kind, self.labels, split, size)
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
        answer = self._function(self._raw(batch))
        scores = _as_numbers(answer)
        if scores is None or scores.shape != (len(batch), len(self.labels)):
            shape = type(answer).__name__ if scores is None else tuple(scores.shape)
            raise ModelError(
                explain_error(
                    f"the function {self.name} did not return one score an input and label",
                    got=f"{shape} for {len(batch)} inputs",
                    expected=f"numbers of shape ({len(batch)}, {len(self.labels)})",
                    instead="return model.predict_log_proba(inputs)",
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
            spans = _find(text, self._split(text)) if callable(self._split) else word_spans(text)
            segments += [Segment(text[a:b], span=(a, b), part=part) for a, b in spans]
        if not segments:
            raise InputError(
                explain_error(
                    "this text has no piece that could be left out",
                    got=repr(parts[0]),
                    expected="a text of at least one word",
                    instead="pellucid.explain(model, 'a fine film')",
                )
            )
        return Text(parts, tuple(segments))

    def _texts(self, items: Sequence[Text]) -> Batch:
        longest = max((len(item.segments) for item in items), default=0)
        mask = torch.zeros(len(items), longest, dtype=torch.bool)
        for row, item in zip(mask, items, strict=True):
            row[: len(item.segments)] = True
        return Batch({}, tuple(items), mask)


def _check_settings(kind: str, labels: Sequence[str], split: Any, size: Any) -> None:
    """What a black box is told about its function, before it is called."""
    problem, instead = "", "pellucid.blackbox(f, kind='text', labels=['no', 'yes'])"
    if not labels:
        problem = "labels=[]"
    elif kind == "text" and not (split is None or callable(split)):
        problem = f"split={split!r} for texts, where a function is due"
    elif kind == "image":
        instead = "pellucid.blackbox(f, kind='image', labels=[...], size=(224, 224), split=16)"
        sides = tuple(size) if isinstance(size, tuple | list) else ()
        if len(sides) != 2 or not all(isinstance(side, int) and side > 0 for side in sides):
            problem = f"size={size!r}, where (height, width) is due"
        elif split is not None and not (isinstance(split, int) and 0 < split <= min(sides)):
            problem = f"split={split!r} for pictures of {sides}, where the side of a patch is due"
    if problem:
        raise ArgumentError(
            explain_error(
                "this is not enough to call the function",
                got=problem,
                expected="the names of its classes; for images their size",
                instead=instead,
            )
        )


def _as_numbers(answer: Any) -> Tensor | None:
    """The answer as a tensor, in whatever numeric form it came."""
    try:
        if isinstance(answer, list | tuple) and answer and isinstance(answer[0], Tensor):
            answer = torch.stack(list(answer))
        if isinstance(answer, Tensor):
            return answer.detach().cpu().double()
        return torch.as_tensor(np.asarray(answer, dtype=np.float64))
    except (TypeError, ValueError, RuntimeError):
        return None


def _find(text: str, pieces: Any) -> list[tuple[int, int]]:
    """Where the pieces stand in the text, in order."""
    spans: list[tuple[int, int]] = []
    position = 0
    listed: list[Any] = list(pieces) if isinstance(pieces, Iterable) else [pieces]
    for piece in listed:
        start = text.find(piece, position) if isinstance(piece, str) and piece else -1
        if start < 0:
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
    """The text without the segments that are not kept, and with single spaces between the rest."""
    parts: list[str] = []
    segments: list[Segment] = []
    for number, part in enumerate(text.parts):
        written, end, space = "", 0, False
        for segment, stays in zip(text.segments, keep, strict=True):
            if segment.part != number or segment.span is None:
                continue
            gap, end = part[end : segment.span[0]], segment.span[1]
            space = space or any(character.isspace() for character in gap)
            if not stays:
                continue
            written += "".join(gap.split()) + (" " if space and written else "")
            segments.append(replace(segment, span=(len(written), len(written) + len(segment.text))))
            written, space = written + segment.text, False
        parts.append(written + "".join(part[end:].split()))
    return Text(tuple(parts), tuple(segments), text.notes)
