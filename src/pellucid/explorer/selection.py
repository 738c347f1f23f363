"""Which tokens a walk moves (Algorithm 4): by position, word, pattern, patch or importance."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pellucid._arguments import integer
from pellucid._arguments import real as real_number
from pellucid._errors import ArgumentError, explain_error
from pellucid._types import Batch, Picture, Segment, Text
from pellucid._words import group_by_word, word_spans

Importance = Callable[[], Tensor]  # of every token (b t), worked out only when it is asked for


@dataclass(frozen=True)
class Top:
    """The `count` most important tokens, by Algorithm 3."""

    count: int


@dataclass(frozen=True)
class Above:
    """The tokens whose importance is above this quantile, 0.5 for the upper half."""

    quantile: float


@dataclass(frozen=True)
class Rectangle:
    """The patches of these rows and columns, counted from 0; the ends are left out."""

    top: int
    left: int
    bottom: int
    right: int


def existing(mask: Tensor, origin: Tensor) -> Tensor:
    """The tokens that are there (b t); one for all of an image that has no patches."""
    if mask.shape[1]:
        return mask
    return torch.ones(origin.shape[:2], dtype=torch.bool, device=origin.device)


def select(given: Any, batch: Batch, importance: Importance) -> Tensor:
    """The tokens that move (b t). None: all that the user gave; "all": the model's own too."""
    if given is None:
        return batch.content
    if isinstance(given, str) and given == "all":
        return batch.mask.clone()
    if isinstance(given, Top | Above):
        return _by_importance(given, batch, importance().to(batch.mask.device))
    out = torch.zeros_like(batch.mask)
    for row, real, item in zip(out, batch.mask, batch.items, strict=True):
        places = real.nonzero()[:, 0]
        chosen = _positions(given, item)
        row[places[torch.tensor(chosen, dtype=torch.long, device=places.device)]] = True
    return out


def check_whole(given: Any) -> None:
    """An error where parts are asked for of an input that is moved as one."""
    if given is not None and not (isinstance(given, str) and given == "all"):
        raise ArgumentError(
            explain_error(
                "this model's inputs have no tokens to choose from",
                got=f"tokens={given!r}",
                expected="None: the whole image moves",
                instead="tokens=None",
            )
        )


def _positions(given: Any, item: Text | Picture) -> list[int]:
    """The numbers of the chosen segments of one input."""
    segments = item.segments
    if isinstance(given, Rectangle):
        return _in_rectangle(given, item)
    if isinstance(given, re.Pattern):
        return _matching(given, item)
    if isinstance(given, np.ndarray | Tensor) and len(given.shape) == 2:
        return _in_mask(np.asarray(given).astype(bool), item)
    several = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    found: set[int] = set()
    for one in several:
        found |= set(_of_word(one, item)) if isinstance(one, str) else {_number(one, segments)}
    if not found:
        raise _nothing(given, item)
    return sorted(found)


def _number(one: Any, segments: Sequence[Segment]) -> int:
    whole = isinstance(one, int | np.integer) and not isinstance(one, bool)
    if not whole or not 0 <= int(one) < len(segments):
        raise ArgumentError(
            explain_error(
                "there is no such token to move",
                got=f"tokens={one!r}",
                expected=f"numbers from 0 to {len(segments) - 1}, words, a compiled pattern, "
                "a mask of the patch grid, or a rule of importance",
                instead="tokens=[1, 2] or tokens=['film']",
            )
        )
    return int(one)


def _of_word(word: str, item: Text | Picture) -> list[int]:
    """The tokens of every occurrence of a word, or of the model's own that is written so."""
    if not isinstance(item, Text):
        raise _nothing(word, item)
    found: list[int] = []
    for part, text in enumerate(item.parts):
        own = [
            (i, s.span)
            for i, s in enumerate(item.segments)
            if s.span is not None and s.part == part and s.role == "content"
        ]
        for (start, end), tokens in group_by_word(text, [span for _, span in own]):
            if text[start:end].casefold() == word.casefold():
                found += [own[i][0] for i in tokens]
    asked = [i for i, s in enumerate(item.segments) if s.role == "special" and s.text == word]
    if not found and not asked:
        raise _nothing(word, item)
    return found or asked


