"""From images to the tensor that a vision model reads, in two steps that are kept apart.

Step one, the view: resized, cropped, still 8-bit pixels; it is what a person is shown and what an
explanation stores. Step two, normalisation, is exact arithmetic on the view. So a stored
explanation can be measured again on precisely the numbers that the model saw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from pellucid._errors import ArgumentError, InputError, explain_error
from pellucid._images import Pixels, read_image
from pellucid._types import Batch, Picture, Segment

_INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "lanczos")


class Preprocessing(Protocol):
    """The geometry and the normalisation of a vision model's input."""

    @property
    def channels(self) -> int: ...
    @property
    def mean(self) -> tuple[float, ...]: ...
    @property
    def std(self) -> tuple[float, ...]: ...

    def view(self, image: Image.Image) -> Pixels: ...


@dataclass(frozen=True)
class Resize:
    """Preprocessing by hand, for models that come without a processor.

    `fit` is "stretch" (to the size, whatever the aspect) or "crop" (the shorter side to
    size / `crop_fraction`, then the centre).
    """

    size: tuple[int, int]  # height, width
    mean: tuple[float, ...] = (0.5, 0.5, 0.5)
    std: tuple[float, ...] = (0.5, 0.5, 0.5)
    fit: Literal["stretch", "crop"] = "stretch"
    crop_fraction: float = 1.0
    interpolation: Literal["nearest", "bilinear", "bicubic", "lanczos"] = "bilinear"

    def __post_init__(self) -> None:
        size = self.size if isinstance(self.size, tuple | list) else (self.size,)
        problems = {
            "size": len(size) != 2 or not all(isinstance(n, int) and n > 0 for n in size),
            "mean and std": len(self.mean) not in (1, 3) or len(self.mean) != len(self.std),
            "std": any(value == 0 for value in self.std),
            "fit": self.fit not in ("stretch", "crop"),
            "crop_fraction": not self.crop_fraction > 0,
            "interpolation": self.interpolation not in _INTERPOLATIONS,
        }
        wrong = [name for name, problem in problems.items() if problem]
        if wrong:
            raise ArgumentError(
                explain_error(
                    f"{wrong[0]} of this preprocessing cannot be used",
                    got=repr(self),
                    expected="size=(height, width), one or three of mean and std, fit 'stretch' or "
                    f"'crop', a positive crop_fraction, interpolation of {_INTERPOLATIONS}",
                    instead="pellucid.Resize((224, 224))",
                )
            )

    @property
    def channels(self) -> int:
        return len(self.mean)

    def view(self, image: Image.Image) -> Pixels:
        height, width = self.size
        filter_ = Image.Resampling[self.interpolation.upper()]
        if self.fit == "crop":
            goal = max(height, width) / self.crop_fraction
            scale = goal / min(image.size)
            image = image.resize(
                (max(width, round(image.width * scale)), max(height, round(image.height * scale))),
                filter_,
            )
            left, top = (image.width - width) // 2, (image.height - height) // 2
            image = image.crop((left, top, left + width, top + height))
        return _as_pixels(image.resize((width, height), filter_))


@dataclass(frozen=True)
class ProcessorView:
    """The geometry of a Hugging Face image processor; its normalisation is read from it."""

    processor: Any
    channels: int

    @property
    def mean(self) -> tuple[float, ...]:
        return self._statistic("image_mean", 0.0)

    @property
    def std(self) -> tuple[float, ...]:
        return self._statistic("image_std", 1.0)

    def _statistic(self, name: str, neutral: float) -> tuple[float, ...]:
        if not getattr(self.processor, "do_normalize", False):
            return (neutral / self._range,) * self.channels
        value = getattr(self.processor, name)
        values = tuple(value) if isinstance(value, list | tuple) else (value,)
        return tuple(v / self._range for v in values * self.channels)[: self.channels]

    @property
    def _range(self) -> float:
        """What the processor makes of a white pixel before it normalises (we make it 1)."""
        rescales = getattr(self.processor, "do_rescale", False)
        return 255.0 * float(self.processor.rescale_factor) if rescales else 255.0

    def view(self, image: Image.Image) -> Pixels:
        found = self.processor(image, do_rescale=False, do_normalize=False, return_tensors="np")
        pixels = found["pixel_values"][0]  # c h w, 0 to 255
        return np.ascontiguousarray(pixels.transpose(1, 2, 0).round().clip(0, 255).astype(np.uint8))


@dataclass(frozen=True)
class ImageReader:
    """Encodes images for one model: the view first, then the normalised tensor."""

    preprocessing: Preprocessing
    argument: str = "pixel_values"

    def read(self, raw: Any) -> Picture:
        """Whatever was given, as the picture that the model sees."""
        image, notes = read_image(raw, self.preprocessing.channels)
        return Picture(self.preprocessing.view(image), notes=notes)

    def batch(self, pictures: Sequence[Picture], device: torch.device, dtype: torch.dtype) -> Batch:
        """The batch of these pictures, exactly as they are."""
        views = [torch.from_numpy(np.array(picture.view)) for picture in pictures]
        if any(view.shape != views[0].shape for view in views):
            raise InputError(
                explain_error(
                    "pictures of different sizes cannot share a batch",
                    got=", ".join(sorted({str(tuple(view.shape)) for view in views})),
                    expected="one size; the model's preprocessing keeps several",
                    instead="batch_size=1",
                )
            )
        pixels = self.normalise(torch.stack(views).permute(0, 3, 1, 2).double() / 255)
        longest = max(len(picture.segments) for picture in pictures)
        return Batch(
            inputs={self.argument: pixels.to(device=device, dtype=dtype)},
            items=tuple(pictures),
            mask=torch.ones(len(pictures), longest, dtype=torch.bool, device=device),
        )

    def normalise(self, pixels: Tensor) -> Tensor:
        """From pixel values between 0 and 1 (b c h w) to what the model reads."""
        mean, std = self._statistics(pixels)
        return (pixels - mean) / std

    def denormalise(self, pixels: Tensor) -> Tensor:
        """From what the model reads (b c h w) back to pixel values, in [0, 1] for any picture."""
        mean, std = self._statistics(pixels)
        return pixels * std + mean

    def black(self, like: Tensor) -> Tensor:
        """The black pixel in the numbers that the model reads (1 c 1 1)."""
        mean, std = self._statistics(like)
        return -mean / std

    def _statistics(self, like: Tensor) -> tuple[Tensor, Tensor]:
        shape = (1, -1, 1, 1)
        mean = torch.tensor(self.preprocessing.mean, dtype=like.dtype, device=like.device)
        std = torch.tensor(self.preprocessing.std, dtype=like.dtype, device=like.device)
        return mean.view(shape), std.view(shape)


def patch_segments(
    grid: tuple[int, int], patch: tuple[int, int], prefix: Sequence[str]
) -> tuple[Segment, ...]:
    """The tokens of a vision Transformer: what it puts in front, then the patches row by row."""
    rows, columns = grid
    height, width = patch
    return (
        *(Segment(name, role="special") for name in prefix),
        *(
            Segment(
                f"row {r + 1}, column {c + 1}",
                box=(r * height, c * width, (r + 1) * height, (c + 1) * width),
            )
            for r in range(rows)
            for c in range(columns)
        ),
    )


def _as_pixels(image: Image.Image) -> Pixels:
    array = np.array(image, dtype=np.uint8)
    return array[..., None] if array.ndim == 2 else array
