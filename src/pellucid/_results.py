"""Explanations: what a method said about one input, with everything needed to say it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch.nn.functional as F
from torch import Tensor

from pellucid._arguments import integer
from pellucid._errors import ArgumentError, explain_error
from pellucid._target import Target
from pellucid._types import Picture, Segment, Text
from pellucid._words import Aggregate, aggregation, group_by_word

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Unit = Literal["class", "token", "continuation", "value"]


@dataclass(frozen=True)
class Provenance:
    """Where the numbers come from."""

    model: str
    weights: str  # SHA-256 of all weights
    dtype: str
    device: str
    seed: int
    seconds: float  # of the batch in which this input was explained, shared evenly
    forwards: int  # passes of this input through the model
    backwards: int
    versions: Mapping[str, str]  # of pellucid, torch, transformers and python
    created: str  # ISO 8601, UTC


@dataclass(frozen=True)
class Word:
    """A word with its score: the sum over its tokens unless asked otherwise."""

    text: str
    score: float
    span: tuple[int, int]
    part: int = 0


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """One method's scores for one input of one model.

    `scores` has one number for each token of `item` (special ones included), or one for each pixel
    of the picture. `signed` says whether a negative score speaks against the target; an unsigned
    score says how much, not in which direction.
    """

    scores: Tensor  # t, or h w
    item: Text | Picture
    method: str
    params: Mapping[str, Any]
    signed: bool
    target: Target | None  # what was asked for; None for a function, which no file can hold
    explains: str  # the same in words
    label: str  # the class, token or value that was explained
    index: int | None  # its number, where it is one class or token
    unit: Unit  # what the label names
    value: float  # the explained number itself
    prediction: Mapping[str, float]  # the most probable labels; a regression's value
    logits: Tensor  # c; empty where there are thousands
    provenance: Provenance
    extras: Mapping[str, Tensor] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.scores.shape))
        line = (
            f"<{self.method} on {self.provenance.model}: {shape} scores for the {self.explains} "
            f"({self.label}): {self.value:.4g}>"
        )
        return "".join(one if one.isprintable() else "\ufffd" for one in line)  # of hostile files

    # ---- reading -----------------------------------------------------------------------------

    @property
    def kind(self) -> Literal["text", "image"]:
        """Whether a text or an image was explained."""
        return "text" if isinstance(self.item, Text) else "image"

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The tokens or patches, in the order of the scores."""
        return self.item.segments

    def words(self, aggregate: Aggregate = "sum") -> list[Word]:
        """The words of the text with their scores; the model's special tokens are left out.

        Sums keep the total of the scores; "max" takes the score of largest size, with its sign.
        """
        if not isinstance(self.item, Text):
            raise self._wrong_kind("words()", "ex.map()")
        reduce = aggregation("aggregate", aggregate)
        found: list[Word] = []
        for part, text in enumerate(self.item.parts):
            own = [
                (index, segment.span)
                for index, segment in enumerate(self.segments)
                if segment.role == "content" and segment.part == part and segment.span
            ]
            for (start, end), tokens in group_by_word(text, [span for _, span in own]):
                scores = self.scores[[own[i][0] for i in tokens]].double()
                found.append(Word(text[start:end], float(reduce(scores)), (start, end), part))
        return found

    def map(self, size: tuple[int, int] | None = None) -> Tensor:
        """The scores as an image (h w), bilinear between patch centres; `size` is that of the view.

        A border that belongs to no patch gets zero.
        """
        if not isinstance(self.item, Picture):
            raise self._wrong_kind("map()", "ex.words()")
        height, width = self.item.view.shape[:2]
        scores = self.scores.double()
        if scores.dim() == 1:
            scores = self._upsampled(self.patches(), height, width)
        return scores if size is None else _resized(scores, _checked_size(size))

    def patches(self) -> Tensor:
        """The scores of the patches as a grid (rows columns)."""
        if not isinstance(self.item, Picture) or self.item.grid is None or self.scores.dim() != 1:
            raise self._wrong_kind("patches()", "ex.map() gives one score a pixel")
        own = [i for i, segment in enumerate(self.segments) if segment.role == "content"]
        return self.scores[own].double().view(self.item.grid)

    def top(self, count: int = 5) -> list[tuple[str, float]]:
        """The words, patches or pixels with the largest scores by size."""
        if isinstance(self.item, Text):
            named = [(word.text, word.score) for word in self.words()]
        elif self.scores.dim() == 1:
            named = [
                (segment.text, float(score))
                for segment, score in zip(self.segments, self.scores, strict=True)
                if segment.role == "content"
            ]
        else:
            width = self.scores.shape[1]
            order = self.scores.abs().flatten().topk(min(count, self.scores.numel())).indices
            flat = self.scores.flatten()
            named = [
                (f"pixel row {i // width + 1}, column {i % width + 1}", float(flat[i]))
                for i in order.tolist()
            ]
        return sorted(named, key=lambda item: -abs(item[1]))[:count]

    # ---- showing -----------------------------------------------------------------------------

    def show(self) -> None:
        """Print it in colours on a terminal, or display it in a notebook."""
        from pellucid.viz import show

        show(self)

    def to_html(self, path: str | Path | None = None, *, overwrite: bool = False) -> str:
        """One self-contained page that opens without a network; written if a path is given."""
        from pellucid.viz import page, write_page

        html = page([self])
        if path is not None:
            write_page(html, path, overwrite=overwrite)
        return html

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw it with matplotlib and return the axes; nothing is shown by itself."""
        from pellucid.viz.plot import plot

        return plot(self, ax)

    def _repr_html_(self) -> str:
        from pellucid.viz import fragment

        return fragment([self])

    # ---- keeping -----------------------------------------------------------------------------

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write it to one file of tensors and JSON; loading that file runs no code."""
        from pellucid._store import save

        return save(self, Path(path), overwrite=overwrite)

    @classmethod
    def load(cls, path: str | Path) -> Explanation:
        """Read what `save` wrote; anything else is refused."""
        from pellucid._store import load

        return load(Path(path))

    def to_dict(self) -> dict[str, Any]:
        """Everything but the picture and the extras, in plain JSON types."""
        from pellucid._schema import to_document

        return to_document(self)

    # ---- inside ------------------------------------------------------------------------------

    def _upsampled(self, grid: Tensor, height: int, width: int) -> Tensor:
        boxes = [segment.box for segment in self.segments if segment.box is not None]
        bottom, right = max(box[2] for box in boxes), max(box[3] for box in boxes)
        covered = _resized(grid, (bottom, right))
        return F.pad(covered, (0, width - right, 0, height - bottom))

    def _wrong_kind(self, call: str, instead: str) -> ArgumentError:
        return ArgumentError(
            explain_error(
                f"{call} does not fit this explanation",
                got=f"an explanation of {self.kind}, scores of shape {tuple(self.scores.shape)}",
                expected="text" if call.startswith("words") else "an image with a patch grid",
                instead=instead,
            )
        )


def _checked_size(size: Any) -> tuple[int, int]:
    """Rows and columns, whatever library's integers they are."""
    whole = isinstance(size, Sequence) and len(size) == 2 and not isinstance(size, str)
    if not whole:
        raise ArgumentError(
            explain_error(
                "a map has rows and columns",
                got=f"size={size!r}",
                expected="two integers: height and width",
                instead="ex.map(size=(224, 224))",
            )
        )
    return integer("size", size[0], 1, 224), integer("size", size[1], 1, 224)


def _resized(scores: Tensor, size: Sequence[int]) -> Tensor:
    found = F.interpolate(scores[None, None], tuple(size), mode="bilinear", align_corners=False)
    return found[0, 0]
