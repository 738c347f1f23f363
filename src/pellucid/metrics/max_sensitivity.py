"""Max-sensitivity. Yeh et al., NeurIPS 2019; norms and defaults as in TIS, section 5.

How much the map of a method changes where the image hardly does. The image is explained again, so
the number is about the method with its parameters and about this image, not about stored scores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from pellucid._arguments import integer
from pellucid._batches import in_pieces
from pellucid._case import Case
from pellucid._errors import ArgumentError, explain_error
from pellucid._explain import attribution_of
from pellucid._results import Explanation
from pellucid._spec import as_method, metric
from pellucid._target import Target
from pellucid._types import Measured
from pellucid.methods import METHODS


@metric(
    cite=("yeh2019infidelity", "englebert2023tis"),
    better="lower",
    family="robustness",
    kinds=("image",),
)
def max_sensitivity(
    case: Case,
    explanations: Sequence[Explanation],
    *,
    samples: int = 10,
    radius: float = 0.02,
    method: Callable[..., Any] | None = None,
) -> Measured:
    """Largest relative change of the map, of 10 images with a little noise on every number.

    max_j |A(x) - A(x + d_j)| / |A(x)| with d uniform within `radius`, in the numbers that the model
    reads. The class stays the one that was explained, and a method that draws draws the same for
    all. `method` is the function that made the explanations, where it is none of pellucid's own.
    """
    integer("samples", samples, 1, 10)
    if radius < 0:
        raise ArgumentError(
            explain_error(
                "noise has no negative size",
                got=f"radius={radius}",
                expected="at least 0",
                instead="radius=0.02",
            )
        )
    values = []
    for row, explanation in enumerate(explanations):
        maps = _maps(case, row, explanation, _noise(case, row, samples, radius), method)
        clean, *others = maps
        largest = max(float((clean - other).norm()) for other in others)
        values.append(largest / (float(clean.norm()) or 1.0))
    return Measured(values=values)


def _noise(case: Case, row: int, samples: int, radius: float) -> Tensor:
    """None for the first, then a draw for each sample (1+j c h w)."""
    shape = case.pixels.shape[1:]
    drawn = [torch.rand(shape, generator=case.generator(row, j)) for j in range(samples)]
    return torch.stack([torch.zeros(shape), *(radius * (2 * u - 1) for u in drawn)])


def _maps(
    case: Case,
    row: int,
    explanation: Explanation,
    noise: Tensor,
    method: Callable[..., Any] | None,
) -> list[Tensor]:
    """The maps of one image with each noise, by the method that explained it."""
    spec, _ = as_method(method or explanation.method, METHODS)
    target = _frozen(explanation)
    pixels = case.pixels[row] + noise.to(case.pixels)

    def work(numbers: list[int]) -> list[Tensor]:
        batch = case.batch.take([row] * len(numbers))
        again = Case(
            case.adapter,
            case.images.with_pixels(batch, pixels[numbers]),
            target,
            seed=explanation.provenance.seed,
            batch_size=case.batch_size,
            spec=spec,
        )
        scores = attribution_of(again, spec, explanation.params).scores
        case.meter.forwards[row] += again.meter.forwards.sum()
        return [replace(explanation, scores=one).map() for one in scores]

    pieces = [chunk.tolist() for chunk in torch.arange(len(noise)).split(case.batch_size)]
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
