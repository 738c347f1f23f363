"""The tab of questions: what does the model say without this, and was that foretold?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast, get_args

import torch

from pellucid._errors import ArgumentError, explain_error
from pellucid._target import Target
from pellucid._types import Batch, Picture, Removal, Text
from pellucid.adapters.base import Adapter
from pellucid.adapters.text_model import TextModel
from pellucid.app.forecasts import Answer, answered
from pellucid.app.picker import picker
from pellucid.app.picking import Chosen, pieces
from pellucid.app.pieces import predicted, rooted, table
from pellucid.app.session import alone
from pellucid.viz.markup import Markup, element
from pellucid.viz.wording import number

if TYPE_CHECKING:
    from pellucid.app.desk import Desk, Follower

_RULE = "Scores foretell by their sum: before, less those taken away. A SLALOM is asked as fitted."


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
