"""What it costs to watch a model: against the same model's own passes, at ViT-Base's shapes."""

from __future__ import annotations

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
from pellucid import Needs, Target
from pellucid._case import Case
from pellucid.record.attention import AttentionWatch
from pellucid.testing.tiny import word_piece


def claims() -> list[Claim]:
    torch.manual_seed(0)
    return [*_image_claims(), *_text_claims()]


def _image_claims() -> list[Claim]:
    module = ViTForImageClassification(ViTConfig(num_hidden_layers=4, num_labels=10)).eval()
    model = pellucid.adapt(module, ViTImageProcessorPil())
    image = np.random.default_rng(0).integers(0, 256, (224, 224, 3), dtype=np.uint8)
    return _claims_of(model, [image] * 2, "ViT-B/16, 4 blocks, 2 images")


def _text_claims() -> list[Claim]:
    config = BertConfig(vocab_size=300, num_hidden_layers=4, num_labels=3, pad_token_id=0)
    tokenizer = word_piece()
    tokenizer.model_max_length = 256
    model = pellucid.adapt(BertForSequenceClassification(config).eval(), tokenizer)
    return _claims_of(model, ["the film is fine " * 31] * 2, "BERT-base, 4 blocks, 2 x 126 tokens")


def _claims_of(model: pellucid.adapters.TorchAdapter, raw: list, where: str) -> list[Claim]:
    model.weights_hash()
    target = Target.logit(0)
    batch = model.encode(raw, target)

    def forward() -> None:
        with torch.no_grad(), AttentionWatch():
            model.output(batch)

    def native() -> None:
        with torch.no_grad():
            model.output(batch)

    embedding = model.value_at(batch, "embedding")

    def backward() -> None:
        with AttentionWatch():
            leaf = embedding.clone().requires_grad_()
            model.rows(model.output_from(batch, "embedding", leaf), batch).sum().backward(
                inputs=[leaf]
            )

    def gradients() -> None:
        trace = Case(model, batch, target).record(Needs.ATTENTION, gradients=True)
        trace.gradient("attention")

    return [
        timed(
            f"rollout, from input to explanation: {where}",
            lambda: pellucid.explain(model, raw, method="rollout"),
            "one forward through the recording attention",
            forward,
            goal=1.2,
        ),
        timed(
            f"attention in plain steps: {where}", forward, "torch's fused kernel", native, goal=1.5
        ),
        timed(
            f"gradients of all attention maps: {where}",
            gradients,
            "forward + backward to the embedding",
            backward,
            goal=1.35,
            repeats=15,
        ),
    ]
