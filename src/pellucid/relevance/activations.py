"""Element-wise functions through zero: which modules are one, and how steep they are at zero.

An activation may be written out in several operations (as GPT-2's GELU is). Its rule is about the
whole function, so modules without parameters are tried: one that does to a part of its input what
it does to that part inside the whole works element by element.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import torch
from torch import Tensor, nn

from pellucid.record.places import Place, edited

Elementwise = Callable[[Tensor], Tensor]


def slope_at_zero(function: Elementwise) -> float:
    """The limit of f(x) / x: at this x it is exact, since what is of second order rounds away."""
    x = torch.full((1,), 2.0**-60, dtype=torch.float64)
    with torch.no_grad():
        return float(function(x) / x)


def find_activations(module: nn.Module, run: Callable[[], object]) -> tuple[nn.Module, ...]:
    """The modules that are activations, seen in one pass of the model."""
    seen: dict[nn.Module, list[Tensor]] = {}
    with ExitStack() as stack:
        for child in module.modules():
            bare = not list(child.children()) and not list(child.state_dict())
            if bare and not list(child.buffers()):
                seen[child] = []
                for side in ("input", "output"):
                    stack.enter_context(edited(Place(child, side), seen[child].append))
        run()
    return tuple(
        child
        for child, tensors in seen.items()
        if len(tensors) >= 2 and _is_element_wise(child, tensors[0], tensors[1])
    )


def _is_element_wise(module: nn.Module, x: Tensor, y: Tensor) -> bool:
    """Whether y = f(x), number by number, for an f that is not the identity, through zero."""
    if x.shape != y.shape or torch.equal(x, y) or not x.is_floating_point():
        return False
    part = x.detach().flatten()[::7]
    try:
        with torch.no_grad():
            alone, zero = module.forward(part), module.forward(torch.zeros_like(part))
    except (TypeError, ValueError, RuntimeError, IndexError, AttributeError):
        return False  # it takes more than one tensor, or needs its shape
    if not isinstance(alone, Tensor) or alone.shape != part.shape:
        return False
    return bool((zero == 0).all()) and torch.allclose(alone, y.detach().flatten()[::7], atol=1e-5)
