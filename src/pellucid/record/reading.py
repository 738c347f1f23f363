"""Computing only what is read: after the last attention, a token no longer depends on the others.

While the context is active, every linear map after the last attention is computed for the tokens
that the prediction is read from, and for no other. In a classifier that is most of the last block;
in a language model it is the whole head but one row. The numbers that are read stay the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from pellucid.record.attention import Attention, AttentionWatch


@contextmanager
def only_read(positions: Tensor, tokens: int, attentions: int) -> Iterator[None]:
    """Inside the block, skip what is not read; `positions` (b k) are the tokens that are."""
    mode = ReadOnly(positions, tokens, attentions)
    with AttentionWatch(mode.count), mode:
        yield


class ReadOnly(TorchFunctionMode):
    """The mode that does it, told of every attention by `count`."""

    def __init__(self, positions: Tensor, tokens: int, attentions: int) -> None:
        super().__init__()
        self._positions = positions
        self._tokens = tokens
        self._attentions = attentions
        self._seen = 0

    def count(self, attention: Attention) -> None:
        """One more attention has happened."""
        self._seen += 1

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func is F.linear and self._seen >= self._attentions and self._is_stream(args):
            stream, *weights = args
            index = self._positions.to(stream.device)[..., None]
            read = stream.gather(1, index.expand(-1, -1, stream.shape[-1]))  # b k d
            found = F.linear(read, *weights, **kwargs)
            whole = found.new_zeros(*stream.shape[:2], found.shape[-1])
            return whole.scatter(1, index.expand(-1, -1, found.shape[-1]), found)
        return func(*args, **kwargs)

    def _is_stream(self, args: Sequence[Any]) -> bool:
        stream = args[0] if args else None
        expected = (len(self._positions), self._tokens)
        return isinstance(stream, Tensor) and stream.dim() == 3 and stream.shape[:2] == expected
