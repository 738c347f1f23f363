"""Explaining an input again as it was explained before, for metrics that need it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from pellucid._batches import in_pieces
from pellucid._case import Case
from pellucid._errors import ArgumentError, explain_error
from pellucid._explain import attribution_of
from pellucid._results import Explanation
from pellucid._spec import as_method
from pellucid._target import Target
from pellucid.adapters.base import Adapter
from pellucid.methods import METHODS


def explain_again(
    case: Case,
    row: int,
    explanation: Explanation,
    method: Callable[..., Any] | None,
    *,
    pixels: Tensor | None = None,
    adapter: Adapter | None = None,
) -> list[Tensor]:
    """What is said of one input of the case: its scores (t), or a map (h w) where it is an image.

    With `pixels` (j c h w) it is said of each of these images, with `adapter` by another model. The
    method, its parameters, the class and what is drawn are those of the explanation.
    """
    spec, _ = as_method(method or explanation.method, METHODS)
    target = _frozen(explanation)
    model = adapter or case.adapter
    numbered = [0] if pixels is None else range(len(pixels))

    def work(numbers: list[int]) -> list[Tensor]:
        batch = model.batch([explanation.item] * len(numbers), target)
        again = Case(
            model,
            batch if pixels is None else case.images.with_pixels(batch, pixels[numbers]),
            target,
            seed=explanation.provenance.seed,
            batch_size=case.batch_size,
            spec=spec,
        )
        scores = attribution_of(again, spec, explanation.params).scores
        case.meter.forwards[row] += again.meter.forwards.sum()
        if explanation.kind == "text":
            return list(scores)
        return [replace(explanation, scores=one).map() for one in scores]

    pieces = [chunk.tolist() for chunk in torch.tensor(numbered).split(case.batch_size)]
    return [one for _, found in in_pieces(pieces, work) for one in found]


def _frozen(explanation: Explanation) -> Target:
    """The target of the explanation, with the class that it was decided to be."""
    if explanation.target is None:
        raise ArgumentError(
            explain_error(
                "a function of the output is not kept with an explanation",
                got=f"an explanation of the {explanation.explains}",
                expected="an explanation of a class",
                instead=f"pellucid.explain(..., target={explanation.label!r})",
            )
        )
    return replace(explanation.target, label=explanation.index)
