"""A trajectory as JSON and tensors, and back, with every field checked on the way in."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from pellucid._json import finite, integer, one_of, plain, several, shallow, string, typed
from pellucid._schema_item import item_document, item_tensors, read_item, read_provenance, stored
from pellucid._trajectory import SERIES, SOMETIMES, Trajectory
from pellucid._types import Picture, Text

_SERIES = "series."  # before the names of series among the tensors
_BEYOND = ("inf", "-inf", "nan")  # numbers that JSON has no word for, kept as {"number": "inf"}


# ---- writing -------------------------------------------------------------------------------------


def to_document(trajectory: Trajectory) -> dict[str, Any]:
    """Everything but tensors, in plain JSON types."""
    return {
        "goal": trajectory.goal,
        "space": trajectory.space,
        "settings": {name: _written(value) for name, value in trajectory.settings.items()},
        "tokens": list(trajectory.tokens),
        "labels": list(trajectory.labels),
        "classes": list(trajectory.classes),
        "predicted": list(trajectory.predicted),
        "series": list(trajectory.series),
        "outcome": trajectory.outcome,
        "completed": trajectory.completed,
        "notes": list(trajectory.notes),
        "provenance": asdict(trajectory.provenance),
        **item_document(trajectory.item),
    }


def to_tensors(trajectory: Trajectory) -> dict[str, Tensor]:
    """The tensors, the picture among them as the bytes of a PNG file."""
    own = {name: getattr(trajectory, name) for name in ("iterations", "points", "probabilities")}
    own |= {_SERIES + name: tensor for name, tensor in trajectory.series.items()}
    return stored(own | item_tensors(trajectory.item))


def to_numbers(trajectory: Trajectory) -> dict[str, Any]:
    """The document with its series and probabilities, for reading elsewhere; no points."""
    return to_document(trajectory) | {
        "iterations": trajectory.iterations.tolist(),
        "probabilities": trajectory.probabilities.tolist(),
        "series": {name: tensor.tolist() for name, tensor in trajectory.series.items()},
    }


def _written(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": repr(value)}
    return plain(value)


# ---- reading -------------------------------------------------------------------------------------


def from_document(found: Any, tensors: Mapping[str, Tensor]) -> Trajectory:
    """The trajectory that was written, or an error."""
    item = read_item(found, tensors)
    labels = several(string, found["labels"])
    predicted = several(string, found["predicted"])
    tokens = _tokens(found["tokens"], item)
    series = _series(found["series"], tensors)
    settings = shallow(typed(found["settings"], dict))
    points = finite(tensors["points"], 3)
    probabilities = finite(tensors["probabilities"], 2)
    if points.shape[:2] != (len(predicted), len(tokens)):
        raise ValueError(f"points of shape {tuple(points.shape)}")
    if probabilities.shape != (len(predicted), len(labels)) or not labels:
        raise ValueError(f"probabilities of shape {tuple(probabilities.shape)}")
    return Trajectory(
        item=item,
        goal=string(found["goal"]),
        space=string(found["space"]),
        settings={name: _read(value) for name, value in settings.items()},
        tokens=tokens,
        iterations=_iterations(tensors["iterations"], len(predicted), len(series["drift"]) - 1),
        points=points,
        labels=labels,
        classes=_classes(found["classes"], len(labels)),
        probabilities=_float64(probabilities),
        predicted=predicted,
        series=series,
        outcome=string(found["outcome"]),
        completed=typed(found["completed"], bool),
        provenance=read_provenance(found["provenance"]),
        notes=several(string, found["notes"]),
    )


def _read(value: Any) -> Any:
    if isinstance(value, dict) and list(value) == ["number"]:
        return float(one_of(_BEYOND, value["number"]))
    return value


def _tokens(found: Any, item: Text | Picture) -> tuple[int, ...]:
    """Numbers of segments; an input without any is one token."""
    tokens = several(integer, found)
    rising = sorted(set(tokens)) == list(tokens)
    if not tokens or not rising or not 0 <= tokens[0] <= tokens[-1] < max(len(item.segments), 1):
        raise ValueError(f"tokens {str(tokens)[:40]} of {len(item.segments)}")
    return tokens


def _classes(found: Any, count: int) -> tuple[int, ...]:
    classes = several(integer, found)
    if len(classes) != count or min(classes) < 0:
        raise ValueError(f"{len(classes)} classes with {count} labels")
    return classes


def _series(found: Any, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """All series, each with one number for every step and the start."""
    names = several(string, found)
    always = set(SERIES) - set(SOMETIMES)
    if len(set(names)) != len(names) or not always <= set(names) <= set(SERIES):
        raise ValueError(f"series {str(names)[:80]}")
    series = {name: _float64(finite(tensors[_SERIES + name], 1)) for name in names}
    if len({len(tensor) for tensor in series.values()}) != 1 or not len(series["drift"]):
        raise ValueError("series of several lengths")
    return series


def _iterations(found: Tensor, saved: int, steps: int) -> Tensor:
    """Rising numbers of steps, from the start to the last."""
    fits = found.dtype == torch.long and found.dim() == 1 and 0 < len(found) == saved
    if not fits or int(found[0]) != 0 or int(found[-1]) != steps or (found.diff() <= 0).any():
        raise ValueError(f"iterations of shape {tuple(found.shape)} for {steps} steps")
    return found


def _float64(tensor: Tensor) -> Tensor:
    if tensor.dtype != torch.float64:
        raise ValueError(f"a tensor of {tensor.dtype}, where float64 is due")
    return tensor
