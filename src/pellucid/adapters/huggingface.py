"""Hugging Face models: loading a checkpoint by name, and adapting a model in hand."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from pellucid._errors import ModelError, PellucidError, explain_error, unknown_name
from pellucid.adapters.base import Task
from pellucid.adapters.checkpoints import check_checkpoint
from pellucid.adapters.image import ImageReader, ProcessorView, Resize
from pellucid.adapters.image_model import ImageModel
from pellucid.adapters.text import Reads, TextReader
from pellucid.adapters.text_model import TextModel
from pellucid.adapters.torch_model import Call, Hints, TorchAdapter, call_by_name
from pellucid.models import bundled_names, bundled_path

_HEADS: dict[str, Task] = {  # what a class name ends in -> what its logits mean
    "ForSequenceClassification": "classification",
    "ForImageClassification": "classification",
    "ForImageClassificationWithTeacher": "classification",
    "ForMaskedLM": "masked",
    "ForCausalLM": "causal",
    "LMHeadModel": "causal",
    "ForTokenClassification": "other",
    "ForQuestionAnswering": "other",
}


def load(
    name: str | Path,
    *,
    revision: str | None = None,
    dtype: torch.dtype | str = "float32",
    device: torch.device | str | None = None,
    device_map: Any = None,
    trust_remote_code: bool = False,
) -> TorchAdapter:
    """Load a Hugging Face checkpoint with its processor, ready to be explained.

    Main arguments: `name` is a folder, a name on the hub, or "pellucid/<name>" for a bundled
    model; `device` is where it goes.

    Other arguments: `dtype` is float32 unless said otherwise, also for checkpoints stored in half
    precision, because gradients of probabilities underflow there ("auto" keeps what is stored).
    """
    import transformers

    path = _resolve(str(name))
    _check_folder(path)
    _check_dtype(dtype)
    _look_up(path, revision)
    options: dict[str, Any] = {"trust_remote_code": trust_remote_code}
    if revision is not None:
        options["revision"] = revision
    placed = {"dtype": dtype} | ({} if device_map is None else {"device_map": device_map})
    try:
        check_checkpoint(path, revision, trusted=trust_remote_code)
        config = transformers.AutoConfig.from_pretrained(path, **options)
        classes = _model_classes(transformers, config, str(name))
        module = _load_complete(classes, path, str(name), config=config, **placed, **options)
        processor = _load_processor(transformers, path, module, options)
        found = from_huggingface(module.eval(), processor, name=str(name))
    except PellucidError:
        raise
    except AssertionError as error:  # of torch, which was built without what device_map names
        raise _no_device(f"device_map={device_map!r}", error) from None
    except Exception as error:  # of whichever library stumbled over a damaged or hostile file
        raise ModelError(_not_loaded(str(name), error, trust_remote_code)) from error
    if device is not None:
        _move(module, device)
    return found


def from_huggingface(
    module: nn.Module,
    processor: Any,
    *,
    name: str | None = None,
    labels: Sequence[str] | None = None,
    call: Call | None = None,
    hints: Hints | None = None,
) -> TorchAdapter:
    """The adapter of a Hugging Face model (PEFT-wrapped or not) and its tokenizer or processor."""
    config = cast(Any, module).config
    if getattr(config, "is_encoder_decoder", False):
        raise ModelError(
            explain_error(
                "encoder-decoder models, which generate from another text, are not explained yet",
                got=type(module).__name__,
                expected="a classifier, a masked or a causal language model",
                instead="load the encoder with a classification head, or a decoder-only model",
            )
        )
    task = _task(module, config)
    name = name or getattr(config, "name_or_path", "") or type(_unwrapped(module)).__name__
    labels = () if task in ("masked", "causal") else labels or _labels(config)
    known = {"name": name, "task": task, "labels": labels, "hints": hints}
    if _reads_images(processor):
        view = processor
        if not isinstance(processor, Resize):
            channels = _config_value(config, "num_channels", 3)
            view = ProcessorView(getattr(processor, "image_processor", processor), channels)
        return ImageModel(module, ImageReader(view), call=call or call_by_name, **known)
    reader = _text_reader(module, config, getattr(processor, "tokenizer", processor), task)
    if call is None:
        call = _call_without_cache if "use_cache" in reader.accepts else call_by_name
    return TextModel(module, reader, call=call, **known)


def _move(module: nn.Module, device: torch.device | str) -> None:
    try:
        module.to(device)
    except (RuntimeError, AssertionError) as error:
        raise _no_device(f"device={str(device)!r}", error) from None


def _no_device(got: str, error: Exception) -> ModelError:
    return ModelError(
        explain_error(
            "the model cannot be moved to this device",
            got=f"{got} ({str(error).splitlines()[0]})",
            expected="'cpu', or an accelerator that torch sees",
            instead="device='cpu'",
        )
    )


def _call_without_cache(module: nn.Module, inputs: Mapping[str, Tensor]) -> Any:
    """Keys and values kept for the next token would only take memory."""
    return module(**inputs, use_cache=False)


def is_huggingface(module: nn.Module) -> bool:
    """Whether a module carries a Hugging Face config, as wrapped ones do too."""
    return hasattr(getattr(module, "config", None), "to_dict") and hasattr(module, "forward")


# ---- loading -------------------------------------------------------------------------------------


def _resolve(name: str) -> str:
    if not name.startswith("pellucid/"):
        return name
    short = name.removeprefix("pellucid/")
    if short not in bundled_names():
        names = [f"pellucid/{known}" for known in bundled_names()]
        raise ModelError(unknown_name("bundled model", name, names, write="pellucid.load({!r})"))
    return str(bundled_path(short))


def _check_dtype(dtype: Any) -> None:
    known = isinstance(getattr(torch, dtype, None), torch.dtype) if isinstance(dtype, str) else None
    if not (dtype == "auto" or known or isinstance(dtype, torch.dtype)):
        raise ModelError(
            explain_error(
                "unknown type of numbers",
                got=f"dtype={dtype!r}",
                expected="a torch.dtype, its name, or 'auto' for what the checkpoint stores",
                instead="dtype='float32'",
            )
        )


def _check_folder(path: str) -> None:
    if os.path.isfile(os.path.join(path, "adapter_config.json")):
        raise ModelError(
            explain_error(
                "this folder holds a PEFT adapter, not a whole model",
                got=path,
                expected="a model; an adapter needs the base that it was trained on",
                instead="pellucid.adapt(PeftModel.from_pretrained(base, folder).eval(), tokenizer)",
            )
        )


def _look_up(path: str, revision: str | None) -> None:
    """Ask the hub once for a name that is neither here nor cached: its own retries take minutes."""
    from huggingface_hub import HfApi, constants, try_to_load_from_cache

    if os.path.exists(path) or constants.HF_HUB_OFFLINE:
        return
    try:
        if try_to_load_from_cache(path, "config.json", revision=revision) is None:
            HfApi().model_info(path, revision=revision, timeout=10)
    except Exception as error:  # noqa: BLE001  # the errors of whichever HTTP library the hub uses
        raise ModelError(_not_loaded(path, error, trusted=True)) from None


def _model_classes(transformers: Any, config: Any, name: str) -> list[Any]:
    """The class named in the checkpoint's config, or all that might fit where it names no head."""
    named = (getattr(config, "architectures", None) or [""])[0]
    if getattr(config, "is_encoder_decoder", False) or named.endswith("ForConditionalGeneration"):
        raise ModelError(
            explain_error(
                "encoder-decoder models, which generate from another text, are not explained yet",
                got=f"{name} ({named or config.model_type})",
                expected="a classifier, a masked or a causal language model",
                instead="pellucid.load('pellucid/reviews-bert')",
            )
        )
    head = next((head for head in _HEADS if named.endswith(head)), None)
    if head is not None:
        return [getattr(transformers, named, None) or getattr(transformers, _AUTO[head])]
    autos = [getattr(transformers, auto) for auto in dict.fromkeys(_AUTO.values())]
    return [auto for auto in autos if type(config) in auto._model_mapping]


