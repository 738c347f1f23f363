"""How the last attention drives the explained number along the way from nothing to the input."""

from __future__ import annotations

import torch
from torch import Tensor

from pellucid._arguments import integer
from pellucid._case import Case
from pellucid._needs import Needs


def mean_gradient(case: Case, steps: int) -> Tensor:
    """The gradient by the last attention map, averaged over `steps` scaled inputs (b h t s).

    The fractions are evenly spaced, with both ends; the class is that of the whole input.
    """
    steps = integer("steps", steps, 2, 20)
    inputs = len(case.batch)
    total: Tensor | None = None
    way = torch.linspace(0, 1, steps, dtype=torch.float64)
    for fractions in way.split(max(1, case.batch_size // inputs)):
        rows = torch.arange(inputs).repeat(len(fractions))
        scale = fractions.repeat_interleave(inputs)
        trace = case.record_scaled(rows, scale, Needs.ATTENTION, since=-1)
        (gradient,) = trace.gradients("attention", first=-1)
        part = gradient.unflatten(0, (len(fractions), inputs)).sum(dim=0)
        total = part if total is None else total + part
    assert total is not None
    return total / steps