def _matching(pattern: re.Pattern[str], item: Text | Picture) -> list[int]:
    """The tokens that touch a match of the pattern."""
    if not isinstance(item, Text):
        raise _nothing(pattern.pattern, item)
    found = [
        i
        for i, s in enumerate(item.segments)
        if s.span is not None
        and any(
            m.start() < s.span[1] and s.span[0] < m.end()
            for m in pattern.finditer(item.parts[s.part])
        )
    ]
    if not found:
        raise _nothing(pattern.pattern, item)
    return found


def _in_rectangle(given: Rectangle, item: Text | Picture) -> list[int]:
    grid = _grid(item, given)
    mask = np.zeros(grid, dtype=bool)
    if not (0 <= given.top < given.bottom <= grid[0] and 0 <= given.left < given.right <= grid[1]):
        raise ArgumentError(
            explain_error(
                "the rectangle does not lie in the grid of patches",
                got=str(given),
                expected=f"rows up to {grid[0]} and columns up to {grid[1]}",
                instead=f"Rectangle(0, 0, {grid[0]}, {grid[1]})",
            )
        )
    mask[given.top : given.bottom, given.left : given.right] = True
    return _in_mask(mask, item)


def _in_mask(mask: np.ndarray[Any, np.dtype[np.bool_]], item: Text | Picture) -> list[int]:
    grid = _grid(item, "a mask")
    if mask.shape != grid or not mask.any():
        raise ArgumentError(
            explain_error(
                "the mask does not choose patches of this image",
                got=f"shape {mask.shape}, {int(mask.sum())} chosen",
                expected=f"shape {grid}, at least one",
                instead=f"tokens=numpy.ones({grid}, dtype=bool)",
            )
        )
    content = [i for i, s in enumerate(item.segments) if s.role == "content"]
    return [content[i] for i in np.flatnonzero(mask)]


def _grid(item: Text | Picture, given: Any) -> tuple[int, int]:
    if not isinstance(item, Picture) or item.grid is None:
        raise _nothing(given, item)
    return item.grid


def _by_importance(given: Top | Above, batch: Batch, scores: Tensor) -> Tensor:
    out = torch.zeros_like(batch.mask)
    count, level = _checked(given)
    for row, content, own, item in zip(out, batch.content, scores, batch.items, strict=True):
        inner = own[content]
        if level is None:
            kept = torch.zeros_like(inner, dtype=torch.bool)
            kept[inner.topk(min(count, len(inner))).indices] = True
        else:
            kept = inner > inner.quantile(level)
        if not kept.any():
            raise _nothing(given, item)
        row[content] = kept
    return out


def _checked(given: Top | Above) -> tuple[int, float | None]:
    """How many tokens, or above which quantile."""
    if isinstance(given, Top):
        return integer("count", given.count, 1, 5), None
    level = real_number("quantile", given.quantile)
    if not 0 <= level < 1:
        raise ArgumentError(
            explain_error(
                "no token is more important than that",
                got=f"tokens={given!r}",
                expected="a quantile of at least 0 and less than 1",
                instead="tokens=Above(0.5)",
            )
        )
    return 0, level


def _words(item: Text | Picture) -> list[str]:
    """The words of a text as a person writes them, whatever its tokens are."""
    if not isinstance(item, Text):
        return []
    return [text[start:end] for text in item.parts for start, end in word_spans(text)]


def _nothing(given: Any, item: Text | Picture) -> ArgumentError:
    words = _words(item)
    return ArgumentError(
        explain_error(
            "nothing of this input is chosen",
            got=f"tokens={given!r}",
            expected="something that the input has: "
            + (", ".join(map(repr, words[:8])) if isinstance(item, Text) else "patches by number"),
            instead=f"tokens=[{words[0]!r}]" if isinstance(item, Text) else "tokens=[10, 11]",
        )
    )
