"""A function from texts or images to scores, and nothing else: what can still be explained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor

from pellucid._arguments import integer
from pellucid._errors import ArgumentError, ModelError, PellucidError, explain_error
from pellucid._needs import Needs
from pellucid._target import Target
from pellucid._types import Batch, Picture, Removal, Text
from pellucid.adapters.answers import Gives, as_logits, check_gives
from pellucid.adapters.base import Adapter, Kind
from pellucid.adapters.forms import Form, Ids, Pictures, Strings
from pellucid.adapters.image import ImageReader, Resize
from pellucid.adapters.pieces import NAMED, is_tokenizer

Takes = Literal["strings", "ids"]


class BlackBox(Adapter):
    """Scores without a model: no gradients, no attention, but predictions for any input."""

    task = "classification"

    def __init__(
        self,
        function: Callable[[list[Any]], Any],
        kind: Kind,
        labels: Sequence[str],
        form: Form,
        *,
        gives: Gives | None = None,
        largest_batch: int | None = None,
        name: str | None = None,
    ) -> None:
        check_gives(gives, len(labels))
        self._function = function
        self._form = form
        self._gives = gives
        self.kind = kind
        self.labels = tuple(labels)
        self.longest = form.longest
        if largest_batch is not None:
            self.largest_batch = integer("largest_batch", largest_batch, 1, 8)
        self.name = name or str(getattr(function, "__name__", type(function).__name__))

    @cached_property
    def offers(self) -> Needs:
        return self._form.offers

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
        return self._form.read(raw, **options)

    def batch(self, items: Sequence[Text | Picture], target: Target) -> Batch:
        return self._form.batch(items)

    def with_pixels(self, batch: Batch, pixels: Tensor) -> Batch:
        """The batch with other pixels in the place of its own."""
        return Batch({**batch.inputs, self.reader.argument: pixels}, batch.items, batch.mask)

    @property
    def reader(self) -> ImageReader:
        assert isinstance(self._form, Pictures)
        return self._form.reader

    def output(self, batch: Batch) -> Tensor:
        inputs = self._form.arguments(batch)
        answer = self._called(inputs)
        shown = [self._shown(one) for one in inputs]
        return as_logits(answer, self._gives, shown, len(self.labels), self.name)

    def _called(self, inputs: list[Any]) -> Any:
        """The function's answer; what memory runs out for is tried again on fewer inputs."""
        try:
            return self._function(list(inputs))
        except (PellucidError, MemoryError, torch.OutOfMemoryError):
            raise
        except Exception as error:
            raise ModelError(
                explain_error(
                    f"the function {self.name} failed on its own: {type(error).__name__}: {error}",
                    got=f"{len(inputs)} inputs, the first of them {self._shown(inputs[0])}",
                    expected="an answer for any input, also where little is left of a text",
                    instead="pellucid.blackbox(..., largest_batch=1) to see which input it was",
                )
            ) from error

    def _shown(self, one: Any) -> str:
        return repr(one)[:60] if self.kind == "text" else "an image"

    def rows(self, output: Any, batch: Batch) -> Tensor:
        found: Tensor = output
        return found[:, None]

    def keep(self, batch: Batch, keep: Tensor) -> Batch:
        return self._form.without(batch, keep, "delete")

    def without(self, batch: Batch, keep: Tensor, by: Removal) -> Batch:
        return self._form.without(batch, keep, by)

    def weights_hash(self) -> str:
        return "unknown"

    def check_state(self) -> None:
        """A function has no state that we could check."""


def form_of(
    kind: Kind, labels: Sequence[str], takes: Takes, split: Any, mask: Any, size: Any
) -> Form:
    """How a function takes its inputs, from what its user said of it."""
    problem, instead = _problem(kind, labels, takes, split, mask, size)
    if problem:
        raise ArgumentError(
            explain_error(
                "this is not enough to call the function",
                got=problem,
                expected="the names of its classes, and how its inputs are cut; for images their "
                "size",
                instead=instead,
            )
        )
    if kind == "image":
        plain = Resize(tuple(size), mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0))
        return Pictures(ImageReader(plain), split)
    return Ids(split) if takes == "ids" else Strings("words" if split is None else split, mask)


def _problem(
    kind: Kind, labels: Any, takes: Any, split: Any, mask: Any, size: Any
) -> tuple[str, str]:
    """What is wrong with these settings, and the line to type; two empty strings for nothing."""
    text = "pellucid.blackbox(f, kind='text', labels=['no', 'yes'])"
    image = "pellucid.blackbox(f, kind='image', labels=[...], size=(224, 224), split=16)"
    if not labels or not all(isinstance(label, str) for label in labels):
        return f"labels={labels!r}", text
    if kind == "image":
        return _image_problem(takes, split, mask, size), image
    if size is not None:
        return f"size={size!r} for texts", text
    if takes not in ("strings", "ids"):
        return f"takes={takes!r}, where 'strings' or 'ids' is due", text
    if takes == "ids":
        ids = "pellucid.blackbox(f, kind='text', labels=[...], takes='ids', split=tokenizer)"
        given = f"split={split!r}, where a tokenizer is due" if not is_tokenizer(split) else ""
        return given or ("" if mask is None else "mask=, which the tokenizer knows"), ids
    if split is not None and split not in NAMED and not callable(split):
        named = ", ".join(map(repr, NAMED))
        return f"split={split!r}, where {named}, a tokenizer or a function is due", text
    return ("" if mask is None or isinstance(mask, str) else f"mask={mask!r}"), text


def _image_problem(takes: Any, split: Any, mask: Any, size: Any) -> str:
    sides = tuple(size) if isinstance(size, tuple | list) else ()
    if takes != "strings" or mask is not None:
        return "takes= or mask= for images"
    if len(sides) != 2 or not all(isinstance(side, int) and side > 0 for side in sides):
        return f"size={size!r}, where (height, width) is due"
    if split is not None and not (isinstance(split, int) and 0 < split <= min(sides)):
        return f"split={split!r} for pictures of {sides}, where the side of a patch is due"
    return ""
