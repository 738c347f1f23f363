"""Named, immutable sequences of samples, which are read when they are asked for."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
from PIL import Image
from torch import Tensor

from pellucid._arguments import integer
from pellucid._errors import (
    ArgumentError,
    InputError,
    explain_error,
    unknown_name,
)
from pellucid._images import read_image
from pellucid.data.sample import Label, Sample, as_label

Kind = Literal["text", "image"]
_SHOWN = 3  # labels in a line


@dataclass(frozen=True, eq=False)
class Entry:
    """A sample that is not read yet: what is cheap to know of it, and how to get the rest.

    `read` gives its input, truth and words; `stored` gives what these are made of, undecoded.
    """

    id: str
    label: Label
    about: Mapping[str, Any]
    read: Callable[[], Mapping[str, Any]]
    stored: Callable[[], Any]

    def sample(self) -> Sample:
        """Read it; an error names the sample."""
        try:
            return Sample(id=self.id, label=self.label, about=self.about, **self.read())
        except (ArgumentError, InputError) as error:
            raise InputError(f"sample {self.id!r}: {error}") from None

    def fact(self, name: str) -> Any:
        """Its id, its label, or something else that is known without reading it."""
        return {**self.about, "id": self.id, "label": self.label}.get(name)


@dataclass(frozen=True, eq=False, repr=False)
class Dataset(Sequence[Sample]):
    """Samples of one kind. Pictures are decoded when they are asked for, and not kept.

    `truths` are the kinds of truth that every sample has.
    """

    name: str
    kind: Kind
    entries: tuple[Entry, ...]
    truths: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        repeated = [one for one, times in Counter(self.ids).items() if times > 1]
        if repeated:
            raise InputError(
                explain_error(
                    f"samples of {self.name} share an id",
                    got=", ".join(map(repr, repeated[:5])),
                    expected="one id a sample",
                    instead="leave id= out, which numbers the samples",
                )
            )

    def __len__(self) -> int:
        return len(self.entries)

    @overload
    def __getitem__(self, index: int) -> Sample: ...
    @overload
    def __getitem__(self, index: slice) -> Dataset: ...
    def __getitem__(self, index: int | slice) -> Sample | Dataset:
        if isinstance(index, slice):
            return replace(self, entries=self.entries[index])
        return self.entries[index].sample()

    def __repr__(self) -> str:
        found = [f"{len(self)} {self.kind}s" if len(self) != 1 else f"1 {self.kind}"]
        names = list(dict.fromkeys(label for label in self.labels if label is not None))
        if names:
            more = ", ..." if len(names) > _SHOWN else ""
            found.append(f"{len(names)} labels ({', '.join(map(str, names[:_SHOWN]))}{more})")
        if self.truths:
            found.append("truth: " + ", ".join(self.truths))
        return f"<{self.name}: {'; '.join(found)}>"

    # ---- what is known without reading -------------------------------------------------------

    @property
    def ids(self) -> tuple[str, ...]:
        """The id of every sample."""
        return tuple(entry.id for entry in self.entries)

    @property
    def labels(self) -> tuple[Label, ...]:
        """The label of every sample."""
        return tuple(entry.label for entry in self.entries)

    def fingerprint(self) -> str:
        """A key of the content: ids, labels, and inputs with their truth as they are stored."""
        digest = hashlib.sha256()
        for entry in self.entries:
            for piece in _pieces([entry.id, entry.label, entry.stored()]):
                digest.update(piece)
        return digest.hexdigest()

    # ---- choosing ----------------------------------------------------------------------------

    def take(self, n: int, seed: int | None = None) -> Dataset:
        """The first `n` samples, or `n` that a seed draws.

        The draw depends on the seed and the ids alone, and a larger one begins with a smaller one.
        """
        n = integer("n", n, 1, 10)
        if n > len(self):
            raise ArgumentError(
                explain_error(
                    f"{self.name} has fewer samples than that",
                    got=f"n={n}",
                    expected=f"at most {len(self)}",
                    instead=f".take({len(self)})",
                )
            )
        if seed is None:
            return self[:n]
        seed = integer("seed", seed, 0)
        order = sorted(
            self.entries, key=lambda e: hashlib.sha256(f"{seed} {e.id}".encode()).digest()
        )
        return replace(self, entries=tuple(order[:n]))

    def split(self, name: str) -> Dataset:
        """The samples of one part, such as "test", where the data set has parts."""
        return self.where(split=name)

    def where(self, **facts: Any) -> Dataset:
        """The samples of which all this is known: a value, or a function that says yes to it.

        `dataset.where(label="cat", species=lambda code: code < 1)`
        """
        known = {"id", "label"}.union(*(entry.about for entry in self.entries))
        for fact in facts:
            if fact not in known:
                what = f"fact of {self.name}:"
                raise ArgumentError(unknown_name(what, fact, known, write=".where({}=...)"))
        found = tuple(
            entry
            for entry in self.entries
            if all(_agrees(entry.fact(name), wanted) for name, wanted in facts.items())
        )
        if not found:
            raise ArgumentError(self._nothing_is(facts))
        return replace(self, entries=found)

    def relabel(self, names: Mapping[Any, Label] | Sequence[Label]) -> Dataset:
        """The same samples with other labels: `relabel({"neg": "negative", "pos": "positive"})`.

        A list names the labels 0, 1, 2 and so on.
        """
        table: Mapping[Any, Label]
        table = names if isinstance(names, Mapping) else dict(enumerate(names))
        missing = sorted(set(self.labels) - set(table), key=str)
        if missing:
            raise ArgumentError(
                explain_error(
                    f"labels of {self.name} are left without a name",
                    got=", ".join(map(repr, missing[:10])),
                    expected="a new label for every label",
                    instead=f".relabel({{{missing[0]!r}: ..., }})",
                )
            )
        return replace(
            self,
            entries=tuple(replace(e, label=as_label(table[e.label])) for e in self.entries),
        )

    def _nothing_is(self, facts: Mapping[str, Any]) -> str:
        values = {
            name: list(dict.fromkeys(e.fact(name) for e in self.entries))[:8] for name in facts
        }
        return explain_error(
            f"no sample of {self.name} is like that",
            got=", ".join(f"{name}={wanted!r}" for name, wanted in facts.items()),
            expected="; ".join(
                f"{name}: {', '.join(map(repr, known))}" for name, known in values.items()
            ),
            instead=".where(" + ", ".join(f"{n}={known[0]!r}" for n, known in values.items()) + ")",
        )


def of(inputs: Iterable[Any], name: str = "samples") -> Dataset:
    """The data set of these samples, or of plain inputs, which get numbers for ids.

    A string is a text, a tuple of two strings a pair; a `pathlib.Path`, a PIL image, an array or
    the bytes of an image file are pictures.
    """
    samples = [
        one if isinstance(one, Sample) else Sample(one, str(i)) for i, one in enumerate(inputs)
    ]
    if not samples:
        raise nothing_in(name, "no inputs", "pellucid.data.of(['a fine film', 'a bad film'])")
    kinds = {kind_of(sample.input) for sample in samples}
    if len(kinds) > 1:
        raise InputError(
            explain_error(
                f"{name} mixes texts and images",
                got=f"{type(samples[0].input).__name__} and others",
                expected="samples of one kind",
                instead="one data set of the texts, one of the images",
            )
        )
    shared = set.intersection(*(set(sample.truth) for sample in samples))
    entries = tuple(
        Entry(
            sample.id,
            sample.label,
            sample.about,
            partial(_content, sample),
            partial(_stored, sample),
        )
        for sample in samples
    )
    return Dataset(name, kinds.pop(), entries, tuple(sorted(shared)))


def nothing_in(name: str, got: str, instead: str) -> InputError:
    """The error of a source without samples."""
    return InputError(
        explain_error(
            f"there is nothing in {name}", got=got, expected="at least one sample", instead=instead
        )
    )


def kind_of(raw: Any) -> Kind:
    """Whether an input is read as a text or as an image."""
    return "text" if isinstance(raw, str | tuple) else "image"


def decoded(raw: Any) -> Any:
    """A text as it is; an image as 8-bit pixels, the right way up."""
    return raw if kind_of(raw) == "text" else read_image(raw)[0]


def _content(sample: Sample) -> Mapping[str, Any]:
    return {"input": decoded(sample.input), "truth": sample.truth, "words": sample.words}


def _stored(sample: Sample) -> Any:
    return [sample.input, dict(sample.truth), sample.words]


def _agrees(value: Any, wanted: Any) -> bool:
    return bool(wanted(value)) if callable(wanted) else bool(value == wanted)


def _pieces(value: Any) -> Iterator[bytes]:
    """What makes a value different from any other, whatever it is stored in."""
    if isinstance(value, Mapping):
        value = sorted(value.items())
    if isinstance(value, list | tuple):
        yield f"list {len(value)} ".encode()
        for one in value:
            yield from _pieces(one)
        return
    if isinstance(value, Path):
        value = value.read_bytes()
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Tensor):
        value = value.detach().cpu().numpy()
    if isinstance(value, Image.Image):
        value = np.asarray(value)
    if isinstance(value, np.ndarray):
        yield f"array {value.dtype} {value.shape} ".encode()
        value = value.tobytes()
    if isinstance(value, bytes):
        yield f"bytes {len(value)} ".encode()
        yield value
    else:
        yield f"{type(value).__name__} {value!r} ".encode()
