"""Computing only what is read: after the last attention, a token no longer depends on the others.

Inside the context, the linear maps behind the last attention are computed for the tokens that the
prediction is read from, and for no other. In a classifier that is most of the last block; in a
language model it is the whole head but one row. The numbers that are read stay the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from pellucid.record.attention import AttentionWatch
from pellucid.record.places import Place, edited


@dataclass(frozen=True)
class Behind:
    """What a pass showed of its attention and of what follows it."""

    maps: tuple[nn.Linear, ...]  # linear maps behind the last attention, and nowhere before it
    written_out: bool  # attention is done in plain steps, not by a fused operation


def look_behind(module: nn.Module, forward: Callable[[], Any], attentions: int) -> Behind:
    """Watch one pass, which has so many attentions."""
    seen = 0
    before: set[nn.Linear] = set()
    after: dict[nn.Linear, None] = {}  # an ordered set

    def attended(_: Any) -> None:
        nonlocal seen
        seen += 1

    def called(linear: nn.Module, *_: Any) -> None:
        assert isinstance(linear, nn.Linear)
        if seen < attentions:
            before.add(linear)
        else:
            after[linear] = None

    watch = AttentionWatch(attended)
    with ExitStack() as stack:
        for child in module.modules():
            if isinstance(child, nn.Linear):
                stack.callback(child.register_forward_pre_hook(called).remove)
        stack.enter_context(watch)
        forward()
    maps = tuple(linear for linear in after if linear not in before)
    return Behind(maps, watch.written_out)


@contextmanager
def only_read(maps: Sequence[nn.Linear], positions: Tensor, tokens: int) -> Iterator[None]:
    """Inside the block, these maps skip what is not read; `positions` (b k) are the tokens."""
    reading = _Reading(positions, tokens)
    with ExitStack() as stack:
        for linear in maps:
            stack.enter_context(edited(Place(linear, "input"), reading.gather))
            stack.enter_context(edited(Place(linear, "output"), reading.scatter))
        yield


class _Reading:
    """Narrows a stream (b t d) to what is read (b k d), and lays it out as a stream again."""

    def __init__(self, positions: Tensor, tokens: int) -> None:
        self._positions = positions
        self._tokens = tokens
        self._narrow = False  # whether what a map is just reading was narrowed

    def gather(self, stream: Tensor) -> Tensor | None:
        whole = (len(self._positions), self._tokens)
        self._narrow = stream.dim() == 3 and stream.shape[:2] == whole
        return stream.gather(1, self._index(stream)) if self._narrow else None

    def scatter(self, read: Tensor) -> Tensor | None:
        if not self._narrow:
            return None
        whole = read.new_zeros(len(self._positions), self._tokens, read.shape[-1])
        return whole.scatter(1, self._index(read), read)

    def _index(self, like: Tensor) -> Tensor:
        return self._positions.to(like.device)[..., None].expand(-1, -1, like.shape[-1])
