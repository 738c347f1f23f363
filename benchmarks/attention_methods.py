"""What methods of attention and gradients cost beyond the passes that they cannot do without."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from _claims import Claim, timed
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    ViTConfig,
    ViTForImageClassification,
    ViTImageProcessorPil,
)

import pellucid
from pellucid import Target
from pellucid.record.attention import AttentionWatch
from pellucid.testing.tiny import word_piece

FORWARD = ("raw_attention", "rollout")
BOTH = ("grad_cam", "transformer_mm", "attcat", "vtranm")
PATH, STEPS = ("tam", "bt_t", "bt_h"), 4
Passes = Callable[[], None]


def claims() -> list[Claim]:
    torch.manual_seed(0)
    return [*_image_claims(), *_text_claims()]


def _image_claims() -> list[Claim]:
    module = ViTForImageClassification(ViTConfig(num_hidden_layers=4, num_labels=10)).eval()
    model = pellucid.adapt(module, ViTImageProcessorPil())
    image = np.random.default_rng(0).integers(0, 256, (224, 224, 3), dtype=np.uint8)
    raw, where = [image] * 2, "ViT-B/16, 4 blocks, 2 images"
    return [*_claims_of(model, raw, where), *_path_claims(model, raw, where)]


def _text_claims() -> list[Claim]:
    config = BertConfig(vocab_size=300, num_hidden_layers=4, num_labels=3, pad_token_id=0)
    tokenizer = word_piece()
    tokenizer.model_max_length = 256
    model = pellucid.adapt(BertForSequenceClassification(config).eval(), tokenizer)
    return _claims_of(model, ["the film is fine " * 31] * 2, "BERT-base, 4 blocks, 2 x 126 tokens")


def _passes(model: pellucid.adapters.TorchAdapter, raw: list) -> tuple[Passes, Passes]:
    """One forward pass through the recording attention, and one with a backward pass."""
    batch = model.encode(raw, Target.logit(0))
    embedding = model.value_at(batch, "embedding")

    def forward() -> None:
        with torch.no_grad(), AttentionWatch():
            model.output(batch)

    def both() -> None:
        with AttentionWatch():
            leaf = embedding.clone().requires_grad_()
            logits = model.rows(model.output_from(batch, "embedding", leaf), batch)
            torch.autograd.grad(logits[:, 0, 0].sum(), leaf)

    return forward, both


def _claims_of(model: pellucid.adapters.TorchAdapter, raw: list, where: str) -> list[Claim]:
    forward, both = _passes(model, raw)
    bases = [(name, forward, "one forward", 1.2) for name in FORWARD]
    bases += [(name, both, "one forward and one backward", 1.35) for name in BOTH]
    return [
        timed(
            f"{name}, from input to explanation: {where}",
            lambda name=name: pellucid.explain(model, raw, method=name, target=0),
            f"{passes} through the recording attention",
            base,
            goal=goal,
            repeats=11,
        )
        for name, base, passes, goal in bases
    ]


def _path_claims(model: pellucid.adapters.TorchAdapter, raw: list, where: str) -> list[Claim]:
    forward, both = _passes(model, raw)

    def path() -> None:
        forward()
        for _ in range(STEPS):
            both()

    return [
        timed(
            f"{name}, {STEPS} steps, from input to explanation: {where}",
            lambda name=name: pellucid.explain(model, raw, method=name, target=0, steps=STEPS),
            f"one forward, and {STEPS} times a forward and a backward",
            path,
            goal=1.35,
            repeats=5,
        )
        for name in PATH
    ]
