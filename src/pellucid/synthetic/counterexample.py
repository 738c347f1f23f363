"""Five sequences that no sum over positions describes. Leemann et al., TMLR 2024, Figure 9."""

from __future__ import annotations

from typing import Any

import torch

from pellucid.surrogates import Slalom
from pellucid.synthetic.asking import asking
from pellucid.synthetic.repeated import Row


def counterexample_row(model: Any, high: str = "perfect", low: str = "worst") -> Row:
    """What a model says of two words, and what a GAM and a SLALOM that fit it expect of both.

    The GAM takes w_1 and w_2 of each word from the word said once and twice, and so expects
    w_1(high) + w_2(low) of [high, low]. The SLALOM takes the values from the words alone and gives
    them the same importance, so it expects their mean.
    """
    sequences = [(high,), (high, high), (low,), (low, low), (high, low), (low, high)]
    one_high, two_high, one_low, two_low, mixed, turned = asking(model)(sequences).tolist()
    value = torch.tensor([one_high, one_low], dtype=torch.float64)
    slalom = Slalom((high, low), value, torch.zeros_like(value))
    expected = one_high + (two_low - one_low)
    averaged = float(slalom.predict([(high, low)]))
    return {
        "high": one_high,
        "high_high": two_high,
        "low": one_low,
        "low_low": two_low,
        "high_low": mixed,
        "low_high": turned,
        "gam_expects": expected,
        "slalom_expects": averaged,
        "gam_error": abs(expected - mixed),
        "slalom_error": abs(averaged - mixed),
    }
