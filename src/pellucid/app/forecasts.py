"""What explanations say of a changed input, beside what the model says of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pellucid._case import Case
from pellucid._errors import ArgumentError, explain_error
from pellucid._explain import prediction_of
from pellucid._results import Explanation
from pellucid._slalom import SlalomExplanation
from pellucid._target import Target
from pellucid._types import Batch
from pellucid.adapters.base import Adapter
from pellucid.app.picking import Chosen

_NO_SIGN = "its scores say how much, not in which direction"
_NO_SCORE = "no score is about what was put in"


@dataclass(frozen=True)
class Forecast:
    """What one explanation says of a changed input, beside what the model says."""

    method: str
    explains: str
    before: float
    foretold: float | None
    found: float
    why_not: str = ""


@dataclass(frozen=True)
class Answer:
    """The predictions before and after, and what was foretold."""

    before: Mapping[str, float]
    after: Mapping[str, float]
    forecasts: tuple[Forecast, ...]


def answered(
    adapter: Adapter, changed: Batch, explanations: Sequence[Explanation], chosen: Chosen | None
) -> Answer:
    """The model on the changed input, beside each explanation; `chosen` None: a swap."""
    case = Case(adapter, changed, Target.predicted())
    return Answer(
        explanations[0].prediction,
        prediction_of(case, 0),
        tuple(_forecast(adapter, changed, one, chosen) for one in explanations),
    )


def removed(explanation: Explanation, chosen: Chosen) -> float:
    """The sum of the scores of what is gone: of tokens, of patches, or of the pixels in those."""
    scores = explanation.scores.double()
    if scores.dim() == 1:
        return float(scores[sorted(chosen)].sum())
    boxes = [explanation.segments[i].box for i in sorted(chosen)]
    return sum(float(scores[b[0] : b[2], b[1] : b[3]].sum()) for b in boxes if b is not None)


def _forecast(
    adapter: Adapter, changed: Batch, explanation: Explanation, chosen: Chosen | None
) -> Forecast:
    """The explained number of the changed input, and what was foretold of it."""
    target = explanation.target or Target.predicted()
    if explanation.index is not None:
        target = replace(target, label=explanation.index)  # the class stays, whatever is predicted
    found = float(Case(adapter, changed, target).value[0])
    named = explanation.explains if explanation.unit == "value" else _named(target, explanation)
    forecast = Forecast(explanation.method, named, explanation.value, None, found)
    if chosen is None:
        return replace(forecast, why_not=_NO_SCORE)
    try:
        return replace(forecast, foretold=foretold(explanation, chosen))
    except ArgumentError as error:
        return replace(forecast, why_not=str(error).splitlines()[0])


def foretold(explanation: Explanation, chosen: Chosen) -> float:
    """The explained number without these, as the explanation has it.

    Scores are a sum: without these, the number is less by what they have of it. A SLALOM is a
    function, and is asked.
    """
    if isinstance(explanation, SlalomExplanation):
        return explanation.predict(sorted(chosen))
    if not explanation.signed:
        raise ArgumentError(
            explain_error(
                _NO_SIGN,
                got=explanation.method,
                expected="scores with a sign",
                instead="method='occlusion'",
            )
        )
    return explanation.value - removed(explanation, chosen)


def _named(target: Target, explanation: Explanation) -> str:
    return f"{(target.quantity or 'score').replace('_', '-')} of {explanation.label}"
