"""Explanations on disk: one safetensors file whose header carries the rest as JSON.

Nothing in such a file can run. What is read is checked field by field before an `Explanation` is
made of it, so a damaged or hostile file ends in a `StoreError` and not in a strange object.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import torch
from PIL import Image
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from pellucid._errors import StoreError, explain_error
from pellucid._results import Explanation
from pellucid._schema import FORMAT, from_document, to_document, to_tensors

_UNREADABLE = (
    *(SafetensorError, OSError, SyntaxError, RecursionError, MemoryError, OverflowError),
    *(ValueError, LookupError, TypeError, AttributeError),
    *(Image.DecompressionBombError, Image.DecompressionBombWarning),
)


def save(explanation: Explanation, path: Path, *, overwrite: bool) -> Path:
    """Write the file whole or not at all."""
    with replacing(path, overwrite=overwrite) as temporary:
        document = json.dumps(to_document(explanation) | {"format": FORMAT}, allow_nan=False)
        tensors = to_tensors(explanation)
        sealed = f"{checksum(document, tensors)}\n{document}"
        save_file(tensors, temporary, metadata={"pellucid": sealed})
    return path


def load(path: Path) -> Explanation:
    """Read and check the file."""
    try:
        with safe_open(path, framework="pt") as file:
            seal, _, document = (file.metadata() or {})["pellucid"].partition("\n")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if seal != checksum(document, tensors):
            raise ValueError("its contents are not those that were written")
        return from_document(json.loads(document), tensors)
    except FileNotFoundError:
        raise StoreError(
            explain_error(
                "there is no such file",
                got=str(path),
                expected="a file written by Explanation.save",
                instead="check the path",
            )
        ) from None
    except _UNREADABLE as error:
        detail = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        raise StoreError(
            explain_error(
                "this file is not a saved explanation, or it is damaged",
                got=f"{path} ({detail})",
                expected="a file written by Explanation.save",
                instead="explain the input again, and save that",
            )
        ) from None


def checksum(document: str, tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 of everything in the file, which tells a damaged one."""
    digest = hashlib.sha256(document.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"\0{name} {tensor.dtype} {tuple(tensor.shape)}\0".encode(errors="replace"))
        digest.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


@contextmanager
def replacing(path: Path, *, overwrite: bool) -> Iterator[Path]:
    """A temporary file beside the path that takes its place when the block ends well."""
    temporary = path.parent / f".{uuid.uuid4().hex}.partial"
    try:
        if path.exists() and not overwrite:
            raise StoreError(
                explain_error(
                    "the file exists already",
                    got=str(path),
                    expected="a new path",
                    instead="overwrite=True, or --force at the command line",
                )
            )
        try:
            yield temporary
            os.replace(temporary, path)
        finally:
            with suppress(OSError):
                temporary.unlink()
    except (OSError, SafetensorError, ValueError) as error:
        if isinstance(error, StoreError):
            raise
        raise StoreError(
            explain_error(
                "the file cannot be written",
                got=f"{path} ({error})",
                expected="a path in an existing folder that you may write to",
                instead=f"mkdir -p {path.parent}, or another path",
            )
        ) from None
