"""An explanation as JSON and tensors, and back, with every field checked on the way in.

What comes from a file may be damaged or hostile: whatever is not exactly what `to_document` writes
ends in a ValueError, KeyError or TypeError here, and never in a strange object.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, get_args

from torch import Tensor

from pellucid._json import finite, integer, number, one_of, optional, plain, several, string, typed
from pellucid._results import Explanation, Unit
from pellucid._schema_item import item_document, item_tensors, read_item, read_provenance, stored
from pellucid._target import QUANTITIES, Target
from pellucid._types import Picture, Text
from pellucid._views import view_of

EXTRA = "extra."  # before the names of extras among the tensors


# ---- writing -------------------------------------------------------------------------------------


def to_document(explanation: Explanation) -> dict[str, Any]:
    """Everything but tensors, in plain JSON types; the scores as a list beside their tokens."""
    target = explanation.target
    return {
        "method": explanation.method,
        "params": plain(explanation.params),
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
        "scores": explanation.scores.tolist() if explanation.scores.dim() == 1 else None,
        **item_document(explanation.item),
    }


def to_tensors(explanation: Explanation) -> dict[str, Tensor]:
    """The tensors, the picture among them as the bytes of a PNG file."""
    tensors = {"scores": explanation.scores, "logits": explanation.logits}
    tensors |= {EXTRA + name: tensor for name, tensor in explanation.extras.items()}
    return stored(tensors | item_tensors(explanation.item))


_TARGET = ("label", "quantity", "against", "text", "mask")


# ---- reading -------------------------------------------------------------------------------------


def from_document(found: Any, tensors: Mapping[str, Tensor]) -> Explanation:
    """The explanation that was written, or an error."""
    item = read_item(found, tensors)
    extras = {name: tensors[EXTRA + name] for name in several(string, found["extras"])}
    return view_of(extras)(
        scores=_scores(tensors["scores"], item),
        item=item,
        method=typed(found["method"], str),
        params=dict(typed(found["params"], dict)),
        signed=typed(found["signed"], bool),
        target=optional(_target, found["target"]),
        explains=typed(found["explains"], str),
        label=typed(found["label"], str),
        index=optional(integer, found["index"]),
        unit=one_of(get_args(Unit), found["unit"]),
        value=number(found["value"]),
        prediction={k: number(v) for k, v in typed(found["prediction"], dict).items()},
        logits=finite(tensors["logits"], 1),
        provenance=read_provenance(found["provenance"]),
        extras=extras,
        notes=several(string, found["notes"]),
    )


def _scores(scores: Any, item: Text | Picture) -> Tensor:
    shapes: list[tuple[int, ...]] = [(len(item.segments),)]
    if isinstance(item, Picture):
        shapes.append(item.view.shape[:2])
    if tuple(finite(scores, len(scores.shape)).shape) not in shapes:
        raise ValueError(f"scores of shape {tuple(scores.shape)}, where {shapes} are due")
    return typed(scores, Tensor)


def _target(found: Any) -> Target:
    names = [found["label"], found["against"]]
    if not all(name is None or type(name) in (int, str) for name in names):
        raise ValueError("a class is a name or a number")
    quantity = optional(lambda value: one_of(QUANTITIES, value), found["quantity"])
    text = optional(string, found["text"])
    return Target.parse(Target(names[0], quantity, names[1], text, integer(found["mask"])))
