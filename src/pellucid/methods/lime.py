"""LIME. Ribeiro, Singh and Guestrin, KDD 2016, section 3; what it leaves open as in its code.

A linear function of which players stay, fitted to the model's answers around the input.

It misleads where the function is far from linear near the input, which `r2` tells, and where few
samples make the coefficients differ from seed to seed.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pellucid._arguments import integer, real
from pellucid._baselines import Reference
from pellucid._case import Case
from pellucid._errors import ArgumentError, explain_error
from pellucid._needs import Needs
from pellucid._spec import method
from pellucid._types import Attribution, Removal
from pellucid.methods._late import late_notes
from pellucid.methods._players import Unit, players, subsets
from pellucid.methods._regression import fit


@method(
    needs=Needs.NOTHING,  # any image can be painted over, and any text shortened
    cite="ribeiro2016why",
    signed=True,
    explains="log_odds",
    presets={
        "text": {"samples": 5000, "features": 10, "unit": "type"},
        "image": {"samples": 1000, "features": 0},
    },
    quick={"samples": 60},
)
def lime(
    case: Case,
    *,
    samples: int = 1000,
    unit: Unit = "token",
    by: Removal = "delete",
    baseline: Reference = "zero",
    cells: int = 8,
    width: float = 0.25,
    ridge: float = 1.0,
    features: int = 0,
) -> Attribution:
    """The coefficients of a linear function of which tokens stay, fitted near the whole input.

    A `unit` of a text, a "token", a "word", or all words of one "type", is there or not; what is
    not is deleted, or replaced `by` the "mask", "unk" or "pad" token. Of an image, patches are left
    out; where a model cannot do without them all, `cells` x `cells` pieces are painted over with
    the `baseline`. The input itself is one of the `samples`. They are weighted by their cosine
    distance to it with a kernel of this `width`; `ridge` penalises the squared coefficients, of
    which the most telling `features` are fitted (0: all).

    The presets are the authors' code, which explains a probability: ``Target.probability()``. The
    extras are the function's "intercept" and its "r2" on the weighted samples.
    """
    _check(width, ridge)
    game = players(case, unit, by, baseline, cells)
    samples, features = integer("samples", samples, 2, 1000), integer("features", features, 0, 10)
    draw = _texts if case.kind == "text" else _images
    pairs = zip(game.counts, case.generators, strict=True)
    z = [draw(samples - 1, count, generator) for count, generator in pairs]
    value = case.value.cpu()
    answers = game.values(z)
    fits = []
    for some, answer, own in zip(z, answers, value, strict=True):
        x = torch.cat([torch.ones(1, some.shape[1]), some[: len(answer)]]).double()
        y = torch.cat([own[None], answer])
        kept = x.mean(dim=1)  # of the players
        distance = 1 - kept.sqrt()  # cosine, of 0/1 vectors, to all ones
        pi = (-((distance / width) ** 2) / 2).exp()  # the code takes a root
        fits.append(fit(x, y, pi, ridge, features))
    extras = {
        "intercept": torch.stack([one.intercept for one in fits]),
        "r2": torch.stack([one.r2 for one in fits]),
    }
    notes = late_notes([1 + len(answer) for answer in answers], samples, "samples")
    return Attribution(game.share([one.coefficients for one in fits]), extras, notes)


def _texts(samples: int, players: int, generator: torch.Generator) -> Tensor:
    """Of a text, 1 to all players are gone, each number as likely (m n)."""
    gone = torch.randint(1, players + 1, (samples,), generator=generator)
    return subsets(players - gone, players, generator)


def _images(samples: int, players: int, generator: torch.Generator) -> Tensor:
    """Of an image, each player stays by the toss of a coin (m n)."""
    return torch.rand(samples, players, generator=generator) < 0.5


def _check(width: float, ridge: float) -> None:
    if real("width", width, 0.25) <= 0 or real("ridge", ridge, 1.0) < 0:
        raise ArgumentError(
            explain_error(
                "this is no weighted ridge regression",
                got=f"width={width}, ridge={ridge}",
                expected="a width above 0, and a ridge of at least 0",
                instead="width=0.25, ridge=1.0",
            )
        )
