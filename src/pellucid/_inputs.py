"""What `explain` accepts as inputs: one, or any ordinary collection of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import torch

from pellucid._errors import InputError, explain_error

T = TypeVar("T")


def gathered(inputs: Any) -> tuple[list[Any], bool]:
    """The inputs as a list, and whether several were given (a tuple of two texts is one pair)."""
    if isinstance(inputs, str | bytes | Mapping):
        return [inputs], False
    if isinstance(inputs, tuple) and inputs and all(isinstance(part, str) for part in inputs):
        return [inputs], False
    if isinstance(inputs, np.ndarray | torch.Tensor):
        several = inputs.ndim == 4 or (inputs.ndim == 1 and not isinstance(inputs, torch.Tensor))
        return (list(inputs), True) if several else ([inputs], False)
    if isinstance(inputs, Sequence | Iterator) or hasattr(inputs, "tolist"):
        found = list(inputs)
        _refuse_chat(found)
        return found, True
    return [inputs], False


def each(inputs: Sequence[Any], read: Callable[[Any], T]) -> list[T]:
    """`read` for every input; an error says which of several it was."""
    found: list[T] = []
    for number, one in enumerate(inputs, 1):
        try:
            found.append(read(one))
        except InputError as error:
            if len(inputs) == 1:
                raise
            raise InputError(f"input {number} of {len(inputs)}: {error}") from None
    return found


def _refuse_chat(found: Sequence[Any]) -> None:
    if found and isinstance(found[0], Mapping) and "role" in found[0]:
        raise InputError(
            explain_error(
                "chat messages must be written out as the model reads them",
                got=f"{len(found)} messages",
                expected="a text",
                instead="tokenizer.apply_chat_template(messages, tokenize=False)",
            )
        )
