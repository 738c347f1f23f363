"""The files from which a killed walk continues.

One holds all that the next step depends on and is replaced whole at every saved point. The other,
with ".points" behind its name, holds what was recorded on the way, one part a saved point, and only
grows; the first says how long it was and what its checksum was, so what was written behind that by
a walk that was killed just then is left out. So a saved point costs the same however long the walk.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from safetensors import SafetensorError, safe_open
from safetensors.torch import load, save, save_file
from torch import Tensor

from pellucid._errors import StoreError, explain_error
from pellucid._meter import Meter
from pellucid._store import checksum, replacing
from pellucid._types import Picture, Text
from pellucid.explorer.fingerprint import fingerprint
from pellucid.explorer.recorder import Recorder
from pellucid.explorer.state import State, check_like

if TYPE_CHECKING:
    from pellucid.explorer.explore import Request

_UNREADABLE = (
    *(SafetensorError, OSError, RuntimeError, MemoryError, RecursionError, OverflowError),
    *(ValueError, LookupError, TypeError, struct.error),
)
_SIZE = struct.Struct("<Q")  # of a part, before it


class Checkpoint:
    """The checkpoint of one batch of a call, or of none; later batches have files of their own."""

    @classmethod
    def of(
        cls, request: Request, items: Sequence[Text | Picture], path: str | Path | None, part: int
    ) -> Checkpoint:
        """For the walks of these inputs, which no other request continues."""
        if path is None:
            return cls(None, part, "")
        given = [getattr(request, one.name) for one in fields(request) if one.name != "adapter"]
        return cls(path, part, fingerprint(request.adapter.weights_hash(), given, items))

    def __init__(self, path: str | Path | None, part: int, digest: str) -> None:
        given = None if path is None else Path(path)
        if given is not None and not given.resolve().parent.is_dir():
            raise StoreError(
                explain_error(
                    "there is no folder for the checkpoint",
                    got=f"checkpoint={str(path)!r}",
                    expected="a path in an existing folder",
                    instead=f"mkdir -p {given.parent}",
                )
            )
        later = given is not None and part > 0
        self._path = given.with_name(f"{given.name}.{part}") if later and given else given
        self._digest = digest
        self._written = 0  # steps
        self._size = 0  # bytes of the parts
        self._hash = hashlib.sha256()  # of the parts

    def write(self, k: int, state: State, recorder: Recorder, meter: Meter) -> None:
        """Everything that step k + 1 depends on; its points must have been kept."""
        if self._path is None or k == self._written:
            return
        tensors = {f"state.{name}": tensor for name, tensor in state.to_tensors().items()}
        tensors |= recorder.to_tensors() | {"forwards": meter.forwards}
        tensors = {name: tensor.contiguous() for name, tensor in tensors.items()}
        with replacing(self._path, overwrite=True) as temporary:
            self._append(save(recorder.since(self._written)))
            self._written = k
            found = {"step": k, "digest": self._digest, "backwards": meter.backwards}
            found |= {"bytes": self._size, "parts": self._hash.hexdigest()}
            document = json.dumps(found)
            sealed = f"{checksum(document, tensors)}\n{document}"
            save_file(tensors, temporary, metadata={"checkpoint": sealed})

    def resume(self, state: State, recorder: Recorder, meter: Meter) -> int:
        """The step to go on from: 0 where there is no file."""
        if self._path is None or not self._path.exists():
            return 0
        try:
            with safe_open(self._path, framework="pt") as file:
                seal, _, document = (file.metadata() or {})["checkpoint"].partition("\n")
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            if seal != checksum(document, tensors):
                raise ValueError("its contents are not those that were written")
            found = json.loads(document)
            if found["digest"] != self._digest:
                raise ValueError("it was written by a walk with other inputs, model or rules")
            state.restore(_part(tensors, "state."))
            for part in self._parts(found["bytes"], found["parts"]):
                recorder.extend(part)
            recorder.go_on(found["step"], tensors)
            check_like(tensors["forwards"], meter.forwards)
            meter.forwards, meter.backwards = tensors["forwards"], int(found["backwards"])
        except _UNREADABLE as error:
            raise self._unusable(f"{type(error).__name__}: {error}".splitlines()[0][:200]) from None
        self._written = int(found["step"])
        return self._written

    def remove(self) -> None:
        """A finished walk needs no checkpoint."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)
            self._beside.unlink(missing_ok=True)

    # ---- inside ------------------------------------------------------------------------------

    @property
    def _beside(self) -> Path:
        assert self._path is not None
        return self._path.with_name(f"{self._path.name}.points")

    def _append(self, part: bytes) -> None:
        """One part more, in the place of whatever stands behind the known ones."""
        framed = _SIZE.pack(len(part)) + part
        with self._beside.open("r+b" if self._size else "wb") as file:
            file.seek(self._size)
            file.truncate()
            file.write(framed)
        self._size += len(framed)
        self._hash.update(framed)

    def _parts(self, size: int, digest: str) -> Iterator[dict[str, Tensor]]:
        """All parts up to this size, once their checksum is right."""
        with self._beside.open("rb") as file:
            data = file.read(size)
        self._size = len(data)
        self._hash.update(data)
        if self._size != size or self._hash.hexdigest() != digest:
            raise ValueError(f"{self._beside.name} is not the file that was written beside it")
        place = 0
        while place < size:
            (length,) = _SIZE.unpack_from(data, place)
            place += _SIZE.size + length
            yield load(data[place - length : place])

    def _unusable(self, why: str) -> StoreError:
        return StoreError(
            explain_error(
                "the walk cannot be continued from this checkpoint",
                got=f"{self._path} ({why})",
                expected="a file written by the same call",
                instead="another checkpoint= path, or delete that file",
            )
        )


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
