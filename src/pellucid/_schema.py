"""An explanation as JSON and tensors, and back, with every field checked on the way in.

What comes from a file may be damaged or hostile: whatever is not exactly what `to_document` writes
ends in a ValueError, KeyError or TypeError here, and never in a strange object.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeVar, get_args

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from pellucid._images import check_size
from pellucid._results import Explanation, Provenance, Unit
from pellucid._target import QUANTITIES, Target
from pellucid._types import Picture, Role, Segment, Text

FORMAT = 1
EXTRA = "extra."  # before the names of extras among the tensors
T = TypeVar("T")


# ---- writing -------------------------------------------------------------------------------------


def to_document(explanation: Explanation) -> dict[str, Any]:
    """Everything but tensors, in plain JSON types; the scores as a list beside their tokens."""
    item = explanation.item
    text, picture = (item, None) if isinstance(item, Text) else (None, item)
    target = explanation.target
    return {
        "kind": explanation.kind,
        "method": explanation.method,
        "params": _plain(explanation.params),
        "signed": explanation.signed,
        "target": None if target is None else {name: getattr(target, name) for name in _TARGET},
        "explains": explanation.explains,
        "label": explanation.label,
        "index": explanation.index,
        "unit": explanation.unit,
        "value": explanation.value,
        "prediction": dict(explanation.prediction),
        "notes": list(explanation.notes),
        "provenance": asdict(explanation.provenance),
        "extras": list(explanation.extras),
        "segments": [asdict(segment) for segment in item.segments],
        "scores": explanation.scores.tolist() if explanation.scores.dim() == 1 else None,
        "parts": list(text.parts) if text else None,
        "rows": {name: list(row) for name, row in text.rows.items()}
        if text and text.rows
        else None,
        "grid": list(picture.grid) if picture and picture.grid else None,
    }


def to_tensors(explanation: Explanation) -> dict[str, Tensor]:
    """The tensors, the picture among them as the bytes of a PNG file."""
    tensors = {"scores": explanation.scores, "logits": explanation.logits}
    tensors |= {EXTRA + name: tensor for name, tensor in explanation.extras.items()}
    if isinstance(explanation.item, Picture):
        tensors["picture"] = _as_png(explanation.item)
    return {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()}


_TARGET = ("label", "quantity", "against", "text", "mask")


def _as_png(picture: Picture) -> Tensor:
    view = picture.view[..., 0] if picture.view.shape[2] == 1 else picture.view
    buffer = io.BytesIO()
    Image.fromarray(view).save(buffer, format="PNG")
    return torch.frombuffer(bytearray(buffer.getvalue()), dtype=torch.uint8)


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


# ---- reading -------------------------------------------------------------------------------------


def from_document(found: Any, tensors: Mapping[str, Tensor]) -> Explanation:
    """The explanation that was written, or an error."""
    if _typed(found, dict)["format"] != FORMAT:
        raise ValueError(f"format {found['format']!r}, where this version reads {FORMAT}")
    item = (
        _picture(found, tensors)
        if _one_of(("text", "image"), found["kind"]) == "image"
        else _text(found)
    )
    return Explanation(
        scores=_scores(tensors["scores"], item),
        item=item,
        method=_typed(found["method"], str),
        params=dict(_typed(found["params"], dict)),
        signed=_typed(found["signed"], bool),
        target=_optional(_target, found["target"]),
        explains=_typed(found["explains"], str),
        label=_typed(found["label"], str),
        index=_optional(_integer, found["index"]),
        unit=_one_of(get_args(Unit), found["unit"]),
        value=_number(found["value"]),
        prediction={k: _number(v) for k, v in _typed(found["prediction"], dict).items()},
        logits=_finite(tensors["logits"], 1),
        provenance=_provenance(found["provenance"]),
        extras={name: tensors[EXTRA + name] for name in _several(_string, found["extras"])},
        notes=_several(_string, found["notes"]),
    )


def _text(found: Any) -> Text:
    parts = _several(_string, found["parts"])
    if not 1 <= len(parts) <= 2:
        raise ValueError(f"{len(parts)} texts, where one or two are known")
    segments = _several(_segment, found["segments"])
    for segment in segments:
        start, end = segment.span or (0, 0)
        if segment.part >= len(parts) or not 0 <= start <= end <= len(parts[segment.part]):
            raise ValueError(f"a token at {segment.span} of part {segment.part}")
    return Text(
        parts, segments, rows=_optional(lambda rows: _rows(rows, len(segments)), found["rows"])
    )


def _rows(found: Any, length: int) -> dict[str, tuple[int, ...]]:
    rows = {name: _several(_integer, row) for name, row in _typed(found, dict).items()}
    if "input_ids" not in rows or any(len(row) != length for row in rows.values()):
        raise ValueError("rows of another length than the tokens")
    return rows


def _picture(found: Any, tensors: Mapping[str, Tensor]) -> Picture:
    data = io.BytesIO(_typed(tensors["picture"], Tensor).numpy().tobytes())
    with Image.open(data, formats=["PNG"]) as image:
        check_size(image)
        view = np.array(image.convert("L" if image.mode == "L" else "RGB"), dtype=np.uint8)
    height, width = view.shape[:2]
    segments = _several(_segment, found["segments"])
    for segment in segments:
        top, left, bottom, right = segment.box or (0, 0, 0, 0)
        if not (0 <= top <= bottom <= height and 0 <= left <= right <= width):
            raise ValueError(f"a patch at {segment.box} of a picture of {height} x {width}")
    grid = _optional(_pair, found["grid"])
    patches = sum(segment.role == "content" for segment in segments)
    if grid is not None and (min(grid) < 1 or grid[0] * grid[1] != patches):
        raise ValueError(f"a grid of {grid} for {patches} patches")
    return Picture(view.reshape(height, width, -1), segments, grid)


def _scores(scores: Any, item: Text | Picture) -> Tensor:
    shapes: list[tuple[int, ...]] = [(len(item.segments),)]
    if isinstance(item, Picture):
        shapes.append(item.view.shape[:2])
    if tuple(_finite(scores, len(scores.shape)).shape) not in shapes:
        raise ValueError(f"scores of shape {tuple(scores.shape)}, where {shapes} are due")
    return _typed(scores, Tensor)


def _finite(tensor: Tensor, dimensions: int) -> Tensor:
    if tensor.dim() != dimensions or not tensor.is_floating_point():
        raise ValueError(f"a tensor of {tensor.dtype} with shape {tuple(tensor.shape)}")
    if not torch.isfinite(tensor).all():
        raise ValueError("a tensor with NaN or infinity")
    return tensor


def _segment(found: Any) -> Segment:
    part = _integer(found["part"])
    if part < 0:
        raise ValueError(f"part {part}")
    return Segment(
        _typed(found["text"], str),
        _one_of(get_args(Role), found["role"]),
        _optional(_pair, found["span"]),
        part,
        _optional(_box, found["box"]),
    )


def _target(found: Any) -> Target:
    names = [found["label"], found["against"]]
    if not all(name is None or type(name) in (int, str) for name in names):
        raise ValueError("a class is a name or a number")
    quantity = _optional(lambda value: _one_of(QUANTITIES, value), found["quantity"])
    text = _optional(_string, found["text"])
    return Target.parse(Target(names[0], quantity, names[1], text, _integer(found["mask"])))


def _provenance(found: Any) -> Provenance:
    return Provenance(
        model=_string(found["model"]),
        weights=_string(found["weights"]),
        dtype=_string(found["dtype"]),
        device=_string(found["device"]),
        seed=_integer(found["seed"]),
        seconds=_number(found["seconds"]),
        forwards=_integer(found["forwards"]),
        backwards=_integer(found["backwards"]),
        versions={k: _string(v) for k, v in _typed(found["versions"], dict).items()},
        created=_typed(found["created"], str),
    )


# ---- values of JSON, each exactly of its type ----------------------------------------------------


def _typed(value: Any, kind: type[T]) -> T:
    if not isinstance(value, kind):
        raise TypeError(f"{kind.__name__} expected, {type(value).__name__} found")
    return value


def _string(value: Any) -> str:
    return _typed(value, str)


def _integer(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"an integer expected, {value!r} found")
    return value


def _pair(value: Any) -> tuple[int, int]:
    first, second = _several(_integer, value)
    return first, second


def _box(value: Any) -> tuple[int, int, int, int]:
    top, left, bottom, right = _several(_integer, value)
    return top, left, bottom, right


def _number(value: Any) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise ValueError(f"a finite number expected, {str(value)[:40]} found")
    return float(value)


def _one_of(names: Sequence[T], value: Any) -> T:
    if value not in names:
        raise ValueError(f"one of {names} expected, {value!r} found")
    return names[names.index(value)]


def _optional(read: Callable[[Any], T], value: Any) -> T | None:
    return None if value is None else read(value)


def _several(read: Callable[[Any], T], value: Any) -> tuple[T, ...]:
    return tuple(read(one) for one in _typed(value, list))
