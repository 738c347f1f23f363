"""The points of a walk as texts: a token for every state that moved, put back into the input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pellucid._decoded import Candidate
from pellucid._types import Text
from pellucid.adapters.text_model import TextModel
from pellucid.explorer.candidates import readable_tokens
from pellucid.explorer.decoders import Decoder, Ranked
from pellucid.explorer.walked import Walked

Ids = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Spelling:
    """What the tokens at the walked places (m of them) became at every saved point."""

    walked: Walked
    decoder: Decoder
    ranked: Ranked  # s m top
    chosen: Tensor  # s m: the tokens decided for
    original: Tensor  # m
    right: int  # walked tokens that are read as they are at the start

    def ids(self, tokens: Tensor) -> Ids:
        """All ids of the input with these (m) at the walked places."""
        found = list(_rows(self.walked))
        for place, token in zip(self.walked.places, tokens.tolist(), strict=True):
            found[place] = token
        return tuple(found)

    @property
    def rows(self) -> list[Ids]:
        """The ids of every decoded point."""
        return [self.ids(tokens) for tokens in self.chosen]

    def candidates(self) -> tuple[tuple[tuple[Candidate, ...], ...], ...]:
        """Tokens in words and their scores (s m top); none for the model's own tokens."""
        adapter, own = self.walked.adapter, set(self.walked.own)
        known = self.ranked.ids.unique().tolist()
        assert isinstance(adapter, TextModel)
        pieces = adapter.reader.tokenizer.batch_decode([[token] for token in known])
        names = dict(zip(known, pieces, strict=True))
        found = []
        for ids, scores in zip(self.ranked.ids.tolist(), self.ranked.scores.tolist(), strict=True):
            lists = iter(
                tuple((names[i], p) for i, p in zip(*one, strict=True))
                for one in zip(ids, scores, strict=True)
            )
            tokens = range(len(self.walked.trajectory.tokens))
            found.append(tuple(next(lists) if i in own else () for i in tokens))
        return tuple(found)

    def changed(self) -> Tensor:
        """Where the token is another than the start's (s m), the model's own included."""
        found = torch.zeros(len(self.chosen), len(self.walked.trajectory.tokens), dtype=torch.bool)
        found[:, self.walked.own] = self.chosen != self.original
        return found


def spell(
    walked: Walked, decoder: Decoder, top: int, *, fallback: bool, punctuation: bool
) -> Spelling:
    """Decode the start and every saved point (Algorithm 5).

    The token that stood in a place is a candidate there, whatever it is. With `fallback` a place
    that is misread at the start keeps its token for as long as it is misread as the same.
    """
    adapter = walked.adapter
    assert isinstance(adapter, TextModel)
    places = torch.tensor(walked.places)
    original = torch.tensor(_rows(walked))[places]
    readable = readable_tokens(adapter, punctuation=punctuation)
    allowed = readable.repeat(len(places), 1)  # m v
    allowed[torch.arange(len(places)), original] = True
    top = min(top, int(allowed.sum(dim=1).min()))
    ranked = decoder.rank(walked.states(), places, allowed, top)
    first, chosen = ranked.ids[0, :, 0], ranked.ids[1:, :, 0]
    if fallback:
        chosen = torch.where(chosen == first, original, chosen)
    later = Ranked(ranked.ids[1:], ranked.scores[1:])
    return Spelling(walked, decoder, later, chosen, original, int((first == original).sum()))


def with_ids(walked: Walked, ids: Ids) -> Text:
    """The input with other ids, never read from a text again."""
    item = walked.item
    assert isinstance(item, Text)
    assert item.rows is not None
    return replace(item, rows={**item.rows, "input_ids": ids})


def written(walked: Walked, ids: Ids) -> str:
    """The ids as a text: the input itself where they are its own."""
    item = walked.item
    assert isinstance(item, Text)
    return " | ".join(item.parts if ids == _rows(walked) else parts_of(walked, ids))


def parts_of(walked: Walked, ids: Ids) -> tuple[str, ...]:
    """The one text, or the two of a pair, that the tokenizer makes of the ids."""
    item, adapter = walked.item, walked.adapter
    assert isinstance(item, Text)
    assert isinstance(adapter, TextModel)
    tokenizer = adapter.reader.tokenizer
    own: list[list[int]] = [[] for _ in item.parts]
    for token, segment in zip(ids, item.segments, strict=True):
        if segment.role == "content" or token == tokenizer.mask_token_id:
            own[segment.part].append(token)
    return tuple(tokenizer.decode(tokens).strip() for tokens in own)


def growth(walked: Walked, rows: Sequence[Ids]) -> Tensor:
    """By how many tokens each text grows when it is cut into tokens again (s)."""
    adapter, original = walked.adapter, _rows(walked)
    assert isinstance(adapter, TextModel)
    known: dict[Ids, int] = {original: 0}
    for ids in rows:
        if ids not in known:
            again = adapter.reader.tokenizer(*parts_of(walked, ids), verbose=False)
            roles = [segment.role for segment in walked.trajectory.segments]
            known[ids] = len(again["input_ids"]) - len(ids) + roles.count("continuation")
    return torch.tensor([known[ids] for ids in rows], dtype=torch.float64)


def _rows(walked: Walked) -> Ids:
    item = walked.item
    assert isinstance(item, Text)
    assert item.rows is not None
    return item.rows["input_ids"]
