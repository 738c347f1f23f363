"""Data sets of a plan, by the name of what reads them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from pellucid._errors import ArgumentError, unknown_name
from pellucid.models import sample_images, sample_texts


class Sample(Protocol):
    """One input, with what is known of it."""

    @property
    def input(self) -> Any: ...
    @property
    def id(self) -> str: ...
    @property
    def label(self) -> int | str | None: ...
    @property
    def truth(self) -> Mapping[str, Any]: ...


class Samples(Protocol):
    """A data set as studies read it."""

    @property
    def kind(self) -> Literal["text", "image"]: ...
    @property
    def truths(self) -> tuple[str, ...]: ...
    @property
    def labels(self) -> Sequence[int | str | None]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: Any) -> Any: ...
    def fingerprint(self) -> str: ...


@dataclass(frozen=True)
class _Sample:
    input: Any
    id: str
    label: int | str | None = None
    truth: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class _Bundled:
    kind: Literal["text", "image"]
    samples: tuple[_Sample, ...]
    truths: tuple[str, ...] = ()

    @property
    def labels(self) -> tuple[int | str | None, ...]:
        return tuple(sample.label for sample in self.samples)

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: Any) -> Any:
        found = self.samples[index]
        return replace(self, samples=found) if isinstance(index, slice) else found

    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for one in self.samples:
            content = one.input.read_bytes() if isinstance(one.input, Path) else one.input.encode()
            digest.update(f"{one.id}\0{one.label}\0{len(content)}\0".encode() + content)
        return digest.hexdigest()


def read_samples(reader: str, **options: Any) -> Samples:
    """The data set that a reader makes of its options."""
    if reader != "bundled":
        raise ArgumentError(
            unknown_name("reader of data", reader, ["bundled"], write="read = {!r}")
        )
    return bundled(**options)


def bundled(kind: str) -> Samples:
    """The pictures of digits, or the reviews, that come with the package."""
    if kind == "images":
        pictures = sample_images()
        return _Bundled("image", tuple(_Sample(p, p.stem, p.stem.split("-")[1]) for p in pictures))
    if kind == "texts":
        texts = sample_texts()
        return _Bundled("text", tuple(_Sample(t, str(i)) for i, t in enumerate(texts)))
    raise ArgumentError(
        unknown_name("kind of samples", kind, ["images", "texts"], write="kind = {!r}")
    )
