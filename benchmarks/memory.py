"""Memory over two hundred explanations: what is alive after the last beside after the tenth."""

from __future__ import annotations

import gc
import tracemalloc

import torch
from _claims import Claim

import pellucid


def claims() -> list[Claim]:
    model = pellucid.load("pellucid/reviews-bert")
    return [_growth(model, method) for method in ("gradient_x_input", "rollout")]


def _growth(model: pellucid.adapters.TorchAdapter, method: str) -> Claim:
    tracemalloc.start()
    sizes = []
    for count in range(200):
        pellucid.explain(model, f"film number {count} is fine", method=method)
        if count in (9, 199):
            gc.collect()
            tensors = sum(o.nbytes for o in gc.get_objects() if isinstance(o, torch.Tensor))
            sizes.append(tensors + tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    what = f"memory after 200 explanations: {method}"
    return Claim(what, sizes[1] / 2**20, "after 10", sizes[0] / 2**20, "MiB", 1.02, 0.0)
