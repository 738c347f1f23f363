"""Untrained models by the name of their shape, as transformers builds them from a config."""

from __future__ import annotations

from typing import Any

from torch import nn

from pellucid._errors import ArgumentError, explain_error, unknown_name
from pellucid.synthetic.modules import FullyConnected
from pellucid.synthetic.tokenizers import PAD

TRANSFORMERS = ("bert", "distilbert", "gpt2")
SHAPES = (*TRANSFORMERS, "fc")
LABELS = ("negative", "positive")


def check_shape(shape: str, width: int, heads: int, shapes: tuple[str, ...] = SHAPES) -> None:
    """Refuse an unknown shape, and heads that do not share a width evenly."""
    if shape not in shapes:
        raise ArgumentError(unknown_name("shape", shape, shapes, write="shape={!r}"))
    if shape != "fc" and width % heads:
        raise ArgumentError(
            explain_error(
                "the heads cannot share the width evenly",
                got=f"width={width}, heads={heads}",
                expected="a width that is a multiple of heads",
                instead=f"width={max(width // heads, 1) * heads}",
            )
        )


def built(
    shape: str, *, layers: int, width: int, heads: int, vocabulary: int, longest: int
) -> nn.Module:
    """A classifier with random weights. Dropout and all else is as its config has it."""
    if shape == "fc":
        return FullyConnected(vocabulary, width, layers)
    make = {"bert": _bert, "distilbert": _distilbert, "gpt2": _gpt2}[shape]
    module: nn.Module = make(layers, width, heads, vocabulary, longest)
    return module


def _named() -> dict[str, Any]:
    return {
        "pad_token_id": PAD,
        "id2label": dict(enumerate(LABELS)),
        "label2id": {label: i for i, label in enumerate(LABELS)},
    }


def _bert(layers: int, width: int, heads: int, vocabulary: int, longest: int) -> Any:
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * width,
        max_position_embeddings=longest,
        **_named(),
    )
    return BertForSequenceClassification(config)


def _distilbert(layers: int, width: int, heads: int, vocabulary: int, longest: int) -> Any:
    from transformers import DistilBertConfig, DistilBertForSequenceClassification

    config = DistilBertConfig(
        vocab_size=vocabulary,
        dim=width,
        n_layers=layers,
        n_heads=heads,
        hidden_dim=4 * width,
        max_position_embeddings=longest,
        **_named(),
    )
    return DistilBertForSequenceClassification(config)


def _gpt2(layers: int, width: int, heads: int, vocabulary: int, longest: int) -> Any:
    from transformers import GPT2Config, GPT2ForSequenceClassification

    config = GPT2Config(
        vocab_size=vocabulary,
        n_embd=width,
        n_layer=layers,
        n_head=heads,
        n_positions=longest,
        bos_token_id=None,
        eos_token_id=None,
        **_named(),
    )
    return GPT2ForSequenceClassification(config)
