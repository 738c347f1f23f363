"""Plain JSON out, and JSON in with every value exactly of its type.

What comes from a file may be damaged or hostile: whatever is not what was asked for ends in a
ValueError, KeyError or TypeError here, and never in a strange object.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor

T = TypeVar("T")
_NUMBERS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


def plain(value: Any) -> Any:
    """A parameter as JSON has it; what JSON has no word for becomes its printed form."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return repr(value)


def typed(value: Any, kind: type[T]) -> T:
    """The value, which must be of this type."""
    if not isinstance(value, kind):
        raise TypeError(f"{kind.__name__} expected, {type(value).__name__} found")
    return value


def string(value: Any) -> str:
    """A string."""
    return typed(value, str)


def integer(value: Any) -> int:
    """An integer, and no boolean."""
    if type(value) is not int:
        raise TypeError(f"an integer expected, {value!r} found")
    return value


def pair(value: Any) -> tuple[int, int]:
    """Two integers."""
    first, second = several(integer, value)
    return first, second


def box(value: Any) -> tuple[int, int, int, int]:
    """Four integers: top, left, bottom, right."""
    top, left, bottom, right = several(integer, value)
    return top, left, bottom, right


def number(value: Any) -> float:
    """A finite number."""
    if type(value) not in (int, float) or not math.isfinite(value):
        raise ValueError(f"a finite number expected, {str(value)[:40]} found")
    return float(value)


def one_of(names: Sequence[T], value: Any) -> T:
    """One of these values."""
    if value not in names:
        raise ValueError(f"one of {names} expected, {value!r} found")
    return names[names.index(value)]


def optional(read: Callable[[Any], T], value: Any) -> T | None:
    """What `read` makes of the value, or None."""
    return None if value is None else read(value)


def several(read: Callable[[Any], T], value: Any) -> tuple[T, ...]:
    """What `read` makes of each value of a list."""
    return tuple(read(one) for one in typed(value, list))


def shallow(value: Any, most: int = 50) -> Any:
    """A value whose lists and objects are nested no deeper than that; others cannot be shown."""
    inner = list(value.values()) if isinstance(value, dict) else value
    if isinstance(inner, list):
        if not most:
            raise ValueError("a value that is nested too deeply")
        for one in inner:
            shallow(one, most - 1)
    return value


def finite(tensor: Tensor, dimensions: int) -> Tensor:
    """A tensor of finite numbers with so many dimensions."""
    if tensor.dim() != dimensions or tensor.dtype not in _NUMBERS:
        raise ValueError(f"a tensor of {tensor.dtype} with shape {tuple(tensor.shape)}")
    if not torch.isfinite(tensor).all():
        raise ValueError("a tensor with NaN or infinity")
    return tensor
