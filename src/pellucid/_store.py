"""Explanations on disk: one safetensors file whose header carries the rest as JSON.

Nothing in such a file can run. What is read is checked field by field before an `Explanation` is
made of it, so a damaged or hostile file ends in a `StoreError` and not in a strange object.
"""

from __future__ import annotations

import io
import json
import math
import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from PIL import Image
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from pellucid._errors import PellucidError, StoreError, explain_error
from pellucid._images import read_image
from pellucid._results import Explanation, Provenance, Unit
from pellucid._target import QUANTITIES, Target
from pellucid._types import Picture, Role, Segment, Text

FORMAT = 1
_EXTRA = "extra."
_ROLES = get_args(Role)
_UNITS = get_args(Unit)


def save(explanation: Explanation, path: Path, *, overwrite: bool) -> Path:
    """Write the file whole or not at all."""
    tensors: dict[str, Tensor] = {"scores": explanation.scores, "logits": explanation.logits}
    tensors |= {_EXTRA + name: tensor for name, tensor in explanation.extras.items()}
    if isinstance(explanation.item, Picture):
        tensors["picture"] = _as_png(explanation.item)
    document = json.dumps(summary(explanation) | {"format": FORMAT}, allow_nan=False)
    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with replacing(path, overwrite=overwrite) as temporary:
        save_file(contiguous, temporary, metadata={"pellucid": document})
    return path


def load(path: Path) -> Explanation:
    """Read and check the file."""
    try:
        with safe_open(path, framework="pt") as file:
            document = json.loads((file.metadata() or {})["pellucid"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        return _rebuilt(document, tensors)
    except FileNotFoundError:
        raise StoreError(explain_error("there is no such file", got=str(path))) from None
    except (SafetensorError, OSError, RecursionError, ValueError, KeyError, TypeError) as error:
        detail = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        raise StoreError(
            explain_error(
                "this file is not a saved explanation, or it is damaged",
                got=f"{path} ({detail})",
                expected="a file written by Explanation.save",
            )
        ) from None


def summary(explanation: Explanation) -> dict[str, Any]:
    """Everything but tensors, in plain JSON types; the scores as a list beside their tokens."""
    item = explanation.item
    return {
        "kind": explanation.kind,
        "method": explanation.method,
        "params": _plain(explanation.params),
        "signed": explanation.signed,
        "target": None if explanation.target is None else _target_fields(explanation.target),
        "explains": explanation.explains,
        "label": explanation.label,
        "index": explanation.index,
        "unit": explanation.unit,
        "value": explanation.value,
        "prediction": dict(explanation.prediction),
        "notes": list(explanation.notes),
        "provenance": asdict(explanation.provenance),
        "segments": [asdict(segment) for segment in item.segments],
        "scores": explanation.scores.tolist() if explanation.scores.dim() == 1 else None,
        "parts": list(item.parts) if isinstance(item, Text) else None,
        "grid": list(item.grid) if isinstance(item, Picture) and item.grid else None,
    }


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
            )
        ) from None


def _as_png(picture: Picture) -> Tensor:
    view = picture.view[..., 0] if picture.view.shape[2] == 1 else picture.view
    buffer = io.BytesIO()
    Image.fromarray(view).save(buffer, format="PNG")
    return torch.frombuffer(bytearray(buffer.getvalue()), dtype=torch.uint8)


def _target_fields(target: Target) -> dict[str, Any]:
    names = ("label", "quantity", "against", "text", "mask")
    return {name: getattr(target, name) for name in names}


def _plain(value: Any) -> Any:
    """A parameter as JSON has it; what JSON has no word for becomes its printed form."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return repr(value)


# ---- reading, where every field is checked -------------------------------------------------------


def _rebuilt(document: Any, tensors: Mapping[str, Tensor]) -> Explanation:
    if document["format"] != FORMAT:
        raise ValueError(f"format {document['format']!r}, where this version reads {FORMAT}")
    segments = tuple(_segment(one) for one in document["segments"])
    item: Text | Picture
    if document["kind"] == "text":
        item = Text(tuple(_string(part) for part in document["parts"]), segments)
    else:
        item = _picture(tensors["picture"], document, segments)
    scores = tensors["scores"]
    expected: set[tuple[int, ...]] = {(len(segments),)}
    if isinstance(item, Picture):
        expected.add(item.view.shape[:2])
    if tuple(scores.shape) not in expected or not torch.isfinite(scores).all():
        raise ValueError(f"scores of shape {tuple(scores.shape)}, or not finite")
    extras = {k.removeprefix(_EXTRA): v for k, v in tensors.items() if k.startswith(_EXTRA)}
    return Explanation(
        scores=scores,
        item=item,
        method=_string(document["method"]),
        params=dict(document["params"]),
        signed=bool(document["signed"]),
        target=None if document["target"] is None else _target(document["target"]),
        explains=_string(document["explains"]),
        label=_string(document["label"]),
        index=None if document["index"] is None else int(document["index"]),
        unit=_one_of(_UNITS, document["unit"]),
        value=float(document["value"]),
        prediction={_string(k): float(v) for k, v in document["prediction"].items()},
        logits=tensors["logits"],
        provenance=_provenance(document["provenance"]),
        extras=extras,
        notes=tuple(_string(note) for note in document["notes"]),
    )


def _segment(found: Any) -> Segment:
    span, box = found["span"], found["box"]
    return Segment(
        _string(found["text"]),
        _one_of(_ROLES, found["role"]),
        None if span is None else (int(span[0]), int(span[1])),
        int(found["part"]),
        None if box is None else (int(box[0]), int(box[1]), int(box[2]), int(box[3])),
    )


def _picture(png: Tensor, document: Any, segments: tuple[Segment, ...]) -> Picture:
    data = bytes(png.numpy())
    try:
        with Image.open(io.BytesIO(data)) as header:
            channels = 1 if header.mode == "L" else 3
        image, _ = read_image(data, channels)
    except (OSError, PellucidError) as error:
        raise ValueError(f"its picture cannot be read: {error}") from None
    view = np.array(image, dtype=np.uint8)
    grid = document["grid"]
    return Picture(
        view[..., None] if view.ndim == 2 else view,
        segments,
        None if grid is None else (int(grid[0]), int(grid[1])),
    )


def _provenance(found: Any) -> Provenance:
    return Provenance(
        model=_string(found["model"]),
        weights=_string(found["weights"]),
        dtype=_string(found["dtype"]),
        device=_string(found["device"]),
        seed=int(found["seed"]),
        seconds=float(found["seconds"]),
        forwards=int(found["forwards"]),
        backwards=int(found["backwards"]),
        versions={_string(k): _string(v) for k, v in found["versions"].items()},
        created=_string(found["created"]),
    )


def _target(found: Any) -> Target:
    label, against = found["label"], found["against"]
    if not all(name is None or isinstance(name, int | str) for name in (label, against)):
        raise ValueError("a label is a name or a number")
    return Target.parse(
        Target(
            label=label,
            quantity=None if found["quantity"] is None else _one_of(QUANTITIES, found["quantity"]),
            against=against,
            text=None if found["text"] is None else _string(found["text"]),
            mask=int(found["mask"]),
        )
    )


def _one_of(names: tuple[Any, ...], value: Any) -> Any:
    if value not in names:
        raise ValueError(f"one of {', '.join(names)} expected, {value!r} found")
    return value


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"text expected, {type(value).__name__} found")
    return value
