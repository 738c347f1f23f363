"""One word said again and again. Leemann et al., TMLR 2024, Figures 3 and 7."""

from __future__ import annotations

from typing import Any

from pellucid.surrogates import repetition
from pellucid.synthetic.asking import asking

Row = dict[str, float]


def repetition_row(model: Any, word: str = "perfect", *, most: int = 20) -> Row:
    """The log-odds of [word] x 1 to `most`: how flat, and with what slope (Figure 3).

    A sum grows by the word's weight each time. `flatness` is max |F_i - F_1|.
    """
    found = repetition(asking(model), word, most=most)
    curve = {f"log_odds_{i}": score for i, score in enumerate(found.scores.tolist(), start=1)}
    return {"flatness": found.flatness, "slope": found.slope, **curve}


def length_row(model: Any, word: str = "perfect", *, most: int = 8) -> Row:
    """The Shapley value of each position of [word] x 1 to `most` (Figure 7).

    Leaving out some of several equal words leaves the others, whichever they are: all positions
    have the same value, (F_i - F_0) / i, which Kernel SHAP estimates by drawing. F_0, for no word
    at all, is 0, as it is for the sum that was learnt. The weight of the word is expected.
    """
    found = repetition(asking(model), word, most=most, nothing=0.0)
    return {f"shapley_{i}": value for i, value in enumerate(found.shapley.tolist(), start=1)}
