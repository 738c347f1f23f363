"""timm models: their own description says how images are prepared; timm itself is not imported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from torch import nn

from pellucid.adapters.image import ImageReader, Preprocessing, Resize
from pellucid.adapters.image_model import ImageModel
from pellucid.adapters.torch_model import Call, Hints, call_by_position

_IMAGENET_MEAN, _IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def is_timm(module: nn.Module) -> bool:
    """Whether a module describes itself as timm's models do."""
    return isinstance(getattr(module, "pretrained_cfg", None), dict) and hasattr(
        module, "forward_features"
    )


def from_timm(
    module: nn.Module,
    preprocessing: Preprocessing | None = None,
    *,
    labels: Sequence[str] | None = None,
    name: str | None = None,
    call: Call | None = None,
    hints: Hints | None = None,
) -> ImageModel:
    """The adapter of a timm model; `preprocessing` defaults to the model's own description."""
    config: dict[str, Any] = cast(Any, module).pretrained_cfg
    classes = int(getattr(module, "num_classes", 0) or config.get("num_classes", 1000))
    named = labels or config.get("label_names") or [str(i) for i in range(classes)]
    return ImageModel(
        module,
        ImageReader(preprocessing or _described(module, config)),
        name=name or str(config.get("architecture") or type(module).__name__),
        task="classification",
        labels=named,
        call=call or call_by_position,
        hints=hints,
    )


def _described(module: nn.Module, config: dict[str, Any]) -> Resize:
    size = getattr(getattr(module, "patch_embed", None), "img_size", None)
    height, width = size or config.get("input_size", (3, 224, 224))[1:]
    bilinear = config.get("interpolation") == "bilinear"
    return Resize(
        (height, width),
        mean=tuple(config.get("mean", _IMAGENET_MEAN)),
        std=tuple(config.get("std", _IMAGENET_STD)),
        fit="crop",
        crop_fraction=float(config.get("crop_pct") or 0.875),
        interpolation="bilinear" if bilinear else "bicubic",
    )
