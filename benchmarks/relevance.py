"""What it costs to follow rules of relevance, against a model's own passes at ViT-Base's shapes."""

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
from pellucid._case import Case
from pellucid.methods import METHODS
from pellucid.record.attention import AttentionWatch
from pellucid.testing.tiny import word_piece


def claims() -> list[Claim]:
    torch.manual_seed(0)
    return [*_image_claims(), *_text_claims()]


def _image_claims() -> list[Claim]:
    module = ViTForImageClassification(ViTConfig(num_hidden_layers=4, num_labels=10)).eval()
    model = pellucid.adapt(module, ViTImageProcessorPil())
    image = np.random.default_rng(0).integers(0, 256, (224, 224, 3), dtype=np.uint8)
    where = "ViT-B/16, 4 blocks, 2 images"
    run, passes = _runs_of(model, [image] * 2)
    gamma = {"attention": "constant", "gamma": 0.05, "conv_gamma": 0.25}
    against = "forward + backward to the input"
    return [
        timed(
            f"attn_lrp: {where}", lambda: run("attn_lrp"), against, passes, goal=1.35, repeats=10
        ),
        timed(f"cp_lrp: {where}", lambda: run("cp_lrp"), against, passes, goal=1.35, repeats=10),
        timed(
            f"attn_lrp with gamma rules: {where}",
            lambda: run("attn_lrp", **gamma),
            against,
            passes,
            goal=4.0,
            repeats=10,
        ),
        timed(f"lrp: {where}", lambda: run("lrp"), against, passes, goal=4.0, repeats=10),
        timed(
            f"transformer_attribution: {where}",
            lambda: run("transformer_attribution"),
            against,
            passes,
            goal=5.0,
            repeats=10,
        ),
    ]


def _text_claims() -> list[Claim]:
    config = BertConfig(vocab_size=300, num_hidden_layers=4, num_labels=3, pad_token_id=0)
    tokenizer = word_piece()
    tokenizer.model_max_length = 256
    model = pellucid.adapt(BertForSequenceClassification(config).eval(), tokenizer)
    run, passes = _runs_of(model, ["the film is fine " * 31] * 2)
    return [
        timed(
            "attn_lrp: BERT-base, 4 blocks, 2 x 126 tokens",
            lambda: run("attn_lrp"),
            "forward + backward to the input",
            passes,
            goal=1.35,
        )
    ]


def _runs_of(
    model: pellucid.adapters.TorchAdapter, raw: list
) -> tuple[Callable[..., object], Callable[[], object]]:
    """A method by name, and one forward and backward pass through the recording attention."""
    target = Target.logit(0)
    batch = model.encode(raw, target)
    x = model.value_at(batch, "input")

    def run(method: str, **settings: object) -> object:
        return METHODS[method](Case(model, batch, target), **settings)

    def passes() -> object:
        with AttentionWatch():
            leaf = x.clone().requires_grad_()
            logits = model.rows(model.output_from(batch, "input", leaf), batch)
            return torch.autograd.grad(logits[..., 0].sum(), leaf)

    return run, passes
