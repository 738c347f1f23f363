"""What a language model's embedding can be: every token of the vocabulary at every position."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from pellucid._types import Batch
from pellucid.adapters.text_model import TextModel
from pellucid.explorer.space import Stream

_CHUNK = 512  # sequences at once


def vocabulary_states(
    adapter: TextModel, space: Stream, batch: Batch, row: int, tokens: Tensor | None = None
) -> Iterator[tuple[Tensor, Tensor]]:
    """Token ids and their states at every position of one input (v, v t d), a chunk at a time."""
    one = batch.take([row])
    every = torch.arange(adapter.vocabulary) if tokens is None else tokens
    for ids in every.to(batch.mask.device).split(_CHUNK):
        several = one.take([0] * len(ids))
        same = ids[:, None].expand_as(several.inputs["input_ids"])
        filled = replace(several, inputs={**several.inputs, "input_ids": same})
        yield ids, space.start(filled)


def vocabulary_bounds(adapter: TextModel, space: Stream, batch: Batch) -> tuple[Tensor, Tensor]:
    """The least and the largest each number can be (b t d); inputs of one length share the work."""
    known: dict[tuple[object, ...], tuple[Tensor, Tensor]] = {}
    found = []
    for row in range(len(batch)):
        kinds = batch.inputs.get("token_type_ids")
        key = (int(batch.mask[row].sum()), None if kinds is None else tuple(kinds[row].tolist()))
        if key not in known:
            known[key] = _bounds(adapter, space, batch, row)
        found.append(known[key])
    return torch.stack([low for low, _ in found]), torch.stack([high for _, high in found])


def _bounds(adapter: TextModel, space: Stream, batch: Batch, row: int) -> tuple[Tensor, Tensor]:
    low: Tensor | None = None
    high: Tensor | None = None
    for _, states in vocabulary_states(adapter, space, batch, row):
        least, most = states.amin(dim=0), states.amax(dim=0)
        low = least if low is None else low.minimum(least)
        high = most if high is None else high.maximum(most)
    assert low is not None
    assert high is not None
    return low, high
