"""Whether a language model can read another model's states: the same shape, the same tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pellucid._errors import ArgumentError, explain_error
from pellucid.adapters import as_adapter
from pellucid.adapters.text_model import TextModel
from pellucid.adapters.torch_model import TorchAdapter

_SIZES = {  # names in a config
    "model_type": "architecture",
    "hidden_size": "hidden size",
    "embedding_size": "embedding size",
    "num_attention_heads": "attention heads",
    "vocab_size": "vocabulary",
    "max_position_embeddings": "positions",
    "type_vocab_size": "token types",
}


def paired(mlm: Any, adapter: TorchAdapter) -> TextModel:
    """The masked language model that reads the states of this model, or why it cannot."""
    found = as_adapter(mlm)
    if not isinstance(found, TextModel) or found.task != "masked":
        what = found.task if found.kind == "text" else "image model"
        raise _unfit(f"mlm={found.name}, a {what}", adapter)
    assert isinstance(adapter, TextModel)
    differences = list(_differences(found, adapter))
    if differences:
        raise _unfit(f"mlm={found.name}, with {'; '.join(differences)}", adapter)
    found.check_state()
    return found


def _differences(one: TextModel, other: TextModel) -> Iterator[str]:
    """What the first has otherwise than the second, in words."""
    layers = [len(model.anatomy.blocks) for model in (one, other)]
    if layers[0] != layers[1]:
        yield f"{layers[0]} blocks, not {layers[1]}"
    configs = [getattr(model.module, "config", None) for model in (one, other)]
    for name, words in _SIZES.items():
        sizes = [getattr(config, name, None) for config in configs]
        if sizes[0] != sizes[1]:
            yield f"{words} {sizes[0]}, not {sizes[1]}"
    if one.vocabulary != other.vocabulary:
        yield f"{one.vocabulary} tokens, not {other.vocabulary}"
    tokens = [model.reader.tokenizer.get_vocab() for model in (one, other)]
    if tokens[0] != tokens[1]:
        moved = sum(tokens[1].get(token) != number for token, number in tokens[0].items())
        yield f"other numbers for {moved or 'some'} of its tokens"


def _unfit(got: str, adapter: TorchAdapter) -> ArgumentError:
    return ArgumentError(
        explain_error(
            "this model cannot read the states of the model that was walked in",
            got=got,
            expected=f"a masked language model with the shape and the tokens of {adapter.name}",
            instead="the one that it was trained from, or using='nearest', which needs none",
        )
    )
