"""Alternative prompts: the original text with one token replaced by what a point suggests.

Section 4 of the SiMEC paper: the predictions of the alternatives divide them into Y_c, where the
class is another one, and Y_s, where it stays; followed over the iterations, the probability of the
first class tells a walk inside a class from one out of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from pellucid._arguments import integer
from pellucid._decoded import Prompt
from pellucid._errors import ArgumentError, explain_error
from pellucid._trajectory import Trajectory
from pellucid._types import Text
from pellucid.adapters.text_model import TextModel
from pellucid.explorer.decode import find_decoder
from pellucid.explorer.predictions import predict
from pellucid.explorer.spelling import Ids, Spelling, spell, with_ids, written
from pellucid.explorer.walked import Walked
from pellucid.record import precision


@torch.inference_mode(False)
def alternatives(
    trajectory: Trajectory,
    model: Any,
    *,
    top: int = 5,
    using: str | None = None,
    mlm: Any = None,
    everywhere: bool = False,
    punctuation: bool = True,
    batch_size: int = 64,
) -> list[Prompt]:
    """The prompts of every saved point, in the order of points, tokens and ranks.

    Main arguments: `top` candidates a token, `using` and `mlm` as for `decode`; with `everywhere`
    the j-th candidate stands in all walked places at once, `top` prompts a point.

    Other arguments: `punctuation=False` leaves marks out of the candidates; `batch_size` prompts
    are given to the model at once, each different one a single time.
    """
    top, batch_size = integer("top", top, 1, 5), integer("batch_size", batch_size, 1, 64)
    walked = Walked.of(trajectory, model)
    if not isinstance(walked.item, Text):
        raise ArgumentError(
            explain_error(
                "only texts have alternative prompts",
                got=f"a trajectory of {walked.adapter.name}, from an image",
                expected="a trajectory from a text",
                instead="trajectory.decode()",
            )
        )
    with precision.formulas(walked.adapter.device):
        _, decoder = find_decoder(walked, using, mlm)
        spelled = spell(walked, decoder, top, fallback=False, punctuation=punctuation)
        drafts = _everywhere(spelled) if everywhere else _one_by_one(spelled)
        return _judged(walked, drafts, batch_size)


@dataclass(frozen=True)
class _Draft:
    """A prompt before the model has seen it."""

    point: int
    position: int | None
    rank: int
    token: str
    score: float
    ids: Ids


def _one_by_one(spelled: Spelling) -> list[_Draft]:
    """Every candidate in its own place, the rest of the text as it was."""
    drafts = []
    for point, lists in enumerate(spelled.candidates()):
        own = [found for found in lists if found]
        for column, found in enumerate(own):
            for rank, (token, score) in enumerate(found):
                tokens = spelled.original.clone()
                tokens[column] = spelled.ranked.ids[point, column, rank]
                place = spelled.walked.places[column]
                drafts.append(_Draft(point, place, rank, token, score, spelled.ids(tokens)))
    return drafts


def _everywhere(spelled: Spelling) -> list[_Draft]:
    """The candidates of one rank in all places; the score is their mean."""
    drafts = []
    for point, lists in enumerate(spelled.candidates()):
        own = [found for found in lists if found]
        for rank in range(len(own[0])):
            tokens, scores = zip(*(found[rank] for found in own), strict=True)
            ids = spelled.ids(spelled.ranked.ids[point, :, rank])
            mean = math.fsum(scores) / len(scores)
            drafts.append(_Draft(point, None, rank, " ".join(tokens), mean, ids))
    return drafts


def _judged(walked: Walked, drafts: Sequence[_Draft], batch_size: int) -> list[Prompt]:
    """What the model says of the prompts, beside what it said of the original."""
    adapter, trajectory = walked.adapter, walked.trajectory
    assert isinstance(adapter, TextModel)
    item = walked.item
    assert isinstance(item, Text)
    assert item.rows is not None
    original = item.rows["input_ids"]
    unique = {ids: i for i, ids in enumerate(dict.fromkeys([original, *(d.ids for d in drafts)]))}
    items = [with_ids(walked, ids) for ids in unique]
    first = trajectory.classes[int(trajectory.probabilities[0].argmax())]
    told = predict(adapter, items, walked.target, [first], batch_size)
    names = [adapter.label_name(i) for i in told.likeliest.tolist()]
    texts = [written(walked, ids) for ids in unique]
    prompts = []
    for draft in drafts:
        row = unique[draft.ids]
        prompts.append(
            Prompt(
                iteration=int(trajectory.iterations[draft.point]),
                position=draft.position,
                rank=draft.rank,
                token=draft.token,
                score=draft.score,
                text=texts[row],
                probability=float(told.probabilities[row, 0]),
                predicted=names[row],
                changed=bool(told.likeliest[row] != first),
            )
        )
    return prompts


@dataclass(frozen=True)
class Trend:
    """The probability of the first class after so many steps; NaN where a set is empty."""

    iteration: int
    changed: int  # how many prompts have another class: Y_c
    stayed: int  # Y_s
    probability_changed: float  # mean over Y_c
    probability_stayed: float  # mean over Y_s


def trend(prompts: Sequence[Prompt]) -> list[Trend]:
    """Y_c and Y_s along a walk, one entry a saved point."""
    found = []
    for iteration in sorted({prompt.iteration for prompt in prompts}):
        own = [prompt for prompt in prompts if prompt.iteration == iteration]
        sets = [[p.probability for p in own if p.changed is side] for side in (True, False)]
        means = [math.fsum(one) / len(one) if one else math.nan for one in sets]
        found.append(Trend(iteration, len(sets[0]), len(sets[1]), means[0], means[1]))
    return found
