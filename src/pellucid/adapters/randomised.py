"""A model that has forgotten what it learnt, part by part. Adebayo et al., NeurIPS 2018, section 3.

Everything happens in a copy, so that nobody who uses the model meanwhile sees other weights, and
nothing has to be put back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from copy import deepcopy

import torch
from torch import Tensor

from pellucid._errors import UnsupportedCombination
from pellucid.adapters.torch_model import TorchAdapter


def randomised(
    adapter: TorchAdapter, *, cascading: bool, seed: int
) -> Iterator[tuple[str, TorchAdapter]]:
    """The copy with the weights of one part after the other drawn anew, from the prediction down.

    When `cascading` what was drawn before stays; else it is put back, so one part differs at a
    time. What is drawn for a weight depends on the seed and on its name alone.
    """
    _check_in_memory(adapter)
    copy = deepcopy(adapter)
    original = dict(adapter.module.named_parameters())
    changed = dict(copy.module.named_parameters())
    drawn: list[str] = []
    for part, names in parts_of(adapter).items():
        with torch.no_grad():
            for name in () if cascading else drawn:
                changed[name].copy_(original[name])
            for name in names:
                changed[name].copy_(_like(original[name], f"{seed} {name}"))
        drawn = names
        yield part, copy


def parts_of(adapter: TorchAdapter) -> dict[str, list[str]]:
    """The names of the weights behind the blocks, in each block from the last, and before them.

    A weight between two blocks goes with the one before it, and one that several share with the
    first.
    """
    blocks = adapter.anatomy.blocks
    numbered = reversed(list(enumerate(blocks)))
    block_of = {id(p): i for i, block in numbered for p in block.parameters()}
    last = max(block_of.values())
    parts: dict[int, list[str]] = {}
    current = -1  # before the blocks
    for name, parameter in adapter.module.named_parameters():
        if id(parameter) in block_of:
            current = block_of[id(parameter)]
        elif current == last:
            current = len(blocks)  # behind them
        parts.setdefault(current, []).append(name)
    titles = {-1: "embedding", len(blocks): "head"}
    return {titles.get(i, f"block {i}"): parts[i] for i in sorted(parts, reverse=True)}


def _like(weight: Tensor, purpose: str) -> Tensor:
    """Normal numbers with the mean and the spread of a weight, drawn on the CPU."""
    generator = torch.Generator().manual_seed(_digest(purpose))
    values = weight.detach().float()
    spread = values.std(correction=0)
    return torch.randn(weight.shape, generator=generator).to(values) * spread + values.mean()


def _digest(purpose: str) -> int:
    return int.from_bytes(hashlib.sha256(purpose.encode()).digest()[:8], "big") >> 1


def _check_in_memory(adapter: TorchAdapter) -> None:
    """Weights on disk, or packed into whole numbers, cannot be drawn anew."""
    for name, parameter in adapter.module.named_parameters():
        if parameter.is_meta or not parameter.is_floating_point():
            raise UnsupportedCombination(
                f"the weights of {adapter.name} cannot be drawn anew.\n"
                f"  missing:  {name} in memory, in floating point\n"
                "  instead:  load the whole model, unquantised, with pellucid.load(...)"
            )
