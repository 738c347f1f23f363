"""Models, whatever library they come from, behind one surface."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import nn

from pellucid._errors import ArgumentError, ModelError, explain_error
from pellucid.adapters.base import Adapter, Kind
from pellucid.adapters.blackbox import BlackBox, Split
from pellucid.adapters.huggingface import from_huggingface, is_huggingface, load
from pellucid.adapters.module import from_module
from pellucid.adapters.timm import from_timm, is_timm
from pellucid.adapters.torch_model import Call, Hints, TorchAdapter

__all__ = ["Adapter", "BlackBox", "TorchAdapter", "adapt", "as_adapter", "blackbox", "load"]


def adapt(
    module: Any,
    processor: Any = None,
    *,
    labels: Sequence[str] | None = None,
    name: str | None = None,
    blocks: nn.ModuleList | nn.Sequential | None = None,
    word_embedding: nn.Module | None = None,
    prefix: int | None = None,
    grid: tuple[int, int] | None = None,
    call: Call | None = None,
) -> Adapter:
    """A model object in hand, ready to be explained; it is neither copied nor changed.

    Main arguments: `module` is a Hugging Face or timm model, any nn.Module, or a
    `transformers.pipeline`; `processor` is its tokenizer or image processor (timm: optional; a
    plain module on images: `pellucid.Resize`); `labels` name the classes where nothing else does.

    Other arguments, for plain modules whose structure is not found by itself: `blocks`, the list of
    Transformer blocks; `word_embedding`, the table that turns ids into vectors; `prefix` and
    `grid`, the number of tokens before the patches and the rows and columns of patches; `call`, a
    function of the module and the encoded inputs that runs it.
    """
    if isinstance(module, Adapter):
        return module
    inner = getattr(module, "model", None)
    if not isinstance(module, nn.Module) and isinstance(inner, nn.Module):  # a pipeline
        processor = processor or getattr(module, "image_processor", None) or module.tokenizer
        return adapt(inner, processor, labels=labels, name=name)
    if not isinstance(module, nn.Module):
        raise ModelError(
            explain_error(
                "this is not a model",
                got=f"{type(module).__name__} {str(module)[:40]!r}",
                expected="an nn.Module, a transformers.pipeline, or what pellucid.load returns",
                instead=f"pellucid.load({module!r})"
                if isinstance(module, str)
                else "pellucid.blackbox(function, kind='text', labels=[...])",
            )
        )
    hints = Hints(tuple(blocks) if blocks is not None else None, word_embedding, prefix, grid)
    if is_huggingface(module):
        return from_huggingface(module, processor, name=name, hints=hints)
    if is_timm(module):
        named = tuple(labels) if labels is not None else None
        return from_timm(module, processor, labels=named, name=name, hints=hints)
    return from_module(module, processor, labels=labels, name=name, call=call, hints=hints)


def blackbox(
    function: Callable[[list[Any]], Any],
    *,
    kind: Kind,
    labels: Sequence[str],
    split: Split | int | None = None,
    size: tuple[int, int] | None = None,
    name: str | None = None,
) -> BlackBox:
    """Anything that maps a list of texts or images to scores, one row an input, one a label.

    The scores are logits or log-probabilities. Images arrive as uint8 arrays (height, width, 3) of
    the given `size`. `split` says what can be left out: for texts a function that returns the
    pieces (words by default), for images the side of a square patch in pixels.
    """
    if not callable(function):
        raise ArgumentError(explain_error("a black box is a function", got=type(function).__name__))
    if kind not in ("text", "image"):
        raise ArgumentError(
            explain_error("unknown kind", got=f"kind={kind!r}", expected="'text' or 'image'")
        )
    return BlackBox(function, kind, labels, split=split, size=size, name=name)


def as_adapter(model: Any) -> Adapter:
    """What `explain` accepts as a model."""
    return adapt(model)
