"""What a walk was asked for as one digest, the same in every process.

A checkpoint is continued only by the call that wrote it. So what was given counts by its contents:
an array by its bytes, a function by its code; where something lies in memory never does.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numpy as np
from PIL import Image
from torch import Tensor


def fingerprint(*values: Any) -> str:
    """SHA-256 of the values."""
    digest = hashlib.sha256()
    for told in _told(values):
        digest.update(f"{len(told)} ".encode() + told)
    return digest.hexdigest()


def _told(value: Any, inside: tuple[Any, ...] = ()) -> Iterator[bytes]:
    """Everything that tells this value from another; `inside` is what it lies in."""
    yield type(value).__name__.encode()
    if any(value is one for one in inside):
        return
    inside = (*inside, value)
    if isinstance(value, bool | int | float | str | bytes | Path | np.generic | None):
        yield repr(value).encode()
    elif isinstance(value, Tensor):
        yield from _told(value.detach().cpu().double().numpy())
    elif isinstance(value, np.ndarray | Image.Image):
        array = np.asarray(value)
        yield f"{array.dtype} {array.shape}".encode() + array.tobytes()
    elif isinstance(value, re.Pattern):
        yield f"{value.flags} {value.pattern!r}".encode()
    elif isinstance(value, Mapping):
        yield from _all((*value.keys(), *value.values()), inside)
    elif isinstance(value, Sequence):
        yield from _all(value, inside)
    elif isinstance(value, set | frozenset):
        yield from _all(sorted(fingerprint(one) for one in value), inside)
    elif isinstance(value, CodeType):
        yield value.co_code + repr(value.co_names).encode()
        yield from _all(value.co_consts, inside)
    elif isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        yield from _all((value.__qualname__, value.__code__, value.__defaults__, cells), inside)
    elif is_dataclass(value):
        yield from _all([getattr(value, field.name) for field in fields(value)], inside)
    else:
        yield from _all(
            (getattr(value, "__qualname__", None), getattr(value, "__dict__", None)), inside
        )


def _all(values: Iterable[Any], inside: tuple[Any, ...]) -> Iterator[bytes]:
    """Each of these in turn, with their number."""
    found = list(values)
    yield str(len(found)).encode()
    for value in found:
        yield from _told(value, inside)
