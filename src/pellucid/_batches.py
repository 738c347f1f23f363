"""Many inputs through a model: alike ones together, fewer at a time when memory runs out."""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import torch

from pellucid._types import Picture, Text

T = TypeVar("T")
R = TypeVar("R")
Progress = bool | Callable[[int, int], None] | None


def run_in_batches(
    items: Sequence[Text | Picture],
    work: Callable[[list[int]], list[T]],
    batch_size: int,
    progress: Progress = None,
    largest_batch: int | None = None,
) -> list[T]:
    """`work` on batches of indices, long texts together; results in the order of the items."""
    batch_size = min(batch_size, largest_batch or batch_size)
    found: dict[int, T] = {}
    with reporting(progress, len(items), "explaining", "input") as report:
        for indices, results in in_pieces(_batches_of_alike(items, batch_size), work):
            found |= dict(zip(indices, results, strict=True))
            report(len(found))
    return [found[index] for index in range(len(items))]


def in_pieces(
    batches: Sequence[list[int]],
    work: Callable[[list[int]], R],
    size: Callable[[list[int]], int] = len,
) -> Iterator[tuple[list[int], R]]:
    """`work` on every batch, or on its halves, quarters, ... where memory runs out.

    `size` says how much memory a batch needs, in any unit.
    """
    pending = deque(batches)
    too_large: float = math.inf  # the smallest batch that did not fit; it is not tried again
    while pending:
        indices = pending.popleft()
        if len(indices) == 1 or size(indices) < too_large:
            try:
                result = work(indices)
            except (torch.OutOfMemoryError, MemoryError):
                if len(indices) == 1:
                    raise
                too_large = size(indices)
            else:
                yield indices, result
                continue
        half = len(indices) // 2
        pending.extendleft([indices[half:], indices[:half]])


def _batches_of_alike(items: Sequence[Text | Picture], batch_size: int) -> list[list[int]]:
    """Batches of texts of similar length, or of pictures of one size."""

    def alike(index: int) -> tuple[int, ...]:
        item = items[index]
        return (len(item.segments),) if isinstance(item, Text) else item.view.shape

    batches: list[list[int]] = []
    for index in sorted(range(len(items)), key=alike):
        last = batches[-1] if batches else []
        fits = isinstance(items[index], Text) or (last and alike(last[0]) == alike(index))
        if last and fits and len(last) < batch_size:
            last.append(index)
        else:
            batches.append([index])
    return batches


@contextmanager
def reporting(
    progress: Progress, total: int, doing: str, unit: str, leave: bool = True
) -> Iterator[Callable[[int], None]]:
    """A function that is told how much is done: a bar, the caller's own, or nothing."""
    if progress is not None and not isinstance(progress, bool):
        told = progress
        yield lambda done: told(done, total)
        return
    wanted = total > 1 and sys.stderr.isatty() if progress is None else progress
    if not wanted:
        yield lambda _: None
        return
    from tqdm.auto import tqdm

    with tqdm(total=total, desc=doing, unit=unit, leave=leave) as bar:
        yield lambda done: bar.update(done - bar.n)