def _load_complete(classes: Sequence[Any], path: str, name: str, **options: Any) -> Any:
    """The first of the classes for which the checkpoint holds all weights: none is made up."""
    lacking = ""
    for model_class in classes:
        with _quiet(len(classes) > 1):  # it reports every weight that a wrong guess lacks
            module, info = model_class.from_pretrained(path, output_loading_info=True, **options)
        if not info["missing_keys"]:
            return module
        lacking = ", ".join(sorted(info["missing_keys"])[:4])
    raise ModelError(
        explain_error(
            "this checkpoint has no trained prediction head to explain",
            got=f"{name}, without weights for {lacking or 'any known head'}",
            expected="a checkpoint saved from a class that ends in " + ", ".join(_HEADS),
            instead="train or load a head, then pellucid.adapt(model, processor)",
        )
    )


@contextmanager
def _quiet(wanted: bool) -> Iterator[None]:
    """Inside the block, transformers logs errors only."""
    from transformers.utils import logging

    before = logging.get_verbosity()
    if wanted:
        logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)


_AUTO = {head: f"AutoModel{head}" for head in _HEADS} | {
    "LMHeadModel": "AutoModelForCausalLM",
    "ForImageClassificationWithTeacher": "AutoModelForImageClassification",
}


def _load_processor(transformers: Any, path: str, module: Any, options: Mapping[str, Any]) -> Any:
    if module.main_input_name == "pixel_values":
        # from its own file: older releases offer the name above it only beside torchvision
        from transformers.models.auto.image_processing_auto import AutoImageProcessor

        # the backend without torchvision, so that numbers are the same on every machine
        return AutoImageProcessor.from_pretrained(path, backend="pil", **options)
    tokenizer = transformers.AutoTokenizer.from_pretrained(path, **options)
    if len(tokenizer) <= len(tokenizer.all_special_ids):
        raise OSError(f"its tokenizer has no words: are the tokenizer files in {path}?")
    return tokenizer


