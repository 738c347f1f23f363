"""Reading images: whatever a person hands over becomes 8-bit pixels, or one clear error."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from PIL import Image, ImageOps

from pellucid._errors import InputError, explain_error

MOST_PIXELS = 50_000_000
LEAST_SIDE = 2
FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF")  # of pixels; no documents, no programs
SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff")

Pixels = np.ndarray[tuple[int, int, int], np.dtype[np.uint8]]


def read_image(raw: Any, channels: int = 3) -> tuple[Image.Image, tuple[str, ...]]:
    """An 8-bit image in grey (1 channel) or RGB (3), with notes on what had to be changed."""
    image = ImageOps.exif_transpose(opened(raw))
    notes: list[str] = []
    if image.mode.startswith("I;16") or image.mode in ("I", "F"):
        image = _eight_bits(image)
        notes.append("16-bit values were scaled to 8 bits")
    image = _flattened(image, notes)
    return image.convert("L" if channels == 1 else "RGB"), tuple(notes)


def looks_like_image(path: str) -> bool:
    """Whether a command-line input is the path of an image file."""
    return path.lower().endswith(SUFFIXES)


def opened(raw: Any) -> Image.Image:
    """An image with its values as they are stored, once it is sure that it can be held."""
    if isinstance(raw, Image.Image):
        return _checked(raw, "the image given")
    if isinstance(raw, str | Path):
        return _from_file(Path(raw))
    if isinstance(raw, bytes):
        return _decoded(io.BytesIO(raw), "the bytes given")
    if isinstance(raw, torch.Tensor):
        raw = (raw.float() if raw.is_floating_point() else raw).detach().cpu().numpy()
        if raw.ndim == 3 and raw.shape[0] in (1, 3, 4):
            raw = raw.transpose(1, 2, 0)
    if isinstance(raw, np.ndarray):
        return _checked(_from_array(raw), "the array given")
    raise InputError(
        explain_error(
            "this is not an image",
            got=type(raw).__name__,
            expected="a path, a PIL image, an array (height, width[, channels]) or a tensor "
            "(channels, height, width)",
            instead="pellucid.explain(model, 'photo.jpg')",
        )
    )


def _from_file(path: Path) -> Image.Image:
    try:
        with path.open("rb") as file:
            return _decoded(file, str(path))
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        written = str(path)
        raise InputError(
            explain_error(
                "there is no such image file",
                got=written if len(written) < 300 else f"{written[:80]}...",
                expected="the path of an image",
                instead="check the path; this model explains images, not texts",
            )
        ) from None


def _decoded(source: IO[bytes], name: str) -> Image.Image:
    try:
        image = Image.open(source, formats=FORMATS)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise _too_large(str(error)) from None
    except (OSError, ValueError, SyntaxError) as error:
        raise _damaged(name, error) from None
    return _checked(image, name)


def _checked(image: Image.Image, name: str) -> Image.Image:
    """The image with all its pixels, whose number is checked before any is decoded."""
    check_size(image)
    try:
        image.load()
    except (OSError, ValueError, SyntaxError, struct.error) as error:
        raise _damaged(name, error) from None
    return image


def _damaged(name: str, error: Exception) -> InputError:
    return InputError(
        explain_error(
            "this cannot be read as an image",
            got=f"{name} ({error})",
            expected="a complete " + ", ".join(FORMATS),
            instead="open it in an image viewer to see whether it is damaged",
        )
    )


def _too_large(got: str) -> InputError:
    return InputError(
        explain_error(
            "this image is too large",
            got=got,
            expected=f"at most {MOST_PIXELS // 1_000_000} megapixels",
            instead="image.thumbnail((2048, 2048)) before explaining it",
        )
    )


def _from_array(array: np.ndarray[Any, Any]) -> Image.Image:
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (1, 3, 4)):
        raise InputError(
            explain_error(
                "this array is not an image",
                got=f"shape {array.shape}",
                expected="(height, width) or (height, width, 1, 3 or 4)",
                instead="pass several images as a list",
            )
        )
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[..., 0]
    if array.dtype == np.uint8:
        return Image.fromarray(array)
    if array.dtype == np.uint16:
        return Image.fromarray((array / 257).round().astype(np.uint8))
    if np.issubdtype(array.dtype, np.floating) and array.size:
        if np.isfinite(array).all() and array.min() >= 0 and array.max() <= 1:
            return Image.fromarray((array * 255).round().astype(np.uint8))
        span = f"float values from {array.min()} to {array.max()}"
    else:
        span = f"dtype {array.dtype}"
    raise InputError(
        explain_error(
            "the values of this array are not those of an image",
            got=span,
            expected="uint8 from 0 to 255, or floats from 0 to 1; not normalised",
            instead="pass the picture itself: the model's own preprocessing is applied to it",
        )
    )


def check_size(image: Image.Image) -> None:
    """Refuse what would fill the memory, or is too small to show anything."""
    width, height = image.size
    if width * height > MOST_PIXELS:
        raise _too_large(f"{width} x {height} pixels")
    if min(width, height) < LEAST_SIDE:
        raise InputError(
            explain_error(
                "this image is too small to explain",
                got=f"{width} x {height} pixels",
                expected=f"at least {LEAST_SIDE} x {LEAST_SIDE}",
                instead="the picture in the size that it was taken in",
            )
        )


def _eight_bits(image: Image.Image) -> Image.Image:
    """16-bit and float images by their own range; other integers must fit one of the two."""
    values = np.asarray(image)
    if image.mode == "F":
        return _from_array(values if values.max() <= 1 else values / 255)
    if image.mode.startswith("I;16"):
        return _from_array(values.astype(np.uint16))
    if values.min() < 0 or values.max() > 65535:
        return _from_array(values)  # which says what it expects
    return _from_array(values.astype(np.uint8 if values.max() <= 255 else np.uint16))


def _flattened(image: Image.Image, notes: list[str]) -> Image.Image:
    """Lay a transparent image on white: a model would otherwise see what no person sees."""
    if "A" not in image.getbands() and "transparency" not in image.info:
        return image
    rgba = image.convert("RGBA")
    if rgba.getextrema()[3][0] < 255:
        notes.append("transparent parts were laid on white")
    white = Image.new("RGBA", rgba.size, (255, 255, 255, 255))
    return Image.alpha_composite(white, rgba)
