"""From the tensors of other libraries back to a batch: what is a token, and what padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import torch
from torch import Tensor

from pellucid._errors import ArgumentError, InputError, explain_error
from pellucid._types import Batch, Picture, Segment, Text
from pellucid.adapters import TorchAdapter
from pellucid.adapters.image_model import ImageModel
from pellucid.adapters.text import TextReader
from pellucid.adapters.text_model import TextModel

NAMES = ("attention_mask", "token_type_ids", "input_ids", "position_ids")  # after the one tensor
Rest = Sequence[Tensor | None]

_ABSENT = Text((), ())  # of inputs that only pass through, which nobody looks at


def batch_of(adapter: TorchAdapter, x: Tensor, rest: Rest) -> tuple[Batch, Tensor | None]:
    """The batch to run, and the word embeddings where those were given instead of ids."""
    if isinstance(adapter, ImageModel):
        pixels = checked_pixels(adapter, x)
        mask = torch.ones(len(pixels), 0, dtype=torch.bool, device=adapter.device)
        return Batch({adapter.reader.argument: pixels}, (_ABSENT,) * len(pixels), mask), None
    model = cast(TextModel, adapter)
    given = dict(zip(NAMES, rest, strict=False))
    if not x.is_floating_point():
        return text_batch(model, {**given, "input_ids": x}), None
    if x.dim() != 3:
        raise _wrong_shape(x, "word embeddings: batch, tokens, width (or ids: batch, tokens)")
    if given.get("input_ids") is None:
        given["input_ids"] = _stand_ins(model, x, given.get("attention_mask"))
    return text_batch(model, given), x.to(model.device, model.dtype)


def text_batch(model: TextModel, given: dict[str, Tensor | None]) -> Batch:
    """Ids and what goes with them (b t) as a batch; the model's own notes on texts are left out."""
    tensors = {name: x.to(model.device) for name, x in given.items() if x is not None}
    ids = tensors["input_ids"]
    for name, tensor in tensors.items():
        if tensor.shape != ids.shape or tensor.dim() != 2:
            raise _wrong_shape(tensor, f"{name}: batch, tokens, as input_ids has {_shape(ids)}")
    _check_alone(model, len(ids))
    tensors.setdefault("attention_mask", torch.ones_like(ids))
    real = tensors["attention_mask"].bool()
    accepts = model.reader.accepts | {"input_ids"}
    return Batch(
        {name: tensor for name, tensor in tensors.items() if name in accepts},
        (_ABSENT,) * len(ids),
        real,
        _reads(model.reader, ids, real),
    )


def texts_of(model: TextModel, batch: Batch) -> tuple[Text, ...]:
    """What these ids say, token by token, as far as ids alone can tell."""
    tokenizer, found = model.reader.tokenizer, []
    added = set(tokenizer.all_special_ids)
    names = [name for name in ("input_ids", "token_type_ids") if name in batch.inputs]
    for row, real in enumerate(batch.mask):
        rows = {name: tuple(batch.inputs[name][row][real].tolist()) for name in names}
        segments = tuple(
            Segment(tokenizer.decode([token]), role="special" if token in added else "content")
            for token in rows["input_ids"]
        )
        own = [token for token in rows["input_ids"] if token not in added]
        found.append(Text((tokenizer.decode(own),), segments, rows=rows))
    return tuple(found)


def pictures_of(model: ImageModel, pixels: Tensor) -> tuple[Picture, ...]:
    """What these pixels show; the view is 8-bit and clipped, the pixels themselves stay exact."""
    shown = model.reader.denormalise(pixels.detach().double()).clamp(0, 1)
    views = (255 * shown).round().to(torch.uint8).permute(0, 2, 3, 1).cpu().numpy()
    return tuple(model.cut(Picture(np.ascontiguousarray(view))) for view in views)


def checked_pixels(model: ImageModel, x: Tensor) -> Tensor:
    """Pixels in the numbers that the model reads (b c h w), on its device and of its type."""
    channels = model.reader.preprocessing.channels
    if x.dim() != 4 or x.shape[1] != channels or not x.is_floating_point():
        raise _wrong_shape(x, f"normalised pixels: batch, {channels} channels, height, width")
    return x.to(model.device, model.dtype)


def _stand_ins(model: TextModel, x: Tensor, mask: Tensor | None) -> Tensor:
    """Ids for embeddings that come without: any word, and padding where there is padding."""
    if model.reader.reads == "mask":
        raise ArgumentError(
            explain_error(
                "a masked language model is read where the masked word stands, which ids tell",
                got="word embeddings alone",
                expected="the ids beside the embeddings",
                instead="module(embeddings, input_ids=ids); pellucid.compat.encoded gives both",
            )
        )
    pad = model.reader.pad_id
    ids = torch.full(x.shape[:2], int(pad == 0), dtype=torch.long, device=model.device)
    if mask is None or pad is None:
        return ids
    return ids.masked_fill(~mask.to(ids.device).bool(), pad)


def _reads(reader: TextReader, ids: Tensor, real: Tensor) -> Tensor | None:
    """The positions whose logits are the prediction (b 1), of a model that predicts tokens."""
    if reader.reads == "none":
        return None
    if reader.reads == "last":
        places = torch.arange(ids.shape[1], device=ids.device)
        return (places * real).argmax(dim=1, keepdim=True)
    masked: Tensor = ids == reader.tokenizer.mask_token_id
    if not masked.any(dim=1).all():
        raise InputError(
            explain_error(
                "a masked language model needs a masked word to predict",
                got=f"ids without {reader.tokenizer.mask_token!r}",
                expected=f"one of id {reader.tokenizer.mask_token_id} in every row",
                instead="pellucid.compat.encoded(model, 'The film was [MASK].', at='ids')",
            )
        )
    return masked.long().argmax(dim=1, keepdim=True)


def _check_alone(model: TextModel, count: int) -> None:
    if model.largest_batch is not None and count > model.largest_batch:
        raise InputError(
            explain_error(
                "this model takes one text at a time",
                got=f"{count} texts, and no padding token in the model's config",
                expected="config.pad_token_id, by which it finds where a text ends",
                instead="model.config.pad_token_id = tokenizer.eos_token_id, or Captum's "
                "internal_batch_size=1",
            )
        )


def _wrong_shape(x: Tensor, expected: str) -> InputError:
    return InputError(
        explain_error(
            "this tensor is not what the model reads",
            got=f"{_shape(x)} of {x.dtype}",
            expected=expected,
            instead="pellucid.compat.encoded(model, inputs)",
        )
    )


def _shape(x: Tensor) -> str:
    return " x ".join(map(str, x.shape))
