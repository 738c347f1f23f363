"""Many changed versions of a few inputs, through the model in full batches.

The versions are described, not made: `make` builds the batch for a handful of job numbers when its
turn comes, so memory does not depend on how many there are. A batch may hold versions of several
inputs.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from pellucid._batches import in_pieces
from pellucid._case import Case
from pellucid._types import Batch


def evaluate_versions(
    case: Case,
    rows: Tensor,
    make: Callable[[Tensor], Batch],
    *,
    lengths: Tensor | None = None,
) -> Tensor:
    """The explained number of every version (jobs).

    `rows` says which input each job is a version of; `lengths`, where given, lets jobs of similar
    length share a batch, so that little of it is padding.
    """
    jobs = torch.arange(len(rows)) if lengths is None else lengths.argsort(stable=True)
    values = torch.empty(len(rows), dtype=torch.float64)
    batches = [chunk.tolist() for chunk in jobs.split(case.batch_size)]

    def work(indices: list[int]) -> Tensor:
        chunk = torch.tensor(indices)
        return case.score_of(make(chunk), rows[chunk]).cpu()

    for indices, found in in_pieces(batches, work):
        values[indices] = found
    return values
