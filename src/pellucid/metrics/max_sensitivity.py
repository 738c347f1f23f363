"""Max-sensitivity. Yeh et al., NeurIPS 2019; norms and defaults as in TIS, section 5.

How much the map of a method changes where the image hardly does. The image is explained again, so
the number is about the method with its parameters and about this image, not about stored scores.

It misleads where steady is taken for right: a map that ignores the input does not change at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from pellucid._arguments import integer
from pellucid._case import Case
from pellucid._errors import ArgumentError, explain_error
from pellucid._results import Explanation
from pellucid._spec import metric
from pellucid._types import Measured


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
        noisy = case.pixels[row] + _noise(case, row, samples, radius).to(case.pixels)
        clean, *others = case.explained_again(row, explanation, method, pixels=noisy)
        largest = max(float((clean - other).norm()) for other in others)
        values.append(largest / (float(clean.norm()) or 1.0))
    return Measured(values=values)


def _noise(case: Case, row: int, samples: int, radius: float) -> Tensor:
    """None for the first, then a draw for each sample (1+j c h w)."""
    shape = case.pixels.shape[1:]
    drawn = [torch.rand(shape, generator=case.generator(row, j)) for j in range(samples)]
    return torch.stack([torch.zeros(shape), *(radius * (2 * u - 1) for u in drawn)])
