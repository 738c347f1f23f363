"""Any other nn.Module: the user says what its input is; the rest is found by watching it."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from torch import nn

from pellucid._errors import ArgumentError, ModelError, explain_error
from pellucid.adapters.base import Task
from pellucid.adapters.image import ImageReader
from pellucid.adapters.image_model import ImageModel
from pellucid.adapters.text import TextReader
from pellucid.adapters.text_model import TextModel
from pellucid.adapters.torch_model import (
    Call,
    Hints,
    TorchAdapter,
    call_by_name,
    call_by_position,
)


def from_module(
    module: nn.Module,
    processor: Any,
    *,
    labels: Sequence[str] | None = None,
    task: Task = "classification",
    name: str | None = None,
    call: Call | None = None,
    longest: int | None = None,
    hints: Hints | None = None,
) -> TorchAdapter:
    """The adapter of a plain module.

    `processor` is a tokenizer (the module is then called with `input_ids` and, if it takes one, an
    `attention_mask`) or a `pellucid.Resize` (it is called with pixels, b c h w). `call` replaces
    that convention: a function of the module and the dictionary of encoded inputs.
    """
    if labels is None and task != "regression":
        raise ArgumentError(
            explain_error(
                "the classes of a plain module have no names",
                got="labels=None",
                expected="one name a class, in the order of its output",
                instead="pellucid.adapt(module, processor, labels=['negative', 'positive'])",
            )
        )
    known = {"name": name or type(module).__name__, "task": task, "labels": labels or ()}
    if hasattr(processor, "view") and hasattr(processor, "mean"):
        _check_grid(hints)
        reader = ImageReader(processor)
        return ImageModel(module, reader, call=call or call_by_position, hints=hints, **known)
    if callable(getattr(processor, "convert_ids_to_tokens", None)):
        accepted = frozenset(inspect.signature(module.forward).parameters)
        named = "input_ids" in accepted
        texts = TextReader(
            processor,
            accepted if named else frozenset(),
            longest or processor.model_max_length,
            processor.pad_token_id if "attention_mask" in accepted else None,
        )
        convention = call_by_name if named else call_by_position
        return TextModel(module, texts, call=call or convention, hints=hints, **known)
    raise ModelError(
        explain_error(
            "this does not prepare inputs for a plain module",
            got=f"processor={type(processor).__name__}",
            expected="a Hugging Face tokenizer, or a pellucid.Resize for images",
            instead="pellucid.adapt(module, pellucid.Resize((224, 224)), labels=[...])",
        )
    )


def _check_grid(hints: Hints | None) -> None:
    if hints is not None and (hints.prefix is None) != (hints.grid is None):
        raise ArgumentError(
            explain_error(
                "the tokens of an image are what stands in front and the grid of patches",
                got=f"prefix={hints.prefix}, grid={hints.grid}",
                expected="both, or neither",
                instead="prefix=1, grid=(14, 14)",
            )
        )
