"""One input with what people know of it: its class, and where they say the evidence is."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from PIL import Image

from pellucid._errors import InputError, explain_error
from pellucid.data.masks import boxes_to_mask, checked_boxes, checked_mask

Label = int | str | None
_WIDE = 60  # characters of a text in a line


@dataclass(frozen=True, eq=False, repr=False)
class Sample:
    """An input as `pellucid.explain` takes it, with its truth by kind.

    - "mask": (h w) of 1 inside, 0 outside and -1 where it is not counted, as large as the image;
    - "boxes": (x_min, y_min, x_max, y_max) in pixels of the image, half-open; without a mask, their
      union is the mask;
    - "rationale": one number a word, larger where a person says the evidence is;
    - "attention": one such map of 0 and 1 an annotator.

    The `words` of a text joined by spaces are the input; `spans` says where each stands in it.
    `about` is whatever else is known, by which samples can be chosen.
    """

    input: Any
    id: str
    label: Label = None
    truth: Mapping[str, Any] = field(default_factory=dict)
    words: tuple[str, ...] | None = None
    about: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", as_label(self.label))
        if self.words is not None:
            object.__setattr__(self, "words", tuple(self.words))
            self._check_words(self.words)
        truth = {
            kind: _READERS[kind](self, raw) if kind in _READERS else raw
            for kind, raw in self.truth.items()
        }
        if "boxes" in truth and "mask" not in truth:
            truth["mask"] = boxes_to_mask(truth["boxes"], self._size())
        object.__setattr__(self, "truth", truth)

    def __repr__(self) -> str:
        picture = isinstance(self.input, Image.Image)
        shown = f"{self.input.width} x {self.input.height} pixels" if picture else repr(self.input)
        parts = [shown if len(shown) < _WIDE else f"{shown[:_WIDE]}..."]
        parts += [] if self.label is None else [f"label {self.label!r}"]
        parts += [f"truth: {', '.join(self.truth)}"] if self.truth else []
        return f"<sample {self.id!r}: {'; '.join(parts)}>"

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """The [start, end) characters of every word."""
        found: list[tuple[int, int]] = []
        start = 0
        for word in self._words("spans"):
            found.append((start, start + len(word)))
            start += len(word) + 1
        return tuple(found)

    def _words(self, what: str) -> tuple[str, ...]:
        if self.words is None:
            raise InputError(
                explain_error(
                    f"{what} needs the words of the text",
                    got="a sample without words",
                    expected="the words that it is about, one by one",
                    instead="Sample(' '.join(words), id, words=words)",
                )
            )
        return self.words

    def _size(self) -> tuple[int, int]:
        """Height and width of the picture."""
        if not isinstance(self.input, Image.Image):
            raise InputError(
                explain_error(
                    "boxes need the size of their picture",
                    got=f"an input of type {type(self.input).__name__}",
                    expected="a PIL image",
                    instead="Sample(PIL.Image.open('photo.jpg'), id, truth={'boxes': boxes})",
                )
            )
        return self.input.height, self.input.width

    def _check_words(self, words: Sequence[str]) -> None:
        if not words or self.input != " ".join(words):
            raise InputError(
                explain_error(
                    "the words are not those of the text",
                    got=f"{str(self.input)[:60]!r} and {len(words)} words",
                    expected="a text that is its words with one space between them",
                    instead="Sample(' '.join(words), id, words=words)",
                )
            )


def as_label(raw: Any) -> Label:
    """A class by name or number, whatever library's integer it is."""
    if raw is None or isinstance(raw, str):
        return raw
    if hasattr(raw, "__index__"):
        return operator.index(raw)
    raise InputError(
        explain_error(
            "this is not a label",
            got=repr(raw),
            expected="the name of a class, or its number",
            instead="label=1",
        )
    )


def _mask(sample: Sample, raw: Any) -> Any:
    mask = checked_mask(raw)
    if isinstance(sample.input, Image.Image) and mask.shape != sample._size():
        raise InputError(
            explain_error(
                "the mask and the picture differ in size",
                got=f"a mask of {mask.shape}, a picture of {sample._size()} (height, width)",
                expected="a mask as large as the picture",
                instead="the mask that belongs to this picture, before anything was resized",
            )
        )
    return mask


def _boxes(sample: Sample, raw: Any) -> Any:
    return checked_boxes(raw, sample._size())


def _rationale(sample: Sample, raw: Any) -> tuple[float, ...]:
    return _numbers(raw, sample._words("a rationale"), "rationale")


def _attention(sample: Sample, raw: Any) -> tuple[tuple[float, ...], ...]:
    words = sample._words("a map of attention")
    maps = tuple(_numbers(one, words, "map of attention") for one in raw)
    if not all(number in (0, 1) for one in maps for number in one):
        raise InputError(
            explain_error(
                "a person marks a word, or does not",
                got=f"a map of attention with {sorted({n for one in maps for n in one})[:5]}",
                expected="0 or 1 for every word",
                instead="truth={'rationale': numbers} for anything between",
            )
        )
    return maps


def _numbers(raw: Any, words: Sequence[str], what: str) -> tuple[float, ...]:
    try:
        found = tuple(float(number) for number in raw)
    except (TypeError, ValueError):
        found = (math.nan,)
    if len(found) != len(words) or not all(map(math.isfinite, found)):
        raise InputError(
            explain_error(
                f"this {what} does not fit the words",
                got=f"{len(found)} numbers for {len(words)} words"
                if len(found) != len(words)
                else f"{sum(not math.isfinite(one) for one in found)} that are not finite",
                expected="one finite number a word",
                instead=f"a {what} of the very words that are given",
            )
        )
    return found


_READERS: Mapping[str, Callable[[Sample, Any], Any]] = {
    "mask": _mask,
    "boxes": _boxes,
    "rationale": _rationale,
    "attention": _attention,
}
KINDS = tuple(_READERS)  # of truth
