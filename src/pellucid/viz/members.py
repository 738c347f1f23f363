"""The units of a SLALOM as they are drawn: what each says, how much it counts, what it does."""

from __future__ import annotations

from dataclasses import dataclass

from pellucid._slalom import SlalomExplanation
from pellucid._types import Text


@dataclass(frozen=True)
class Member:
    """A unit of the input with its readings."""

    text: str
    value: float
    importance: float
    removal: float
    error: float  # standard error of the importance
    identified: bool


def members(explanation: SlalomExplanation) -> list[Member]:
    """The units, those first whose removal does most."""
    game = explanation.surrogate
    found = []
    for number, player in enumerate(explanation.players):
        tokens = list(player)
        found.append(
            Member(
                _text(explanation, tokens),
                float(game.value[number]),
                float(game.importance[number]),
                float(explanation.removal[tokens].sum()),
                float(explanation.standard_error["importance"][tokens[0]]),
                bool(explanation.identified[tokens[0]]),
            )
        )
    return sorted(found, key=lambda member: -abs(member.removal))


def _text(explanation: SlalomExplanation, tokens: list[int]) -> str:
    """The characters from the first token to the last, or what the tokens are called."""
    own = [explanation.segments[i] for i in tokens]
    spans = [segment.span for segment in own if segment.span is not None]
    if not isinstance(explanation.item, Text) or len(spans) < len(own):
        return " ".join(segment.text for segment in own)
    start, end = min(span[0] for span in spans), max(span[1] for span in spans)
    return explanation.item.parts[own[0].part][start:end]
