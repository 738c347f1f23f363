"""What a model answered to versions of inputs, remembered so that none is put to it twice.

Metrics read the same few versions again and again: the image itself, the black image, the image
without its first thousand pixels. A version is known by its input, by the class that is read, and
by a key that says what was done to the input; a key has to name content, never a place in a list.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor

from pellucid._perturb import stream
from pellucid._target import QUANTITIES
from pellucid._types import Batch

if TYPE_CHECKING:
    from pellucid._case import Case

_MOST = 2**16  # answers that are kept: about 30 MB
PREDICTED = len(QUANTITIES)  # the place of the predicted class in an answer


class Answers:
    """The answers of one model, of which the one not asked for longest is forgotten first."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._known: OrderedDict[Hashable, list[float]] = OrderedDict()

    def recall(self, version: Hashable) -> list[float] | None:
        """The answer to a version, where it is still known."""
        found = self._known.get(version)
        if found is not None:
            self._known.move_to_end(version)
        return found

    def keep(self, version: Hashable, answer: list[float]) -> None:
        """Remember the answer to a version."""
        self._known[version] = answer
        if len(self._known) > self._most:
            self._known.popitem(last=False)


def answers_to(
    case: Case,
    rows: Tensor,
    keys: Sequence[Hashable],
    make: Callable[[Tensor], Batch],
    *,
    lengths: Tensor | None = None,
    equal: bool = False,
) -> Tensor:
    """What the model answers to every version (j q+1): each quantity, then the predicted class.

    Version j is made from input `rows[j]`, and `keys[j]` says how; versions of one input that have
    one key are one. `make` builds the batch of those that no one has asked for yet; `lengths` and
    `equal` are those of `stream`.
    """
    places: dict[Hashable, list[int]] = {}
    for job, (row, key) in enumerate(zip(rows.tolist(), keys, strict=True)):
        places.setdefault((case.questions[row], key), []).append(job)
    found = {version: case.answers.recall(version) for version in places}
    new = [version for version, answer in found.items() if answer is None]
    first = torch.tensor([places[version][0] for version in new], dtype=torch.long)
    batches = stream(
        case,
        rows[first],
        lambda chosen: case.answer(make(first[chosen]), rows[first[chosen]]).cpu(),
        lengths=None if lengths is None else lengths[first],
        equal=equal,
    )
    for chosen, answers in batches:
        for number, answer in zip(chosen.tolist(), answers.tolist(), strict=True):
            found[new[number]] = answer
            case.answers.keep(new[number], answer)
    ordered: list[list[float]] = [[]] * len(rows)
    for version, jobs in places.items():
        for job in jobs:
            ordered[job] = cast(list[float], found[version])
    return torch.tensor(ordered, dtype=torch.float64).view(len(rows), PREDICTED + 1)
