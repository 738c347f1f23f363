"""From states to tokens: the nearest embeddings, or what a language model reads in them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Protocol

import torch
from torch import Tensor

from pellucid._batches import in_pieces
from pellucid._types import Batch
from pellucid.adapters.text_model import TextModel
from pellucid.adapters.torch_model import logits_of
from pellucid.explorer.space import Stream
from pellucid.explorer.vocabulary import vocabulary_states

_POINTS = 64  # states at once
_NUMBERS = 2**25  # of logits at once


@dataclass(frozen=True, eq=False)
class Ranked:
    """The best candidates of every token, on the CPU, best first."""

    ids: Tensor  # s m top
    scores: Tensor  # s m top, float64


class Decoder(Protocol):
    """A way from states (s t d) to the tokens at some places of them."""

    @property
    def quality(self) -> Literal["distance", "probability"]:
        """What its scores are."""
        ...

    def rank(self, states: Tensor, places: Tensor, allowed: Tensor, top: int) -> Ranked:
        """The `top` best of the tokens that are allowed at each place (m v)."""
        ...


@dataclass(frozen=True, eq=False)
class Nearest:
    """argmin_v |e(v, s) - x_s|: e is the model's own way to that space, positions included."""

    model: TextModel
    space: Stream
    batch: Batch  # of the one input
    quality: Literal["distance"] = "distance"

    def rank(self, states: Tensor, places: Tensor, allowed: Tensor, top: int) -> Ranked:
        points = states[:, places.to(states.device)].double()  # s m d
        device = points.device
        allowed, places = allowed.to(device), places.to(device)
        size = points.shape[:2]
        best = torch.empty(*size, 0, dtype=torch.float64, device=device)
        ids = torch.empty(*size, 0, dtype=torch.long, device=device)
        tokens = allowed.any(dim=0).nonzero()[:, 0]
        for some, known in vocabulary_states(self.model, self.space, self.batch, 0, tokens):
            embedded = known[:, places].double()  # v m d
            found = torch.cat([_distances(part, embedded) for part in points.split(_POINTS)])
            found = found.masked_fill(~allowed[:, some], torch.inf)  # s m v
            best = torch.cat([best, found], dim=2)
            ids = torch.cat([ids, some.expand_as(found)], dim=2)
            best, index = best.topk(min(top, best.shape[2]), dim=2, largest=False)
            ids = ids.gather(2, index)
        return Ranked(ids.cpu(), best.cpu())


def _distances(points: Tensor, embedded: Tensor) -> Tensor:
    """From every point to every token at the same place (s m d and v m d -> s m v)."""
    along = torch.einsum("smd,vmd->smv", points, embedded)
    squares = (points**2).sum(dim=2)[..., None] + (embedded**2).sum(dim=2).T - 2 * along
    return squares.clamp(min=0).sqrt()


@dataclass(frozen=True, eq=False)
class Reading:
    """argmax_v of a language model's logits when its stream at a place is the state.

    Fed to its first block that is Algorithm 5 for texts; fed to its head, the head alone.
    """

    model: TextModel
    at: str
    batch: Batch  # of the one input, as this model takes it
    quality: Literal["probability"] = "probability"

    @classmethod
    def of(cls, model: TextModel, at: str, batch: Batch) -> Reading:
        """The reading of another model's batch, whose ids mean the same here."""
        inputs = {
            name: tensor.to(model.device)
            for name, tensor in batch.inputs.items()
            if name in model.reader.accepts
        }
        mask = batch.mask.to(model.device)
        return cls(model, at, replace(batch, inputs=inputs, mask=mask, reads=None))

    def rank(self, states: Tensor, places: Tensor, allowed: Tensor, top: int) -> Ranked:
        wide = states.shape[1] * self.model.vocabulary
        some = max(1, min(_POINTS, _NUMBERS // wide))
        some = min(some, self.model.largest_batch or some)
        batches = [part.tolist() for part in torch.arange(len(states)).split(some)]

        def work(indices: list[int]) -> tuple[Tensor, Tensor]:
            return self._best(states[indices], places, allowed, top)

        found = [result for _, result in in_pieces(batches, work)]
        return Ranked(torch.cat([i for i, _ in found]), torch.cat([p for _, p in found]))

    def _best(
        self, states: Tensor, places: Tensor, allowed: Tensor, top: int
    ) -> tuple[Tensor, Tensor]:
        several = self.batch.take([0] * len(states))
        with torch.no_grad():
            logits = logits_of(self.model.output_from(several, self.at, states))
        own = logits[:, places.to(logits.device)].double().softmax(dim=-1)  # s m v
        own = own[..., : allowed.shape[1]].masked_fill(~allowed.to(own.device), -1.0)
        scores, ids = own.topk(top, dim=2)
        return ids.cpu(), scores.cpu()
