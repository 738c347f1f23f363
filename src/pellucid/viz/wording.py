"""The numbers and sentences that the page, the terminal and the plot have in common."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping

from pellucid._results import Explanation
from pellucid.viz.colour import Scale
from pellucid.viz.shown import outside

_VALUE = "value"  # what an explanation calls the output of a regression or of a user's function


def number(value: float, *, signed: bool = False) -> str:
    """Four significant digits; a signed score shows its sign also when it is positive."""
    if value == 0:
        return "0"  # never -0
    return f"{value:+.4g}" if signed else f"{value:.4g}"


def percent(probability: float) -> str:
    """A probability that is never rounded to certainty."""
    if 0 < probability < 0.001:
        return "<0.1%"
    if 0.999 < probability < 1:
        return ">99.9%"
    return f"{probability:.1%}"


def name_of(label: str) -> str:
    """The label or token, in quotes where it would not be seen."""
    return label if label.strip() else repr(label)


def are_probabilities(prediction: Mapping[str, float]) -> bool:
    """Whether the prediction is of classes; a regression's is one value."""
    return set(prediction) != {_VALUE} and all(0 <= p <= 1 for p in prediction.values())


def explained_label(explanation: Explanation) -> str:
    """The class that was explained; empty where the target names it or there is none."""
    known = explanation.unit == _VALUE or repr(explanation.label) in explanation.explains
    return "" if known else name_of(explanation.label)


def subject(explanation: Explanation) -> str:
    """What was explained, with its class and its number."""
    label = explained_label(explanation)
    label = f" ({label})" if label else ""
    return f"{explanation.explains}{label}: {number(explanation.value)}"


def directions(explanation: Explanation) -> tuple[str, str]:
    """What the low and the high end of the scale mean."""
    if not explanation.signed:
        return "little", "much"
    if explanation.unit == _VALUE:
        return "speaks for a lower value", "speaks for a higher value"
    label = name_of(explanation.label)
    return f"speaks against {label}", f"speaks for {label}"


def meaning(explanation: Explanation, scale: Scale) -> str:
    """What the numbers are, in a sentence or two."""
    below = not explanation.signed and bool((explanation.scores < 0).any())
    if not scale.largest:
        found = (
            "No score is above zero"
            if below
            else f"All scores of the {_place(explanation)} are zero"
        )
        return f"{found}: nothing is coloured."
    sign = "; its sign is a direction as this method measures it."
    amount = ": how much, not in which direction."
    sentences = [
        f"One number for each {_unit(explanation)}{sign if explanation.signed else amount}"
    ]
    if scale.limit < scale.largest:
        limit, largest = number(scale.limit), number(scale.largest)
        sentences.append(f"Colours are full from {limit}; the largest is {largest}.")
    if below:
        sentences.append("Scores below zero have no colour.")
    return " ".join(sentences)


def parameters(explanation: Explanation) -> list[str]:
    """The method's parameters as they are typed."""
    return [f"{name}={value!r}" for name, value in explanation.params.items()]


def aside(explanation: Explanation) -> str:
    """How much of the score lies on tokens that stand nowhere in the input; empty if none does."""
    found = outside(explanation)
    if not found:
        return ""
    scores = explanation.scores.double()
    size = math.fsum(abs(score) for _, score in found)
    share = size / float(scores.abs().sum()) if size else 0.0
    count = f"{len(found)} token{'s' if len(found) > 1 else ''} outside the {_place(explanation)}"
    total = number(math.fsum(score for _, score in found), signed=explanation.signed)
    return f"{count}: {total} together, {percent(share)} of all scores by size"


def short(text: str, most: int = 80) -> str:
    """The text on one line, cut where it is long."""
    line = " ".join(text.split())
    if len(line) <= most:
        return line
    if " " not in line[:most]:
        return f"{line[: most - 1]}…"
    return textwrap.shorten(line, most, placeholder="…")


def _place(explanation: Explanation) -> str:
    return "text" if explanation.kind == "text" else "image"


def _unit(explanation: Explanation) -> str:
    if explanation.kind == "text":
        return "word (the sum over its tokens)"
    return "patch" if explanation.scores.dim() == 1 else "pixel"
