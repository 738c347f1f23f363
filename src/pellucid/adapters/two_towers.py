"""Models that compare an image with a text (CLIP and its like), one tower at a time.

What is compared with is fixed when the model is adapted, and becomes its classes: with texts, a
model that reads images; with images, one that reads texts. Its logits are the similarities, so each
tower is an ordinary classifier to every method, and an image and a text have a map in one each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from pellucid._errors import ArgumentError, ModelError, explain_error
from pellucid._target import Target
from pellucid.adapters.base import Task
from pellucid.adapters.image import ImageReader, ProcessorView
from pellucid.adapters.image_model import ImageModel
from pellucid.adapters.text import TextReader
from pellucid.adapters.text_model import TextModel
from pellucid.adapters.torch_model import Call, Hints, TorchAdapter


def has_two_towers(module: Any) -> bool:
    """Whether a module embeds images and texts in one space, as Hugging Face's do."""
    return all(hasattr(module, name) for name in ("get_image_features", "get_text_features"))


def from_two_towers(
    module: nn.Module,
    processor: Any,
    against: Sequence[Any] | None,
    *,
    labels: Sequence[str] | None = None,
    name: str | None = None,
) -> TorchAdapter:
    """The tower that reads images, where `against` holds texts; the other one where images."""
    given = _checked(module, against)
    texts = isinstance(given[0], str)
    task: Task = "classification" if len(given) > 1 else "regression"
    known: dict[str, Any] = {
        "name": name or cast(Any, module).config.name_or_path or type(module).__name__,
        "labels": labels or (given if texts else [f"image {i}" for i in range(len(given))]),
        "task": task,
    }
    if texts:
        other = _embeddings(_text_tower(module, processor, **known), given)
        return _image_tower(module, processor, call=_similarities(_embed_images, other), **known)
    other = _embeddings(_image_tower(module, processor, **known), given)
    return _text_tower(module, processor, call=_similarities(_embed_texts, other), **known)


def _embed_images(module: nn.Module, inputs: Mapping[str, Tensor]) -> Tensor:
    return _normed(cast(Any, module).get_image_features(**inputs))


def _embed_texts(module: nn.Module, inputs: Mapping[str, Tensor]) -> Tensor:
    return _normed(cast(Any, module).get_text_features(**inputs))


def _normed(found: Any) -> Tensor:
    """Vectors of length one (b d); some versions return them inside an output object."""
    vectors = found if isinstance(found, Tensor) else found.pooler_output
    normed: Tensor = vectors / vectors.norm(dim=-1, keepdim=True)
    return normed


def _image_tower(
    module: nn.Module, processor: Any, call: Call = _embed_images, **known: Any
) -> ImageModel:
    channels = cast(Any, module).config.vision_config.num_channels
    reader = ImageReader(ProcessorView(processor.image_processor, channels))
    return ImageModel(module, reader, call=call, **known)


def _text_tower(
    module: nn.Module, processor: Any, call: Call = _embed_texts, **known: Any
) -> TextModel:
    config, tokenizer = cast(Any, module).config.text_config, processor.tokenizer
    reader = TextReader(
        tokenizer,
        frozenset(("input_ids", "attention_mask", "position_ids")),
        longest=min(config.max_position_embeddings, tokenizer.model_max_length),
        pad_id=config.pad_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id,
    )
    table = cast(Any, module).text_model.get_input_embeddings()
    return TextModel(module, reader, call=call, hints=Hints(word_embedding=table), **known)


def _embeddings(tower: TorchAdapter, given: Sequence[Any]) -> Tensor:
    """What a tower makes of the other side, computed once (k d)."""
    tower.check_state()
    with torch.no_grad():
        found: Tensor = tower.output(tower.encode(given, Target.predicted()))
    return found


def _similarities(embed: Callable[..., Tensor], other: Tensor) -> Call:
    def call(module: nn.Module, inputs: Mapping[str, Tensor]) -> Tensor:
        vectors = embed(module, inputs)
        cosines = vectors @ other.to(vectors).T  # b k
        bias = getattr(module, "logit_bias", None)
        logits: Tensor = cosines * cast(Any, module).logit_scale.exp()
        return logits if bias is None else logits + bias

    return call


def _checked(module: nn.Module, against: Sequence[Any] | None) -> list[Any]:
    """Texts or images, at least one, and all of one kind."""
    if against is None:
        raise ModelError(
            explain_error(
                "a model of two towers compares, so it needs something to compare with",
                got=f"{type(module).__name__}, against=None",
                expected="texts, to explain images, or images, to explain texts",
                instead="pellucid.adapt(model, processor, against=['a photo of a cat'])",
            )
        )
    given = [against] if isinstance(against, str) else list(against)
    if not given or len({isinstance(one, str) for one in given}) > 1:
        raise ArgumentError(
            explain_error(
                "an input is compared with texts, or with images",
                got=f"against={given!r}",
                expected="at least one, and all of one kind (a path of an image is a Path)",
                instead="against=['a photo of a cat', 'a photo of a dog']",
            )
        )
    return given
