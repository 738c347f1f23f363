"""Where a walk takes place: the state that is moved, one row of numbers a token (b t d)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from pellucid._errors import ArgumentError, explain_error
from pellucid._needs import Needs, require
from pellucid._types import Batch
from pellucid.adapters.base import Adapter
from pellucid.adapters.image_model import ImageModel
from pellucid.adapters.torch_model import TorchAdapter


class Space(Protocol):
    """A place in a model, read and replaced."""

    @property
    def name(self) -> str: ...

    def start(self, batch: Batch) -> Tensor:
        """The state of the unchanged inputs (b t d)."""
        ...

    def output(self, batch: Batch, state: Tensor) -> Any:
        """The model's output at another state."""
        ...


@dataclass(frozen=True)
class Stream:
    """Word embeddings, what enters the first block, or the stream after any block."""

    name: str
    adapter: TorchAdapter
    at: str

    def start(self, batch: Batch) -> Tensor:
        return self.adapter.value_at(batch, self.at)

    def output(self, batch: Batch, state: Tensor) -> Any:
        return self.adapter.output_from(batch, self.at, state)


@dataclass(frozen=True)
class Pixels:
    """The pixels of an image in the numbers that the model reads, patch by patch.

    The tokens that stand before the patches have no pixels; their rows are zero and mean nothing.
    Where the model has no patches the whole image is one token.
    """

    name: str
    adapter: ImageModel

    def start(self, batch: Batch) -> Tensor:
        pixels = self.adapter.value_at(batch, "input")
        patches = to_patches(pixels, self.patch(batch))
        return torch.nn.functional.pad(patches, (0, 0, self._prefix, 0))

    def output(self, batch: Batch, state: Tensor) -> Any:
        like = self.adapter.value_at(batch, "input")
        pixels = from_patches(state[:, self._prefix :], self.patch(batch), like)
        return self.adapter.output_from(batch, "input", pixels)

    @property
    def _prefix(self) -> int:
        return self.adapter.anatomy.prefix if Needs.TOKENS in self.adapter.offers else 0

    def patch(self, batch: Batch) -> tuple[int, int]:
        """Height and width of a patch."""
        height, width = self.adapter.value_at(batch, "input").shape[-2:]
        boxes = [segment.box for segment in batch.items[0].segments if segment.box is not None]
        return (boxes[0][2], boxes[0][3]) if boxes else (height, width)


def to_patches(pixels: Tensor, patch: tuple[int, int]) -> Tensor:
    """Pixels (b c h w) as one row a patch, row by row (b t c*ph*pw); a border is left out."""
    cut = torch.nn.functional.unfold(pixels, patch, stride=patch)  # b c*ph*pw t
    return cut.transpose(1, 2)


def from_patches(patches: Tensor, patch: tuple[int, int], like: Tensor) -> Tensor:
    """The image (b c h w) that these patches make up; a border that no patch covers stays."""
    height, width = like.shape[-2:]
    rows, columns = height // patch[0], width // patch[1]
    size = (rows * patch[0], columns * patch[1])
    image = torch.nn.functional.fold(patches.transpose(1, 2), size, patch, stride=patch)
    if size == (height, width):
        return image
    whole = like.to(image).clone()
    whole[..., : size[0], : size[1]] = image
    return whole


@dataclass(frozen=True)
class _Walk:
    """What a walk asks of a model, for the one error that says what is missing."""

    name: str
    needs: Needs
    kinds: tuple[str, ...] = ("text", "image")
    role: str = "space"


def find_space(adapter: Adapter, name: str) -> Space:
    """The space by its name: "embedding", "word", "pixels", or "hidden:l" for the stream."""
    at = {"word": "input", "pixels": "input"}.get(name, name)
    kinds = {"word": ("text",), "pixels": ("image",)}.get(name, ("text", "image"))
    if (at not in ("input", "embedding") and not at.startswith("hidden:")) or name == "input":
        raise ArgumentError(
            explain_error(
                "there is no such space to walk in",
                got=f"space={name!r}",
                expected="'embedding', 'word' (texts), 'pixels' (images) or 'hidden:1'...",
                instead="space='pixels'" if adapter.kind == "image" else "space='embedding'",
            )
        )
    needs = Needs.GRADIENTS | (Needs.NOTHING if at == "input" else Needs.STREAM)
    require(adapter, _Walk(name, needs, kinds), _SPACES)
    assert isinstance(adapter, TorchAdapter)
    if at.startswith("hidden:"):
        _check_layer(at, len(adapter.anatomy.blocks))
    if name == "pixels":
        assert isinstance(adapter, ImageModel)
        return Pixels(name, adapter)
    return Stream(name, adapter, at)


def _check_layer(name: str, last: int) -> None:
    if name not in [f"hidden:{layer}" for layer in range(last + 1)]:
        raise ArgumentError(
            explain_error(
                "there is no such place in this model to walk in",
                got=f"space={name!r}",
                expected=f"'hidden:0' to 'hidden:{last}'",
                instead=f"space='hidden:{last}'",
            )
        )


_SPACES = {
    "embedding": _Walk("embedding", Needs.GRADIENTS | Needs.STREAM),
    "word": _Walk("word", Needs.GRADIENTS, ("text",)),
    "pixels": _Walk("pixels", Needs.GRADIENTS, ("image",)),
}