def _not_loaded(name: str, error: Exception, trusted: bool) -> str:
    reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
    if "trust_remote_code" in str(error) and not trusted:
        return explain_error(
            f"{name} comes with code of its own, which is not run unless you say so",
            got="trust_remote_code=False",
            expected="a model whose code is part of transformers",
            instead="read that code; if you trust it: pellucid.load(..., trust_remote_code=True)",
        )
    if type(error).__name__ == "UnpicklingError":  # whose own message says how to run it
        return explain_error(
            f"the weights of {name} hold more than tensors, and are not read",
            got="pickled objects, which can run code",
            expected="weights in safetensors, or a pytorch_model.bin of tensors alone",
            instead="where you trust them: model.save_pretrained(folder), which writes safetensors",
        )
    here = os.path.isdir(name)
    return explain_error(
        f"the model {name!r} could not be loaded",
        got=reason,
        expected="a folder with config.json, weights and tokenizer or image processor"
        if here
        else "a folder on this machine, a name on the Hugging Face hub (with a network), or a "
        "bundled model",
        instead="model.save_pretrained(folder), tokenizer.save_pretrained(folder)"
        if here
        else "pellucid.load(" + " | ".join(repr(f"pellucid/{n}") for n in bundled_names()) + ")",
    )


# ---- what a config says --------------------------------------------------------------------------


def _unwrapped(module: nn.Module) -> nn.Module:
    """The model inside a PEFT wrapper."""
    base = getattr(module, "get_base_model", None)
    return base() if base is not None else module


def _task(module: nn.Module, config: Any) -> Task:
    named = type(_unwrapped(module)).__name__
    task = next((task for head, task in _HEADS.items() if named.endswith(head)), None)
    if task is None:
        raise ModelError(
            explain_error(
                "this model has no prediction head to explain",
                got=named,
                expected="a class that ends in " + ", ".join(_HEADS),
                instead="load the checkpoint with AutoModelForSequenceClassification or its like",
            )
        )
    problem = getattr(config, "problem_type", None)
    if task != "classification":
        return task
    if problem == "multi_label_classification":
        return "multilabel"
    single = _config_value(config, "num_labels", 2) == 1
    return "regression" if problem == "regression" or single else "classification"


def _config_value(config: Any, name: str, default: Any) -> Any:
    """A value of a config, or of the part of it that describes the vision or text tower."""
    for part in (
        config,
        getattr(config, "vision_config", None),
        getattr(config, "text_config", None),
    ):
        if getattr(part, name, None) is not None:
            return getattr(part, name)
    return default


def _labels(config: Any) -> tuple[str, ...]:
    named = dict(getattr(config, "id2label", None) or {})
    return tuple(
        str(named.get(i, i)) for i in range(_config_value(config, "num_labels", len(named)))
    )


def _reads_images(processor: Any) -> bool:
    if processor is None:
        raise ModelError(
            explain_error(
                "a model needs its processor",
                got="processor=None",
                expected="its tokenizer or image processor",
                instead="pellucid.adapt(model, AutoTokenizer.from_pretrained(...))",
            )
        )
    tokenizer = getattr(processor, "tokenizer", processor)
    if hasattr(processor, "image_processor") or hasattr(processor, "image_mean"):
        return True
    if isinstance(processor, Resize) or hasattr(tokenizer, "convert_ids_to_tokens"):
        return isinstance(processor, Resize)
    raise ModelError(
        explain_error(
            "this does not prepare inputs for a Hugging Face model",
            got=f"processor={type(processor).__name__}",
            expected="its tokenizer or image processor, or a pellucid.Resize for images",
            instead="pellucid.adapt(model, AutoTokenizer.from_pretrained(...))",
        )
    )


def _text_reader(module: nn.Module, config: Any, tokenizer: Any, task: Task) -> TextReader:
    reads: dict[Task, Reads] = {"masked": "mask", "causal": "last"}
    forward = inspect.signature(cast(Any, _unwrapped(module)).forward)
    pad = getattr(config, "pad_token_id", None)
    pad = None if pad is not None and pad < 0 else pad  # early Llamas say -1
    if pad is None and task in reads:
        pad = tokenizer.pad_token_id or 0  # hidden by the mask, so any token will do
    return TextReader(
        tokenizer,
        frozenset(forward.parameters),
        longest=min(_positions(module, config), tokenizer.model_max_length),
        pad_id=pad,
        reads=reads.get(task, "none"),
    )


def _positions(module: nn.Module, config: Any) -> int:
    """How many tokens the model has positions for (RoBERTa keeps the first few for padding)."""
    most = int(_config_value(config, "max_position_embeddings", 10**9))
    most = most if most > 0 else 10**9  # XLNet says -1 of positions that are relative
    for name, child in module.named_modules():
        if name.endswith("position_embeddings") and isinstance(child, nn.Embedding):
            return most - (0 if child.padding_idx is None else child.padding_idx + 1)
    return most
