"""Transformer Input Sampling. Englebert et al., ICCV Workshops 2023, section 3.

Tokens are not painted over but really left out, before the first block and after their position was
added; which ones are left out together is read from what the model itself makes of them.

It misleads where tokens left out leave the model unsure of everything, so that all scores are near
each other; only their order is then worth reading.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pellucid._arguments import integer, real
from pellucid._case import Case
from pellucid._errors import ArgumentError, explain_error
from pellucid._kmeans import kmeans
from pellucid._needs import Needs
from pellucid._perturb import in_time
from pellucid._spec import method
from pellucid._types import Attribution
from pellucid.methods._late import late_notes
from pellucid.methods._rejected import rejected_notes


@method(
    needs=Needs.STREAM | Needs.TOKEN_DROP,
    cite="englebert2023tis",
    signed=False,
    explains="probability",
    presets={"paper": {"masks": 1024, "ratio": 0.5}, "fast": {"masks": 128, "ratio": 0.5}},
    quick={"masks": 32},
)
def tis(
    case: Case,
    *,
    masks: int = 1024,
    ratio: float | tuple[float, ...] = 0.5,
    standardize: bool = False,
) -> Attribution:
    """The mean target over sets of tokens that hold a token, of which the rest was left out.

    `masks` sets are drawn from the activations of all blocks by k-means, each keeping the `ratio`
    of tokens, or once for each of several ratios. `standardize` takes every channel's mean and
    scale away first, for models in which a few channels are huge. Probabilities are averaged unless
    the target is another quantity, as in ``target=Target.logit("cat")``.
    """
    keep = _masks(case, integer("masks", masks, 1, 1024), _ratios(ratio), standardize)  # M: b m t
    w = in_time(case, keep, case.drop).to(case.dtype)  # Eq. 4: b m
    m = keep[:, : w.shape[1]].to(w)
    covered = m.sum(dim=1)  # b t
    scores = torch.einsum("bm,bmt->bt", w, m) / covered.clamp(min=1)  # Eq. 5
    missed = (case.content & (covered == 0)).sum(dim=1).tolist()
    late = late_notes([w.shape[1]] * len(w), keep.shape[1], "sets")
    notes = [
        (
            *told,
            *more,
            *(f"{count} tokens were in none of the sets and have no score",) * (count > 0),
        )
        for told, more, count in zip(rejected_notes(case), late, missed, strict=True)
    ]
    signed = case.target.quantity != "probability"
    return Attribution(scores, notes=notes, signed=signed)


def _masks(case: Case, masks: int, ratios: tuple[float, ...], standardize: bool) -> Tensor:
    """The tokens of the user's that stay in every set (b m t)."""
    stream = case.record(Needs.STREAM).stream[1:]  # l b t d
    content = case.content.to(stream.device)
    found = []
    for row, generator in enumerate(case.generators):
        own = content[row].nonzero()[:, 0]
        a = stream[:, row, own].transpose(1, 2).flatten(0, 1)  # the columns of A: l*d n
        if standardize:
            a = (a - a.mean(dim=1, keepdim=True)) / a.std(dim=1, keepdim=True).clamp(min=1e-12)
        centroids = kmeans(a, masks, generator)  # Eq. 1: m n
        order = centroids.argsort(dim=1, descending=True, stable=True)
        sets = torch.zeros(len(ratios), len(order), content.shape[1], dtype=torch.bool)
        for some, part in zip(sets, ratios, strict=True):
            some.scatter_(1, own[order[:, : max(1, int(part * len(own)))]].cpu(), True)  # Eq. 2
        found.append(sets.flatten(0, 1))
    return torch.stack(found).to(case.mask.device)


def _ratios(ratio: float | tuple[float, ...]) -> tuple[float, ...]:
    """The parts of the tokens that sets keep, checked."""
    given = tuple(ratio) if isinstance(ratio, tuple | list) else (ratio,)
    ratios = tuple(real("ratio", part) for part in given)
    if not ratios or not all(0 < part <= 1 for part in ratios):
        raise ArgumentError(
            explain_error(
                "a set keeps a part of the tokens",
                got=f"ratio={ratio!r}",
                expected="a number above 0 and at most 1, or several",
                instead="ratio=0.5",
            )
        )
    return ratios
