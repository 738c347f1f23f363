"""What pellucid asks of any model; a model that answers with scores only is enough for some."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Literal, Protocol

import torch
from torch import Tensor

from pellucid._errors import ArgumentError, ModelError, explain_error, unknown_name
from pellucid._needs import Needs
from pellucid._target import Objective, Target
from pellucid._types import Batch, Picture, Removal, Text
from pellucid.adapters.image import ImageReader

Kind = Literal["text", "image"]
Task = Literal["classification", "multilabel", "regression", "masked", "causal", "other"]


class Images(Protocol):
    """What an adapter of images can do besides."""

    @property
    def reader(self) -> ImageReader: ...

    def with_pixels(self, batch: Batch, pixels: Tensor) -> Batch: ...


class Adapter(ABC):
    """A model together with what turns a person's input into the model's, and back."""

    name: str
    kind: Kind
    task: Task
    labels: tuple[str, ...]  # of the classes; empty where the classes are tokens
    longest: int | None = None  # tokens of a text that it can read; None: any number
    largest_batch: int | None = None  # inputs that it can take at once; None: any number

    @cached_property
    @abstractmethod
    def offers(self) -> Needs:
        """What methods may ask of this model, established by trying."""

    @abstractmethod
    def missing(self, flag: Needs) -> str:
        """Why a flag is not offered, in a few words."""

    @property
    @abstractmethod
    def device(self) -> torch.device:
        """Where encoded inputs belong."""

    @property
    @abstractmethod
    def dtype(self) -> torch.dtype:
        """The floating-point type that the model computes in."""

    @abstractmethod
    def read(self, raw: Any, target: Target, **options: Any) -> Text | Picture:
        """One text or image, checked and cut into tokens; `options` are the reader's (`long=`)."""

    @abstractmethod
    def batch(self, items: Sequence[Text | Picture], target: Target) -> Batch:
        """The tensors that the model reads, for inputs as `read` or an explanation has them."""

    def encode(self, raw: Sequence[Any], target: Target, **options: Any) -> Batch:
        """Several texts or images as one batch."""
        return self.batch([self.read(one, target, **options) for one in raw], target)

    @abstractmethod
    def output(self, batch: Batch) -> Any:
        """The model's own output object."""

    @abstractmethod
    def rows(self, output: Any, batch: Batch) -> Tensor:
        """The logits that make the prediction (b k c; k is 1 but for continuations)."""

    @abstractmethod
    def keep(self, batch: Batch, keep: Tensor) -> Batch:
        """The batch with only the tokens where `keep` (b t) is true, really shortened."""

    def without(self, batch: Batch, keep: Tensor, by: Removal) -> Batch:
        """The batch without the tokens where `keep` (b t) is false, left out or replaced."""
        if by == "delete":
            return self.keep(batch, keep)
        raise ArgumentError(
            explain_error(
                f"{self.name} has no token to put in the place of another",
                got=f"by={by!r}",
                expected="'delete', or a text model with a tokenizer",
                instead="by='delete'",
            )
        )

    @abstractmethod
    def weights_hash(self) -> str:
        """A digest of all weights, or what stands for it."""

    @abstractmethod
    def check_state(self) -> None:
        """Raise if the model is in a state in which it cannot be explained."""

    @contextmanager
    def noted(self) -> Iterator[list[str]]:
        """Sentences about the answers that a `with` block got, for the reader of what it made.

        The list is filled when the block ends.
        """
        yield []

    def label_name(self, index: int) -> str:
        """The name of a class as the model's config has it."""
        return self.labels[index] if index < len(self.labels) else str(index)

    def class_index(self, name: int | str, argument: str = "target") -> int:
        """The number of a class given by name or number."""
        if isinstance(name, int):
            _check_index(name, len(self.labels))
            return name
        if self.labels.count(name) > 1:
            numbers = [i for i, label in enumerate(self.labels) if label == name]
            raise ArgumentError(
                explain_error(
                    "several classes of this model have this name",
                    got=f"{argument}={name!r}, which is each of {numbers}",
                    expected="one class",
                    instead=f"{argument}={numbers[0]}",
                )
            )
        if name not in self.labels:
            raise ArgumentError(
                unknown_name(f"class in {argument}:", name, self.labels, write=argument + "={!r}")
            )
        return self.labels.index(name)

    def objective(self, target: Target, batch: Batch, output: Any) -> Objective:
        """Bind a target to a batch; the predicted class is decided here, once, on this output."""
        if target.function is not None:
            return Objective(target, None)
        if self.task == "other":
            raise _no_single_row(target)
        logits = self.rows(output, batch)  # b k c
        if self.labels and len(self.labels) != logits.shape[-1] and self.task != "regression":
            raise ModelError(
                explain_error(
                    "the labels are not those of this model",
                    got=f"{len(self.labels)} labels for {logits.shape[-1]} classes",
                    expected="one name a class, in the order of the output",
                    instead=f"pellucid.adapt(..., labels=[...])  # {logits.shape[-1]} names",
                )
            )
        self._check_target(target, logits.shape[-1])
        if target.text is not None:
            assert batch.reads is not None
            classes = batch.inputs["input_ids"].gather(1, batch.reads + 1)
        elif target.label is not None:
            index = self.class_index(target.label)
            _check_index(index, logits.shape[-1])
            classes = torch.full(logits.shape[:2], index, device=logits.device)
        else:
            classes = logits.argmax(dim=-1)
        against = None if target.against is None else self.class_index(target.against, "against")
        return Objective(target, classes, against, self.task == "multilabel")

    def _check_target(self, target: Target, classes: int) -> None:
        value_only = self.task == "regression" or (classes == 1 and self.task != "multilabel")
        if value_only and target.quantity not in (None, "logit"):
            raise ArgumentError(
                explain_error(
                    "a regression predicts a value, not a distribution over classes",
                    got=f"target: {target.describe()}",
                    expected="the value itself",
                    instead="target=None",
                )
            )
        if target.mask and self.task != "masked":
            raise ArgumentError(
                explain_error(
                    "only a masked language model has masks to choose from",
                    got=f"mask={target.mask}",
                    expected=f"no mask for {self.task}",
                    instead="target=None",
                )
            )


def _check_index(index: int, classes: int) -> None:
    if not 0 <= index < classes:
        raise ArgumentError(
            explain_error(
                "this model has no such class or token",
                got=f"target={index}",
                expected=f"a number from 0 to {classes - 1}, or a name",
                instead=f"target={min(max(index, 0), classes - 1)}",
            )
        )


def _no_single_row(target: Target) -> ArgumentError:
    return ArgumentError(
        explain_error(
            "this model's output has no single row of class scores",
            got=f"target: {target.describe()}",
            expected="a function of the model's output that gives one number an input",
            instead="target=lambda output: output.logits[:, 3, 2]",
        )
    )
