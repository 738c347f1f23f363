"""What perturbation costs beyond the forward passes it is made of, and whether memory stays flat.

ViT-Base's shapes with random weights: speed does not depend on them. A full TIS is a thousand
passes, so a few of its passes are timed, and the whole is computed from them; the record says so.
"""

from __future__ import annotations

import resource
import time

import numpy as np
import torch
from _claims import Claim, timed
from torch import Tensor
from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessorPil

import pellucid
from pellucid import Needs, Target
from pellucid._case import Case
from pellucid._kmeans import kmeans
from pellucid.methods import METHODS
from pellucid.models import sample_images

MASKS, TIMED = 1024, 16
TARGET = Target.probability(0)


def claims() -> list[Claim]:
    torch.manual_seed(0)
    return [*_tis_claims(_vit(blocks=12)), *_stream_claims(), *_memory_claims(_vit(blocks=1))]


def _vit(blocks: int) -> pellucid.adapters.TorchAdapter:
    module = ViTForImageClassification(ViTConfig(num_hidden_layers=blocks, num_labels=10)).eval()
    return pellucid.adapt(module, ViTImageProcessorPil())


def _image() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (224, 224, 3), dtype=np.uint8)


# ---- TIS -----------------------------------------------------------------------------------------


def _tis_claims(model: pellucid.adapters.TorchAdapter) -> list[Claim]:
    case = Case(model, model.encode([_image()], TARGET), TARGET, spec=METHODS["tis"])
    began = time.perf_counter()
    stream = case.record(Needs.STREAM).stream[1:, 0, 1:]  # l n d
    recorded = time.perf_counter() - began
    points = stream.transpose(1, 2).flatten(0, 1)
    keep = _halves(case)
    raw = _raw_passes(model, case, keep)
    by_hand = "the same blocks on the same tokens, by hand"
    what = f"TIS: {TIMED} sets of half the tokens, ViT-B/16, 8 at a time"
    dropping = timed(what, lambda: case.drop(keep), by_hand, raw, goal=1.15, repeats=5)
    what = f"k-means of {len(points)} points of {points.shape[1]} numbers into {MASKS}"
    share = TIMED / MASKS

    def cluster() -> Tensor:
        return kmeans(points, MASKS, torch.Generator().manual_seed(0))

    clustering = timed(what, cluster, f"{TIMED} passes", raw, goal=0.1 / share, repeats=3)
    ratio = clustering.ratio * share
    passes = dropping.other / share / 1e3  # s
    whole = recorded + ratio * passes + dropping.ours / share / 1e3
    known = f"{MASKS} passes computed from {TIMED}"
    spread = clustering.spread * share
    return [
        dropping,
        Claim(what, ratio * passes, known, passes, "s", 0.1, spread),
        Claim(f"TIS, {MASKS} sets", whole, known, passes, "s", 1.15, dropping.spread + spread),
    ]


def _halves(case: Case) -> Tensor:
    """Different sets of half of the patches (1 m t)."""
    generator = torch.Generator().manual_seed(1)
    patches = case.mask.shape[1] - 1
    chosen = torch.rand(TIMED, patches, generator=generator).argsort(dim=1)[:, : patches // 2]
    keep = torch.zeros(TIMED, patches + 1, dtype=torch.bool)
    return keep.scatter(1, chosen + 1, True)[None]


def _raw_passes(model: pellucid.adapters.TorchAdapter, case: Case, keep: Tensor):
    vit, head = model.module.vit, model.module.classifier
    start = case.input("embedding")[0]
    tokens = [torch.cat([start[:1], start[1:][own[1:]]]) for own in keep[0]]
    batches = torch.stack(tokens).split(8)

    def run() -> None:
        with torch.no_grad():
            for x in batches:
                for layer in vit.layers:
                    x = layer(x)
                head(vit.layernorm(x)[:, 0])

    return run


# ---- masked images -------------------------------------------------------------------------------


def _stream_claims() -> list[Claim]:
    large, where = _vit(blocks=6), "ViT-B/16, 6 blocks, one image"
    found = [
        _throughput(large, [_image()], "rise", where, repeats=3, masks=23),
        _throughput(large, [_image()], "occlusion", where, repeats=3, window=49, stride=44),
        _throughput(large, [_image()], "vit_cx", where, repeats=2),
    ]
    digits, images = pellucid.load("pellucid/digits-vit"), sample_images()
    for method, params in (("rise", {"masks": 500}), ("occlusion", {}), ("vit_cx", {})):
        where = f"the bundled digits, {len(images)} images"
        found.append(_throughput(digits, images, method, where, batch_size=32, **params))
    return found


def _throughput(
    model: pellucid.adapters.TorchAdapter,
    images: list,
    method: str,
    where: str,
    *,
    repeats: int = 9,
    batch_size: int = 8,
    **params: object,
) -> Claim:
    encoded = model.encode(images, TARGET)

    def ours() -> Case:
        case = Case(model, encoded, TARGET, spec=METHODS[method], batch_size=batch_size)
        METHODS[method](case, **params)
        return case

    passes = int(ours().meter.forwards.sum())
    batch = encoded.take([i % len(images) for i in range(batch_size)])
    full, rest = divmod(passes, batch_size)
    batches = [batch] * full + ([batch.take(range(rest))] if rest else [])

    def raw() -> None:
        with torch.no_grad():
            for some in batches:
                model.output(some)

    what = f"{method}, {passes} passes: {where}"
    against = f"the same number of forwards, raw, {batch_size} at a time"
    return timed(what, ours, against, raw, goal=1 / 0.9, repeats=repeats)


# ---- memory --------------------------------------------------------------------------------------


def _memory_claims(model: pellucid.adapters.TorchAdapter) -> list[Claim]:
    """The most memory that the process ever held, after few masks and after many."""
    peaks = []
    for masks in (32, 64, 512):
        pellucid.explain(model, _image(), method="rise", masks=masks)
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10)
    what = "most memory with 512 masks of 224 x 224 (98 MiB, if they were held)"
    return [Claim(what, peaks[2], "with 64", peaks[1], "MiB", 1.02, 0.0)]
