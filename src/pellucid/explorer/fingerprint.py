"""What a walk was asked for as one digest, the same in every process.

A checkpoint is continued only by the call that wrote it. So what was given counts by its contents:
an array by its bytes, a function by its name and code; where something lies in memory never does.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
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


def _told(value: Any) -> Iterator[bytes]:
    """Everything that tells this value from another."""
    yield type(value).__name__.encode()
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
        for name, one in value.items():
            yield from _told(name)
            yield from _told(one)
    elif isinstance(value, Sequence):
        for one in value:
            yield from _told(one)
    elif is_dataclass(value):
        for field in fields(value):
            yield from _told(getattr(value, field.name))
    elif callable(value):
        code = getattr(value, "__code__", None)
        yield getattr(value, "__qualname__", "").encode() + (code.co_code if code else b"")
