"""Many changed versions of a few inputs, through the model in full batches.

The versions are described, not made: each has a number, and the batch for a handful of numbers is
built when its turn comes, so memory does not depend on how many there are. A batch may hold
versions of several inputs, and of short ones more than of long ones; one that does not fit is
halved; the budget is checked before the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from pellucid._batches import in_pieces, reporting
from pellucid._errors import BudgetExceeded
from pellucid._types import Batch

if TYPE_CHECKING:
    from pellucid._case import Case

R = TypeVar("R")
T = TypeVar("T")
Make = Callable[[Tensor, Tensor], Tensor]  # states from the rows they change and their numbers
Answer = Callable[[Batch, Tensor], Tensor]  # what a batch of versions of these rows says (j ...)

_ROUND = 64  # sets an input between two looks at the clock of what can be left out


def stream(
    case: Case,
    rows: Tensor,
    work: Callable[[Tensor], R],
    *,
    lengths: Tensor | None = None,
    equal: bool = False,
) -> Iterator[tuple[Tensor, R]]:
    """`work` on the jobs, a batch at a time, with the numbers of its jobs.

    `rows` says which input each job is a version of; `lengths`, where given, lets jobs of similar
    length share a batch, so that little of it is padding, or with `equal` only those of one length.
    A batch then has as many tokens as one of whole inputs.
    """
    case.meter.afford(rows)
    tokens = [1] * len(rows) if lengths is None else lengths.clamp(min=1).tolist()
    longest = 1 if lengths is None else max(case.mask.shape[1], *tokens, 1)
    batches = _batches(tokens, case.batch_size * longest, case.most_at_once, equal)
    done = 0

    def size(chunk: list[int]) -> int:
        return len(chunk) * max(tokens[job] for job in chunk)

    with reporting(case.progress, len(rows), "evaluating", "version", leave=False) as report:
        for indices, found in in_pieces(batches, lambda chunk: work(torch.tensor(chunk)), size):
            done += len(indices)
            report(done)
            yield torch.tensor(indices), found


def _batches(tokens: list[int], room: int, most: int | None, equal: bool) -> list[list[int]]:
    """Jobs by length, each batch of at most so many tokens, padding included, and jobs."""
    batches: list[list[int]] = []
    for job in sorted(range(len(tokens)), key=tokens.__getitem__):
        last = batches[-1] if batches else []
        fits = (len(last) + 1) * tokens[job] <= room and (most is None or len(last) < most)
        if last and fits and not (equal and tokens[last[0]] != tokens[job]):
            last.append(job)
        else:
            batches.append([job])
    return batches


def evaluate_versions(
    case: Case,
    rows: Tensor,
    make: Callable[[Tensor], Batch],
    *,
    answer: Answer | None = None,
    lengths: Tensor | None = None,
    equal: bool = False,
) -> Tensor:
    """The explained number of every version (jobs), of which `make` builds the batch.

    `answer` is what is read of a batch in its place, by default `case.score_of`.
    """
    read = answer or case.score_of
    found = stream(
        case,
        rows,
        lambda jobs: read(make(jobs), rows[jobs]).cpu().double(),
        lengths=lengths,
        equal=equal,
    )
    pieces = list(found)
    if not pieces:
        return torch.empty(0, dtype=torch.float64)
    jobs, values = zip(*pieces, strict=True)
    return torch.cat(values)[torch.cat(jobs).argsort()]


def in_time(case: Case, sets: Tensor, score: Callable[[Tensor], Tensor]) -> Tensor:
    """`score` of the sets of each input, of as many of the first as there is time for.

    From b m ... to b k, where k is m unless a time was given. The sets go through in rounds, so the
    lengths of those that are left out are like the lengths of the others.
    """
    if case.meter.seconds is None:
        return score(sets)
    found: list[Tensor] = []
    for some in sets.split(_ROUND, dim=1):
        try:
            found.append(score(some))
        except BudgetExceeded:
            if not (found and case.meter.late):
                raise
            break
    return torch.cat(found, dim=1)


def until_late(case: Case, found: Iterator[T]) -> Iterator[T]:
    """What a stream gives until the time is up, and something of it in any case."""
    some = False
    try:
        for one in found:
            some = True
            yield one
    except BudgetExceeded:
        if not (some and case.meter.late):
            raise


# ---- pixels --------------------------------------------------------------------------------------


def score_pixels(
    case: Case, counts: Sequence[int], make: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """The explained number of changed images: rows, numbers, masks, values of a batch at a time.

    There are `counts` versions of each image. `make(rows, numbers)` has their pixels (j c h w) and
    the mask of each (j h w), which is handed on.
    """
    rows, numbers = _numbered(counts)

    def work(jobs: Tensor) -> tuple[Tensor, Tensor]:
        changed, mask = make(rows[jobs], numbers[jobs])
        pixels = changed.to(case.pixels.dtype)
        batch = case.images.with_pixels(case.batch.take(rows[jobs]), pixels)
        return mask, case.score_of(batch, rows[jobs])

    for jobs, (mask, values) in stream(case, rows, work):
        yield rows[jobs], numbers[jobs], mask, values


def sum_by_row(rows: Tensor, values: Tensor, inputs: int) -> Tensor:
    """The sum over the versions of each input (j ... -> b ...), in one order on any device."""
    owner = F.one_hot(rows, inputs).to(values)  # j b
    return (owner.T @ values.flatten(1)).view(inputs, *values.shape[1:])


# ---- gradients -----------------------------------------------------------------------------------


def gradients(case: Case, count: int, make: Make) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """The gradient at `count` states of each input: rows, numbers, gradients of a batch at a time.

    `make(rows, numbers)` has the states at the input. Gradients are float32 at least.
    """
    rows, numbers = _numbered([count] * len(case.batch))

    def work(jobs: Tensor) -> Tensor:
        return case.gradient(make(rows[jobs], numbers[jobs]), rows=rows[jobs]).to(case.dtype)

    passes = torch.zeros(len(case.batch), dtype=torch.long)
    try:
        for jobs, found in stream(case, rows, work):
            passes += torch.bincount(rows[jobs], minlength=len(passes))
            yield rows[jobs], numbers[jobs], found
    finally:
        case.meter.backwards += int(passes.max())


def noise(case: Case, rows: Tensor, numbers: Tensor, x: Tensor) -> Tensor:
    """Standard normal numbers for these versions of the states `x`, and zero on padding.

    Each version draws for itself, at its input's own length, so batches and padding change nothing.
    """
    drawn = torch.zeros(len(rows), *x.shape[1:])
    for one, row, number in zip(drawn, rows.tolist(), numbers.tolist(), strict=True):
        generator = case.generator(row, number)
        if x.dim() == 4:
            one.copy_(torch.randn(one.shape, generator=generator))
        else:
            real = case.mask[row].cpu()
            one[real] = torch.randn(int(real.sum()), x.shape[-1], generator=generator)
    return drawn.to(x)


def _numbered(counts: Sequence[int]) -> tuple[Tensor, Tensor]:
    """The input of every version, and its number among that input's own; inputs take turns."""
    rows = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts, dtype=torch.long))
    numbers = torch.cat([torch.arange(count) for count in counts]) if counts else rows
    turns = numbers.argsort(stable=True)
    return rows[turns], numbers[turns]
