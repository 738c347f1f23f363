"""SmoothGrad. Smilkov et al. 2017, section 2; squared after Hooker et al. 2019.

The gradient of a deep model fluctuates between inputs that look the same; its mean over noisy
copies of the input fluctuates less.

It misleads where noise of this size changes what the input is: it is then the mean gradient of
other inputs. It smooths the map, which is not the same as making it right.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from pellucid._arguments import integer
from pellucid._case import Case
from pellucid._needs import Needs
from pellucid._perturb import gradients, noise, sum_by_row, until_late
from pellucid._spec import method
from pellucid._types import Attribution
from pellucid.methods._late import late_notes

_KIND = {"signed": lambda g: g, "abs": torch.Tensor.abs, "squared": torch.Tensor.square}


@method(
    needs=Needs.GRADIENTS,
    cite=("smilkov2017smoothgrad", "hooker2019benchmark"),
    signed=True,
    presets={"tis": {"variant": "abs", "spread": 1.0, "unit": "absolute"}},
    quick={"samples": 3},
)
def smoothgrad(
    case: Case,
    *,
    samples: int = 50,
    spread: float = 0.15,
    unit: Literal["range", "absolute"] = "range",
    variant: Literal["signed", "abs", "squared"] = "signed",
) -> Attribution:
    """The mean gradient over copies of the input with Gaussian noise, summed over a token or pixel.

    `spread` is the noise's standard deviation, as a part of the input's own range (the paper: 0.1
    to 0.2), or with `unit="absolute"` in the numbers that the model reads. `variant` averages the
    gradients, their absolute values or their squares. A token's mean gradient is measured by its
    length, since its sum over the features of a word vanishes before a layer norm.
    """
    x = case.input()  # b c h w, or b t d
    sigma = spread * (_range(case, x) if unit == "range" else torch.ones_like(_range(case, x)))
    total = torch.zeros_like(x, dtype=case.dtype)

    def noisy(rows: Tensor, k: Tensor) -> Tensor:
        return x[rows] + sigma[rows] * noise(case, rows, k, x)

    count = torch.zeros(len(x), dtype=torch.long)
    drawn = gradients(case, integer("samples", samples, 1, 50), noisy)
    for rows, _, found in until_late(case, drawn):
        total += sum_by_row(rows, _KIND[variant](found), len(x))
        count += torch.bincount(rows, minlength=len(x))
    mean = total / _along(count.clamp(min=1), total)
    late = late_notes(count.tolist(), samples, "samples")
    if variant == "signed" and case.kind == "text":
        return Attribution(case.sum_features(mean**2).sqrt(), notes=late, signed=False)
    return Attribution(case.sum_features(mean), notes=late, signed=variant == "signed")


def _along(numbers: Tensor, state: Tensor) -> Tensor:
    """One number a state, with axes to divide it by."""
    return numbers.to(state).view(-1, *[1] * (state.dim() - 1))


def _range(case: Case, x: Tensor) -> Tensor:
    """The largest number of each input less the smallest, padding left out (b 1 ...)."""
    padding = ~case.mask.to(x.device)[..., None] if x.dim() == 3 else torch.zeros_like(x).bool()
    axes = tuple(range(1, x.dim()))
    high = x.masked_fill(padding, -torch.inf).amax(dim=axes, keepdim=True)
    return high - x.masked_fill(padding, torch.inf).amin(dim=axes, keepdim=True)
