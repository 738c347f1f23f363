"""A torch module that reads images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import compress
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from pellucid._errors import ArgumentError, explain_error
from pellucid._needs import Needs
from pellucid._target import Target
from pellucid._types import Batch, Picture, Segment, Text
from pellucid.adapters.anatomy import Anatomy
from pellucid.adapters.image import ImageReader, patch_segments
from pellucid.adapters.torch_model import TorchAdapter
from pellucid.record.attention import AttentionWatch
from pellucid.record.places import recorded, replaced

_PREFIX_NAMES = {  # of parameters that stand before the patches
    "cls_token": "[CLS]",
    "class_embedding": "[CLS]",
    "distillation_token": "[DIST]",
    "dist_token": "[DIST]",
    "register_tokens": "[REG]",
    "reg_token": "[REG]",
}


_REFUSALS = (RuntimeError, ValueError, IndexError)  # of a model that meets other shapes


class ImageModel(TorchAdapter):
    """Its input is a tensor of pixels, which is also the state that can be varied."""

    kind = "image"
    _input_place = None

    def __init__(self, module: nn.Module, reader: ImageReader, **options: Any) -> None:
        super().__init__(module, **options)
        self.reader = reader

    def read(self, raw: Any, target: Target, **options: Any) -> Picture:
        return self.cut(self.reader.read(raw, **options))

    def cut(self, picture: Picture) -> Picture:
        """The picture with its patches, where the model has tokens for them."""
        if Needs.TOKENS not in self.offers:
            return picture
        height, width = picture.view.shape[:2]
        return replace(
            picture, segments=self._segments(height, width), grid=self._grid(height, width)
        )

    def batch(self, items: Sequence[Text | Picture], target: Target) -> Batch:
        pictures = [item for item in items if isinstance(item, Picture)]
        return self.reader.batch(pictures, self.device, self.dtype)

    def with_pixels(self, batch: Batch, pixels: Tensor) -> Batch:
        """The batch with other normalised pixels in the place of its own."""
        return replace(batch, inputs={**batch.inputs, self.reader.argument: pixels}, start=None)

    def output_from(self, batch: Batch, at: str, x: Tensor) -> Any:
        if at == "input":
            return self.output(self.with_pixels(batch, x))
        return super().output_from(batch, at, x)

    def value_at(self, batch: Batch, at: str) -> Tensor:
        if at == "input":
            return batch.inputs[self.reader.argument].detach()
        return super().value_at(batch, at)

    def keep(self, batch: Batch, keep: Tensor) -> Batch:
        counts = keep.sum(dim=1)
        if counts.min() != counts.max():
            raise ArgumentError(
                explain_error(
                    "images in one batch must keep the same number of tokens",
                    got=f"{counts.tolist()} tokens",
                    expected="one number",
                    instead="one batch for each number of kept tokens",
                )
            )
        index = keep.nonzero()[:, 1].view(len(batch), -1)
        items = tuple(
            replace(item, segments=tuple(compress(item.segments, flags)))
            for item, flags in zip(batch.items, keep.tolist(), strict=True)
        )
        kept = index if batch.kept is None else batch.kept.gather(1, index)
        return replace(batch, items=items, mask=batch.mask.new_ones(index.shape), kept=kept)

    # ---- patches -----------------------------------------------------------------------------

    def _segments(self, height: int, width: int) -> tuple[Segment, ...]:
        """The tokens of a picture: what stands in front, then the patches."""
        conv = self.anatomy.patchify
        rows, columns = self._grid(height, width)
        patch = (height // rows, width // columns)
        if isinstance(conv, nn.Conv2d):
            patch = (int(conv.kernel_size[0]), int(conv.kernel_size[1]))
        return patch_segments((rows, columns), patch, self._prefix_names(self.anatomy.prefix))

    def _grid(self, height: int, width: int) -> tuple[int, int]:
        conv = self.anatomy.patchify
        if isinstance(conv, nn.Conv2d):
            return height // int(conv.kernel_size[0]), width // int(conv.kernel_size[1])
        assert self._hints.grid is not None  # adapt takes prefix and grid together
        return self._hints.grid

    def _prefix_names(self, count: int) -> list[str]:
        """Names for the tokens in front of the patches, by the parameters that they come from."""
        names: list[str] = []
        for parameter, tensor in self.module.named_parameters():
            last = parameter.rsplit(".", 1)[-1]
            if last in _PREFIX_NAMES:
                names += [_PREFIX_NAMES[last]] * (tensor.shape[1] if tensor.dim() == 3 else 1)
        return names if len(names) == count else [f"[prefix {i}]" for i in range(count)]

    # ---- the probe ---------------------------------------------------------------------------

    def _probe(self) -> Batch:
        """Twice one image of noise, the second with another first patch."""
        channels = self.reader.preprocessing.channels
        grey = Image.new("L" if channels == 1 else "RGB", (64, 64), 128)
        height, width = self.reader.preprocessing.view(grey).shape[:2]
        generator = torch.Generator().manual_seed(0)
        pixels = torch.rand(1, channels, height, width, generator=generator).repeat(2, 1, 1, 1)
        pixels[1, :, :2, :2] = 1 - pixels[1, :, :2, :2]
        tensor = self.reader.normalise(pixels).to(self.device, self.dtype)
        blank = Picture(np.zeros((height, width, channels), np.uint8))
        mask = torch.ones(2, 0, dtype=torch.bool, device=self.device)
        return Batch({self.reader.argument: tensor}, (blank, blank), mask)

    def _drop_problem(self, anatomy: Anatomy) -> str | None:
        """Dropping a patch must equal hiding it from all attention, or it is not offered."""
        if Needs.TOKENS not in anatomy.offers or Needs.ATTENTION not in anatomy.offers:
            return anatomy.missing.get(Needs.TOKENS) or anatomy.missing[Needs.ATTENTION]
        probe, places = self._probe(), {"first": anatomy.embedding, "last": anatomy.last}
        with torch.no_grad(), recorded(places) as seen:
            self._call(self.module, probe.inputs)
            stream = seen["first"]
            stays = torch.ones(stream.shape[:2], dtype=torch.bool, device=stream.device)
            stays[:, anatomy.prefix + 1] = False
            with AttentionWatch(blocked=~stays):
                self._call(self.module, probe.inputs)
            hidden = seen["last"][stays]
            shorter = stream[stays].view(len(stream), -1, stream.shape[-1])
            with replaced(anatomy.embedding, shorter):
                try:
                    self._call(self.module, probe.inputs)
                except _REFUSALS as error:
                    first = str(error).splitlines()[0]
                    return f"its blocks need every patch in its place ({first})"
                dropped = seen["last"]
                anatomy.starts_alone = self._starts_alone(probe, seen, dropped)
        tolerance = 1e-3 if self.dtype in (torch.float32, torch.float64) else 5e-2
        if (dropped.flatten(0, 1) - hidden).abs().max() > tolerance * hidden.abs().max():
            return "leaving a patch out is not the same as not attending to it"
        return None

    def _starts_alone(self, probe: Batch, seen: Mapping[str, Tensor], expected: Tensor) -> bool:
        """Whether the blocks take a stream of several images behind the pixels of only one."""
        try:
            self._call(self.module, {name: x[:1] for name, x in probe.inputs.items()})
        except _REFUSALS:
            return False
        return torch.equal(seen["last"], expected)
