"""The tab of questions: what does the model say without this, and was that foretold?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast, get_args

import torch

from pellucid._case import Case
from pellucid._errors import ArgumentError, explain_error
from pellucid._explain import prediction_of
from pellucid._results import Explanation
from pellucid._slalom import SlalomExplanation
from pellucid._target import Target
from pellucid._types import Batch, Picture, Removal, Text
from pellucid.adapters.base import Adapter
from pellucid.adapters.text_model import TextModel
from pellucid.app.picker import picker
from pellucid.app.picking import Chosen, pieces
from pellucid.app.pieces import predicted, rooted, table
from pellucid.app.session import alone
from pellucid.viz.markup import Markup, element
from pellucid.viz.wording import number

if TYPE_CHECKING:
    from pellucid.app.desk import Desk, Follower

_NO_SIGN = "its scores say how much, not in which direction"
_RULE = "Scores foretell by their sum: before, less those taken away. A SLALOM is asked as fitted."
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


def without(adapter: Adapter, item: Text | Picture, chosen: Chosen, by: Removal) -> Batch:
    """The input without the chosen words, or with the chosen patches black."""
    _check_chosen(chosen)
    if isinstance(item, Picture):
        return adapter.batch([blackened(item, chosen)], Target.predicted())
    batch = adapter.batch([item], Target.predicted())
    keep = torch.ones_like(batch.mask)
    keep[0, sorted(chosen)] = False
    return adapter.without(batch, keep, by)


def instead_of(adapter: Adapter, item: Text, chosen: Chosen, other: str) -> Batch:
    """The text with other words in the place of the chosen ones, read again."""
    _check_chosen(chosen)
    written = [other if chosen.issuperset(p.tokens or [-1]) else p.text for p in pieces(item)]
    return adapter.encode(["".join(written)], Target.predicted())


def blackened(picture: Picture, chosen: Chosen) -> Picture:
    """The picture with these patches black."""
    view = picture.view.copy()
    for number_ in chosen:
        box = picture.segments[number_].box
        assert box is not None
        view[box[0] : box[2], box[1] : box[3]] = 0
    return replace(picture, view=view)


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


def _check_chosen(chosen: Chosen) -> None:
    if not chosen:
        raise ArgumentError(
            explain_error(
                "nothing is chosen to be taken away",
                got="no word and no patch",
                expected="one or several of them",
                instead="click on a word of the text, or on a patch of the image",
            )
        )


def shown(found: Answer) -> Markup:
    """Both predictions, the table of forecasts, and why some methods have none."""
    rows = [
        [
            one.method,
            "-" if one.foretold is None else number(one.foretold),
            number(one.found),
            "-" if one.foretold is None else number(one.foretold - one.found, signed=True),
            number(one.before),
            one.explains,
        ]
        for one in found.forecasts
    ]
    head = ["method", "foretold", "found", "off by", "before", "explains"]
    both = element(
        "div", predicted(found.before, "Before"), predicted(found.after, "After"), class_="both"
    )
    silent = [
        element("li", element("strong", one.method), f" foretells nothing: {one.why_not}")
        for one in found.forecasts
        if one.foretold is None
    ]
    return rooted(
        both,
        table("What was foretold, and what the model says", head, rows),
        element("ul", *silent, class_="meanings"),
        element("p", _RULE, class_="muted"),
    )


def tab(desk: Desk) -> list[Follower]:
    """Lay the tab out; what of it follows the choice of the model."""
    gr = desk.gr
    chosen = picker(desk, "Choose what to take away")
    with gr.Row():
        by = gr.Dropdown(label="Words are replaced by", min_width=160, elem_id="by")
        other = gr.Textbox(label="or swapped for", max_length=2000, elem_id="instead")
    with gr.Row():
        start = gr.Button("What if?", variant="primary", elem_id="what-if")
        stop = gr.Button("Stop", min_width=80, scale=0)
    result = gr.HTML(elem_id="answered")

    def run(given: Any, gone: Chosen, how: Removal, put: str, _: Any) -> Iterator[Markup]:
        made = given.session.explained_for(given.model, given.raw)
        with alone(given.served, given.session.stop) as adapter:
            item = made.found[0].item
            swaps = isinstance(item, Text) and bool(put.strip())
            if swaps:
                changed = instead_of(adapter, cast(Text, item), gone, put)
            else:
                changed = without(adapter, item, gone, how)
            found = answered(adapter, changed, made.found, None if swaps else gone)
        yield shown(found)

    desk.runs(start, run, [chosen, by, other], result)
    desk.stops(stop)
    return [
        (by, lambda a: {"choices": removals(a), "value": "delete", "visible": _reads(a)}),
        (other, lambda a: {"value": "", "visible": _reads(a)}),
    ]


def removals(adapter: Adapter) -> list[tuple[str, str]]:
    """What can become of a word: nothing, or a token that the tokenizer has."""
    if not isinstance(adapter, TextModel):
        return [("black", "delete")]
    tokenizer = adapter.reader.tokenizer
    named = {by: getattr(tokenizer, f"{by}_token", None) for by in get_args(Removal)}
    return [("nothing", "delete"), *((token, by) for by, token in named.items() if token)]


def _reads(adapter: Adapter) -> bool:
    return adapter.kind == "text"
