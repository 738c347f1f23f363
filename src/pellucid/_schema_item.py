"""What every stored result has: its input as JSON and a PNG, and its provenance, there and back."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, get_args

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from pellucid._images import check_size
from pellucid._json import box, integer, number, one_of, optional, pair, several, string, typed
from pellucid._results import Provenance
from pellucid._types import Picture, Role, Segment, Text

# ---- writing -------------------------------------------------------------------------------------


def item_document(item: Text | Picture) -> dict[str, Any]:
    """Everything of an input but its pixels, in plain JSON types."""
    text, picture = (item, None) if isinstance(item, Text) else (None, item)
    rows = text.rows if text else None
    return {
        "kind": "text" if text else "image",
        "segments": [asdict(segment) for segment in item.segments],
        "parts": list(text.parts) if text else None,
        "rows": {name: list(row) for name, row in rows.items()} if rows else None,
        "grid": list(picture.grid) if picture and picture.grid else None,
    }


def item_tensors(item: Text | Picture) -> dict[str, Tensor]:
    """The pixels as the bytes of a PNG file; a text has none."""
    return {"picture": _as_png(item)} if isinstance(item, Picture) else {}


def stored(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors as a file takes them: each with memory of its own."""
    return {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()}


def _as_png(picture: Picture) -> Tensor:
    view = picture.view[..., 0] if picture.view.shape[2] == 1 else picture.view
    buffer = io.BytesIO()
    Image.fromarray(view).save(buffer, format="PNG")
    return torch.frombuffer(bytearray(buffer.getvalue()), dtype=torch.uint8)


# ---- reading -------------------------------------------------------------------------------------


def read_item(found: Any, tensors: Mapping[str, Tensor]) -> Text | Picture:
    """The input that was written, or an error."""
    kind = one_of(("text", "image"), found["kind"])
    return _picture(found, tensors) if kind == "image" else _text(found)


def read_provenance(found: Any) -> Provenance:
    """The provenance that was written, or an error."""
    return Provenance(
        model=string(found["model"]),
        weights=string(found["weights"]),
        dtype=string(found["dtype"]),
        device=string(found["device"]),
        seed=integer(found["seed"]),
        seconds=number(found["seconds"]),
        forwards=integer(found["forwards"]),
        backwards=integer(found["backwards"]),
        versions={k: string(v) for k, v in typed(found["versions"], dict).items()},
        created=typed(found["created"], str),
    )


def _text(found: Any) -> Text:
    parts = several(string, found["parts"])
    if not 1 <= len(parts) <= 2:
        raise ValueError(f"{len(parts)} texts, where one or two are known")
    segments = several(_segment, found["segments"])
    for segment in segments:
        start, end = segment.span or (0, 0)
        if segment.part >= len(parts) or not 0 <= start <= end <= len(parts[segment.part]):
            raise ValueError(f"a token at {segment.span} of part {segment.part}")
    return Text(
        parts, segments, rows=optional(lambda rows: _rows(rows, len(segments)), found["rows"])
    )


def _rows(found: Any, length: int) -> dict[str, tuple[int, ...]]:
    rows = {name: several(integer, row) for name, row in typed(found, dict).items()}
    if "input_ids" not in rows or any(len(row) != length for row in rows.values()):
        raise ValueError("rows of another length than the tokens")
    return rows


def _picture(found: Any, tensors: Mapping[str, Tensor]) -> Picture:
    data = io.BytesIO(typed(tensors["picture"], Tensor).numpy().tobytes())
    with Image.open(data, formats=["PNG"]) as image:
        check_size(image)
        view = np.array(image.convert("L" if image.mode == "L" else "RGB"), dtype=np.uint8)
    height, width = view.shape[:2]
    segments = several(_segment, found["segments"])
    for segment in segments:
        top, left, bottom, right = segment.box or (0, 0, 0, 0)
        if not (0 <= top <= bottom <= height and 0 <= left <= right <= width):
            raise ValueError(f"a patch at {segment.box} of a picture of {height} x {width}")
    grid = optional(pair, found["grid"])
    patches = sum(segment.role == "content" for segment in segments)
    if grid is not None and (min(grid) < 1 or grid[0] * grid[1] != patches):
        raise ValueError(f"a grid of {grid} for {patches} patches")
    return Picture(view.reshape(height, width, -1), segments, grid)


def _segment(found: Any) -> Segment:
    part = integer(found["part"])
    if part < 0:
        raise ValueError(f"part {part}")
    return Segment(
        typed(found["text"], str),
        one_of(get_args(Role), found["role"]),
        optional(pair, found["span"]),
        part,
        optional(box, found["box"]),
    )
