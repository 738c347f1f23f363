"""Models, whatever library they come from, behind one surface."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from torch import nn

from pellucid._errors import ArgumentError, ModelError, explain_error
from pellucid.adapters.answers import Gives
from pellucid.adapters.base import Adapter, Kind, Task
from pellucid.adapters.blackbox import BlackBox, Takes, form_of
from pellucid.adapters.huggingface import from_huggingface, is_huggingface, load
from pellucid.adapters.module import from_module
from pellucid.adapters.pieces import Split
from pellucid.adapters.timm import from_timm, is_timm
from pellucid.adapters.torch_model import Call, Hints, TorchAdapter, check_not_compiled
from pellucid.adapters.two_towers import from_two_towers, has_two_towers

__all__ = ["Adapter", "BlackBox", "TorchAdapter", "adapt", "as_adapter", "blackbox", "load"]


def adapt(
    module: Any,
    processor: Any = None,
    *,
    labels: Sequence[str] | None = None,
    task: Task = "classification",
    name: str | None = None,
    blocks: nn.ModuleList | nn.Sequential | None = None,
    word_embedding: nn.Module | None = None,
    prefix: int | None = None,
    grid: tuple[int, int] | None = None,
    call: Call | None = None,
    against: Sequence[Any] | None = None,
) -> Adapter:
    """A model object in hand, ready to be explained; it is neither copied nor changed.

    Main arguments: `module` is a Hugging Face or timm model, any nn.Module, or a
    `transformers.pipeline`; `processor` is its tokenizer or image processor (timm: optional; a
    plain module on images: `pellucid.Resize`); `labels` name the classes where nothing else does;
    `against`, for a model of two towers (CLIP), are the texts that images are compared with, or the
    images that texts are compared with.

    Other arguments, for modules whose structure is not found by itself: `blocks`, the list of
    Transformer blocks; `word_embedding`, the table that turns ids into vectors; `prefix` and
    `grid`, the number of tokens before the patches and the rows and columns of patches; `call`, a
    function of the module and the encoded inputs that runs it; `task`, of a plain module:
    "classification", "multilabel" or "regression".
    """
    if isinstance(module, Adapter):
        return module
    inner = getattr(module, "model", None)
    if not isinstance(module, nn.Module) and isinstance(inner, nn.Module):  # a pipeline
        processor = processor or getattr(module, "image_processor", None) or module.tokenizer
        module = inner
    _check_module(module)
    hints = Hints(tuple(blocks) if blocks is not None else None, word_embedding, prefix, grid)
    common: dict[str, Any] = {"labels": labels, "name": name, "call": call, "hints": hints}
    if has_two_towers(module):
        return from_two_towers(module, processor, against, labels=labels, name=name)
    if is_huggingface(module):
        return from_huggingface(module, processor, **common)
    if is_timm(module):
        return from_timm(module, processor, **common)
    return from_module(module, processor, task=task, **common)


def _check_module(module: Any) -> None:
    if isinstance(module, nn.DataParallel | nn.parallel.DistributedDataParallel):
        raise ModelError(
            explain_error(
                "a model that is spread over devices for training is wrapped",
                got=type(module).__name__,
                expected="the model inside",
                instead="pellucid.adapt(model.module, processor)",
            )
        )
    if isinstance(module, nn.Module):
        check_not_compiled(module)
    else:
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


def blackbox(
    function: Callable[[list[Any]], Any],
    *,
    kind: Kind,
    labels: Sequence[str],
    gives: Gives | None = None,
    takes: Takes = "strings",
    split: Split | int | None = None,
    mask: str | None = None,
    size: tuple[int, int] | None = None,
    largest_batch: int | None = None,
    name: str | None = None,
) -> BlackBox:
    """Anything that maps a list of texts or images to scores, one row an input, one a label.

    Main arguments: `gives` says what the function returns: "logits", "log_probabilities",
    "probabilities", or "log_odds" (one number an input, for the second of two labels); it must be
    said where the numbers look like probabilities. Images arrive as uint8 arrays (height, width, 3)
    of the given `size`. `split` says what can be left out: for texts "words" (also if nothing is
    said), "characters", "sentences", a tokenizer, or a function that returns the pieces; for images
    the side of a square patch in pixels.

    Other arguments: `takes="ids"` hands texts on as lists of ids of the tokenizer that `split` is;
    `mask` is what methods with by="mask" write in the place of a piece; `largest_batch` is the most
    inputs that the function takes at once.
    """
    if not callable(function):
        raise ArgumentError(
            explain_error(
                "a black box is a function",
                got=type(function).__name__,
                expected="a function of a list of texts or images",
                instead="pellucid.blackbox(model.predict_log_proba, kind='text', labels=[...])",
            )
        )
    if kind not in ("text", "image"):
        raise ArgumentError(
            explain_error(
                "unknown kind",
                got=f"kind={kind!r}",
                expected="'text' or 'image'",
                instead="kind='text'",
            )
        )
    form = form_of(kind, labels, takes, split, mask, size)
    return BlackBox(
        function, kind, labels, form, gives=gives, largest_batch=largest_batch, name=name
    )


_adapted: WeakKeyDictionary[Any, Adapter] = WeakKeyDictionary()  # so that a probe runs once


def as_adapter(model: Any) -> Adapter:
    """What `explain` accepts as a model; a pipeline is adapted at its first use."""
    if isinstance(model, Adapter):
        return model
    found = _adapted.get(model) if getattr(model, "__weakref__", model) is not model else None
    if found is None:
        found = adapt(model)
        _adapted[model] = found
    return found
