"""Results on disk: one safetensors file whose header carries the rest as JSON.

Nothing in such a file can run. What is read is checked field by field before a result is made of
it, so a damaged or hostile file ends in a `StoreError` and not in a strange object.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from pellucid import _schema, _schema_trajectory
from pellucid._errors import StoreError, explain_error
from pellucid._json import one_of, typed
from pellucid._results import Explanation
from pellucid._trajectory import Trajectory

FORMAT = 1
_UNREADABLE = (
    *(SafetensorError, OSError, SyntaxError, RecursionError, MemoryError, OverflowError),
    *(ValueError, LookupError, TypeError, AttributeError),
    *(Image.DecompressionBombError, Image.DecompressionBombWarning),
)


def save(explanation: Explanation, path: Path, *, overwrite: bool) -> Path:
    """Write the file whole or not at all."""
    return _write("explanation", explanation, path, overwrite=overwrite)


def load(path: Path) -> Explanation:
    """Read and check the file."""
    found: Explanation = _read("explanation", path)
    return found


def save_trajectory(trajectory: Trajectory, path: Path, *, overwrite: bool) -> Path:
    """Write the file whole or not at all."""
    return _write("trajectory", trajectory, path, overwrite=overwrite)


def load_trajectory(path: Path) -> Trajectory:
    """Read and check the file."""
    found: Trajectory = _read("trajectory", path)
    return found


@dataclass(frozen=True)
class _Kind:
    """What a file may hold: the schema's three functions, and the words for its errors."""

    to_document: Callable[[Any], dict[str, Any]]
    to_tensors: Callable[[Any], dict[str, Tensor]]
    from_document: Callable[[Any, Mapping[str, Tensor]], Any]
    class_name: str
    again: str


_KINDS = {
    "explanation": _Kind(
        _schema.to_document,
        _schema.to_tensors,
        _schema.from_document,
        "Explanation",
        "explain the input again, and save that",
    ),
    "trajectory": _Kind(
        _schema_trajectory.to_document,
        _schema_trajectory.to_tensors,
        _schema_trajectory.from_document,
        "Trajectory",
        "walk again, and save that",
    ),
}


def _write(holds: str, result: Any, path: Path, *, overwrite: bool) -> Path:
    """What could not be read again is not written."""
    kind = _KINDS[holds]
    with replacing(path, overwrite=overwrite) as temporary:
        named = kind.to_document(result) | {"format": FORMAT, "holds": holds}
        document, tensors = json.dumps(named, allow_nan=False), kind.to_tensors(result)
        try:
            kind.from_document(json.loads(document), tensors)
        except (LookupError, TypeError) as error:
            raise ValueError(f"it does not fit its own file: {error}") from None
        sealed = f"{checksum(document, tensors)}\n{document}"
        save_file(tensors, temporary, metadata={"pellucid": sealed})
    return path


def _read(holds: str, path: Path) -> Any:
    kind = _KINDS[holds]
    try:
        document, tensors = _opened(path)
        other = one_of(
            list(_KINDS), document.get("holds", "explanation")
        )  # as the first files were
        if other != holds:
            raise _of_another_kind(path, kind, _KINDS[other])
        return kind.from_document(document, tensors)
    except FileNotFoundError:
        raise StoreError(
            explain_error(
                "there is no such file",
                got=str(path),
                expected=f"a file written by {kind.class_name}.save",
                instead="check the path",
            )
        ) from None
    except _UNREADABLE as error:
        if isinstance(error, StoreError):
            raise
        detail = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        raise StoreError(
            explain_error(
                f"this file is not a saved {holds}, or it is damaged",
                got=f"{path} ({detail})",
                expected=f"a file written by {kind.class_name}.save",
                instead=kind.again,
            )
        ) from None


def _opened(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The document and the tensors, as they were written."""
    with safe_open(path, framework="pt") as file:
        seal, _, document = (file.metadata() or {})["pellucid"].partition("\n")
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    if seal != checksum(document, tensors):
        raise ValueError("its contents are not those that were written")
    found = typed(json.loads(document), dict)
    if found["format"] != FORMAT:
        raise ValueError(f"format {found['format']!r}, where this version reads {FORMAT}")
    return found, tensors


def _of_another_kind(path: Path, wanted: _Kind, found: _Kind) -> StoreError:
    return StoreError(
        explain_error(
            "this file holds another kind of result",
            got=f"{path}, written by {found.class_name}.save",
            expected=f"a file written by {wanted.class_name}.save",
            instead=f"pellucid.{found.class_name}.load({str(path)!r})",
        )
    )


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
