"""The forms in which a function takes its inputs: as strings, as ids, or as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch

from pellucid._errors import ArgumentError, InputError, explain_error
from pellucid._needs import Needs
from pellucid._types import Batch, Picture, Removal, Segment, Text
from pellucid.adapters.image import ImageReader, patch_segments
from pellucid.adapters.pieces import Split, kept, replaced, spans_of
from pellucid.adapters.text import TextReader, text_parts


class Form(Protocol):
    """How inputs are read and cut, shortened, and handed to the function."""

    @property
    def offers(self) -> Needs: ...
    @property
    def longest(self) -> int | None: ...
    def read(self, raw: Any, **options: Any) -> Text | Picture: ...
    def batch(self, items: Sequence[Any]) -> Batch: ...
    def without(self, batch: Batch, keep: torch.Tensor, by: Removal) -> Batch: ...
    def arguments(self, batch: Batch) -> list[Any]:
        """What the function is called with, one an input."""


@dataclass(frozen=True)
class Strings:
    """Texts as strings; a piece is left out of the string, or the mask is written in its place."""

    split: Split
    mask: str | None = None
    offers = Needs.TOKENS | Needs.TOKEN_DROP
    longest = None

    def read(self, raw: Any, **options: Any) -> Text:
        parts = text_parts(raw)
        segments = [
            Segment(text[start:end], span=(start, end), part=part)
            for part, text in enumerate(parts)
            for start, end in spans_of(text, self.split)
        ]
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

    def batch(self, items: Sequence[Any]) -> Batch:
        lengths = torch.tensor([len(item.segments) for item in items])
        mask = torch.arange(int(lengths.max())) < lengths[:, None]
        return Batch({}, tuple(items), mask)

    def without(self, batch: Batch, keep: torch.Tensor, by: Removal) -> Batch:
        if by != "delete" and (by != "mask" or self.mask is None):
            raise ArgumentError(
                explain_error(
                    f"a function of strings has no {by} token to put in the place of a piece",
                    got=f"by={by!r}",
                    expected="'delete', or 'mask' where the black box was told of a mask",
                    instead="by='delete', or pellucid.blackbox(..., mask='[MASK]') and by='mask'",
                )
            )
        mask = None if by == "delete" else self.mask
        rows = zip(batch.items, keep & batch.mask, strict=True)
        return self.batch([_changed(item, row.tolist(), mask) for item, row in rows])

    def arguments(self, batch: Batch) -> list[Any]:
        texts = [item for item in batch.items if isinstance(item, Text)]
        return [text.parts if len(text.parts) > 1 else text.parts[0] for text in texts]


def _changed(text: Any, flags: list[bool], mask: str | None) -> Text:
    stays = flags[: len(text.segments)]
    return kept(text, stays) if mask is None else replaced(text, stays, mask)


@dataclass(frozen=True)
class Ids:
    """Texts as lists of a tokenizer's ids, with the special tokens that it adds, never padded."""

    tokenizer: Any
    offers = Needs.TOKENS | Needs.TOKEN_DROP

    @property
    def longest(self) -> int:
        return int(min(getattr(self.tokenizer, "model_max_length", 10**9), 10**9))

    @property
    def _reader(self) -> TextReader:
        return TextReader(self.tokenizer, frozenset({"input_ids"}), self.longest, pad_id=0)

    def read(self, raw: Any, **options: Any) -> Text:
        return self._reader.read(raw, **options)

    def batch(self, items: Sequence[Any]) -> Batch:
        read = [
            item if item.rows is not None else self.read(_raw(item), long="truncate")
            for item in items  # a text that comes from a file has no ids any more
        ]
        return self._reader.collate(read, torch.device("cpu"))

    def without(self, batch: Batch, keep: torch.Tensor, by: Removal) -> Batch:
        if by == "delete":
            return self._reader.keep(batch, keep)
        return self._reader.replaced(batch, keep, by)

    def arguments(self, batch: Batch) -> list[Any]:
        rows = zip(batch.inputs["input_ids"], batch.mask, strict=True)
        return [ids[real].tolist() for ids, real in rows]


def _raw(text: Text) -> Any:
    return text.parts if len(text.parts) > 1 else text.parts[0]


@dataclass(frozen=True)
class Pictures:
    """Images as arrays of bytes, in patches of one side, or in pixels alone."""

    reader: ImageReader
    side: int | None
    longest = None

    @property
    def offers(self) -> Needs:
        return Needs.TOKENS if self.side else Needs.NOTHING

    def read(self, raw: Any, **options: Any) -> Picture:
        picture = self.reader.read(raw)
        if self.side is None:
            return picture
        side, (height, width) = self.side, picture.view.shape[:2]
        grid = (height // side, width // side)
        return replace(picture, segments=patch_segments(grid, (side, side), ()), grid=grid)

    def batch(self, items: Sequence[Any]) -> Batch:
        return self.reader.batch(list(items), torch.device("cpu"), torch.float64)

    def without(self, batch: Batch, keep: torch.Tensor, by: Removal) -> Batch:
        raise ArgumentError(
            explain_error(
                "no patch can be left out of an image that a function takes",
                got=f"by={by!r}",
                expected="other pixels in its place",
                instead="method='occlusion'",
            )
        )

    def arguments(self, batch: Batch) -> list[Any]:
        pixels = (batch.inputs[self.reader.argument] * 255).round().clamp(0, 255)
        return list(pixels.to(torch.uint8).permute(0, 2, 3, 1).numpy())
