"""What evaluating methods costs beyond the passes that nothing can spare, and its memory.

ViT's shapes with random weights: speed does not depend on them.
"""

from __future__ import annotations

import hashlib
import resource
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _claims import Claim, timed
from torch import Tensor
from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessorPil

import pellucid
from pellucid import Case, Target
from pellucid.models import sample_images

BASELINES = ("black", "mean", "random", "blur")
METHODS = (
    *("raw_attention", "rollout", "transformer_attribution", "transformer_mm", "vtranm"),
    *("gradient", "gradient_x_input", "grad_cam", "attcat", "random"),
)
METRICS = (
    *(("deletion", {"steps": 49}), ("insertion_minus_deletion", {"steps": 49})),
    *("aopc", "log_odds", "sparseness", "runtime"),
)
BATCH = 32


def claims() -> list[Claim]:
    torch.manual_seed(0)
    digits, images = pellucid.load("pellucid/digits-vit"), sample_images()
    return [
        *_sharing(digits, images),
        _curves(digits, images, 196, "8 digits", repeats=5),
        _curves(_vit(blocks=2), [_image()] * 2, 16, "2 images, ViT-B/16 of 2 blocks", repeats=5),
        _memory(_vit(blocks=1)),
    ]


def _vit(blocks: int) -> pellucid.adapters.TorchAdapter:
    module = ViTForImageClassification(ViTConfig(num_hidden_layers=blocks, num_labels=10)).eval()
    return pellucid.adapt(module, ViTImageProcessorPil())


def _image() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (224, 224, 3), dtype=np.uint8)


def _raw(model: pellucid.adapters.TorchAdapter, images: Sequence[Any], passes: int) -> Callable:
    """So many passes through the model, in full batches and by hand."""
    encoded = model.encode(images, Target.predicted())
    batch = encoded.take([i % len(images) for i in range(BATCH)])
    full, rest = divmod(passes, BATCH)
    batches = [batch] * full + ([batch.take(range(rest))] if rest else [])

    def run() -> None:
        with torch.no_grad():
            for some in batches:
                model.output(some)

    return run


# ---- one pass of forwards for every curve --------------------------------------------------------


def _curves(
    model: pellucid.adapters.TorchAdapter,
    images: Sequence[Any],
    steps: int,
    where: str,
    repeats: int,
) -> Claim:
    """Insertion and deletion from four baselines."""
    explained = pellucid.explain(model, images, method="rollout")
    stored = {one.item.view.tobytes(): one.scores for one in explained}
    metrics = [
        (metric, {"steps": steps, "baseline": baseline})
        for baseline in BASELINES
        for metric in ("deletion", "insertion")
    ]

    def ours() -> pellucid.Table:
        return pellucid.evaluate(
            model, images, methods=[_replayed(stored)], metrics=metrics, batch_size=BATCH
        )

    passes = ours().evaluations
    return timed(
        f"insertion and deletion, 4 baselines, {steps} steps, {passes} passes: {where}",
        ours,
        f"the same number of forwards, raw, {BATCH} at a time",
        _raw(model, images, passes),
        goal=1 / 0.9,
        repeats=repeats,
    )


def _replayed(stored: dict[bytes, Tensor]) -> Callable[[Case], Tensor]:
    """A method that has its answers already."""

    def replayed(case: Case) -> Tensor:
        return torch.stack([stored[item.view.tobytes()] for item in case.batch.items])

    return replayed


# ---- many methods by many metrics ----------------------------------------------------------------


def _sharing(model: pellucid.adapters.TorchAdapter, images: Sequence[Path]) -> list[Claim]:
    """Passes and time, against each method alone and every distinct version once."""
    explained = {name: pellucid.explain(model, images, method=name) for name in METHODS}
    of_methods = sum(one.provenance.forwards for found in explained.values() for one in found)
    versions = _distinct_versions(model, images, explained)

    def ours() -> pellucid.Table:
        return pellucid.evaluate(model, images, methods=METHODS, metrics=METRICS, batch_size=BATCH)

    raw = _raw(model, images, versions)

    def unavoidable() -> None:
        for name in METHODS:
            pellucid.explain(model, images, method=name, batch_size=BATCH)
        raw()

    made = ours().evaluations
    what = f"{len(METHODS)} methods by {len(METRICS)} metrics on {len(images)} digits"
    known = f"{of_methods} of the methods and {versions} distinct versions"
    return [
        Claim(what, made, known, of_methods + versions, "passes", 1.3, 0.0),
        timed(what, ours, "the methods alone and the distinct versions raw", unavoidable, 1.3, 5),
    ]


def _distinct_versions(
    model: pellucid.adapters.TorchAdapter, images: Sequence[Path], explained: dict[str, list]
) -> int:
    """How many different pictures the metrics need, each input's counted for itself."""
    seen = []

    def watch(module: torch.nn.Module, args: tuple, kwargs: dict[str, Tensor]) -> None:
        for one in kwargs["pixel_values"]:
            seen.append(hashlib.sha256(one.numpy().tobytes()).digest())

    distinct = 0
    for place in range(len(images)):
        for found in explained.values():
            for metric in METRICS:
                name, params = metric if isinstance(metric, tuple) else (metric, {})
                with model.module.register_forward_pre_hook(watch, with_kwargs=True):
                    pellucid.measure(model, found[place], metric=name, **params)
        distinct += len(set(seen))
        seen.clear()
    return distinct


# ---- memory --------------------------------------------------------------------------------------


def _memory(model: pellucid.adapters.TorchAdapter) -> Claim:
    """The most memory that the process ever held, after as many passes with few steps as with many.

    The passes are as many because what the allocator keeps grows with them until it settles.
    """
    explained = pellucid.explain(model, _image(), method="rollout")
    peaks = []
    for steps in (*[32] * 7, 224):
        pellucid.measure(model, explained, metric="deletion", steps=steps, batch_size=8)
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10)
    what = "most memory with 224 steps of 224 x 224 (129 MiB, if they were held)"
    return Claim(what, peaks[7], "with 32, seven times", peaks[6], "MiB", 1.02, 0.0)
