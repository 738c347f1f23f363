"""The component of a tab that shows the words or patches of the input, to be clicked on."""

from __future__ import annotations

from threading import Event
from typing import Any

from pellucid._errors import PellucidError
from pellucid._target import Target
from pellucid._types import Picture, Text
from pellucid.app.desk import Desk, raw_of
from pellucid.app.picking import Chosen, Piece, drawn, patch_at, pieces, toggled
from pellucid.app.session import alone
from pellucid.viz.colour import FOR

_CHOSEN = "chosen"


def picker(desk: Desk, label: str) -> Any:
    """Lay it out for whichever the model reads; the state that holds what is chosen."""
    gr = desk.gr
    chosen = gr.State(frozenset())
    words = gr.HighlightedText(
        label=label,
        color_map={_CHOSEN: f"rgb{FOR}"},
        show_inline_category=False,
        interactive=False,
        visible=False,
        elem_classes="words",
    )
    patches = gr.Image(
        label=label,
        interactive=False,
        visible=False,
        buttons=[],
        format="png",
        elem_classes="patches",
    )
    source = [desk.model, desk.text, desk.image]

    def fill(model: str, text: str, image: str | None) -> list[Any]:
        return [frozenset(), *_shown(gr, _item(desk, model, text, image), frozenset())]

    def click(event: Any, before: Chosen, *given: Any) -> list[Any]:
        item = _item(desk, *given)
        now = frozenset() if item is None else toggled(before, _clicked(item, event.index))
        return [now, *_shown(gr, item, now)]

    click.__annotations__["event"] = gr.SelectData  # by which gradio knows the argument
    quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
    outputs = [chosen, words, patches]
    for component in (words, patches):
        component.select(click, [chosen, *source], outputs, **quiet)
    changes = [desk.demo.load, desk.model.change, desk.text.change, desk.image.change]
    gr.on(changes, fill, source, outputs, trigger_mode="always_last", **quiet)
    return chosen


def _item(desk: Desk, model: str, text: str, image: str | None) -> Text | Picture | None:
    """The input cut into its words or patches; None where there is none to be cut."""
    try:
        served = desk.shelf.get(model)
        raw = raw_of(served.adapter, text, image)
        with alone(served, Event()) as adapter:
            return adapter.read(raw, Target.predicted())
    except PellucidError:
        return None  # what is wrong with it is said when it is explained


def _clicked(item: Text | Picture, place: Any) -> tuple[int, ...]:
    """The tokens or the patch at the place of a click."""
    if isinstance(item, Picture):
        return patch_at(item, *place)
    cut = pieces(item)
    number = place[0] if isinstance(place, list | tuple) else place
    return cut[number].tokens if 0 <= number < len(cut) else ()


def _shown(gr: Any, item: Text | Picture | None, chosen: Chosen) -> list[Any]:
    """The words and the patches, of which one shows the input and the other is not seen."""
    unseen = gr.update(value=None, visible=False)
    if isinstance(item, Text):
        marked = [(piece.text, _mark(piece, chosen)) for piece in pieces(item)]
        return [gr.update(value=marked, visible=True), unseen]
    if isinstance(item, Picture) and item.grid is not None:
        return [unseen, gr.update(value=drawn(item, chosen), visible=True)]
    return [unseen, unseen]


def _mark(piece: Piece, chosen: Chosen) -> str | None:
    return _CHOSEN if piece.tokens and chosen.issuperset(piece.tokens) else None
