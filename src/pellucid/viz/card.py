"""The card of one method: its heat, what the heat means, and where the numbers come from."""

from __future__ import annotations

from pellucid._results import Explanation
from pellucid._slalom import SlalomExplanation
from pellucid._types import Picture
from pellucid.viz.colour import Scale
from pellucid.viz.group import Group
from pellucid.viz.image import image_heat
from pellucid.viz.markup import Markup, element, join
from pellucid.viz.plane import plane
from pellucid.viz.prediction import prediction
from pellucid.viz.provenance import notes, provenance
from pellucid.viz.shown import outside, scale_of
from pellucid.viz.text import heat_span, text_heat
from pellucid.viz.wording import (
    aside,
    directions,
    explained_label,
    meaning,
    name_of,
    number,
    parameters,
    short,
)

_TOP = 5
_LONGEST = 60  # characters of a parameter


def card(explanation: Explanation, group: Group) -> Markup:
    """One method; its four rows are aligned with those of its neighbours."""
    scale = scale_of(explanation)
    picture = isinstance(explanation.item, Picture)
    heat = image_heat(explanation, scale) if picture else text_heat(explanation, scale)
    own = group.predicts_otherwise(explanation)
    return element(
        "article",
        _head(explanation),
        heat,
        _legend(explanation, scale),
        element(
            "div",
            prediction(explanation.prediction, {explanation.label}) if own else Markup(),
            plane(explanation) if isinstance(explanation, SlalomExplanation) else Markup(),
            _top(explanation, scale),
            _aside(explanation, scale),
            notes(explanation.notes),
            provenance(explanation.provenance),
            class_="details",
        ),
        class_="card",
    )


def _head(explanation: Explanation) -> Markup:
    settings = [
        element("code", short(one, _LONGEST), title=one if len(one) > _LONGEST else None)
        for one in parameters(explanation)
    ]
    return element(
        "header",
        element("h3", explanation.method),
        element("p", *settings, class_="settings") if settings else Markup(),
        _subject(explanation),
    )


def _subject(explanation: Explanation) -> Markup:
    """What was explained, with its class and its number, each in its own direction of writing."""
    label = explained_label(explanation)
    return element(
        "p",
        element("bdi", "explains ", explanation.explains),
        join(" (", element("bdi", label), ")") if label else Markup(),
        ": ",
        number(explanation.value),
        class_="muted",
    )


def _legend(explanation: Explanation, scale: Scale) -> Markup:
    """The range in colours and numbers, and what they say."""
    low, high = directions(explanation)
    limit = number(scale.limit, signed=explanation.signed)
    ends = [number(-scale.limit, signed=True), "0", limit] if explanation.signed else ["0", limit]
    ticks = [element("span", end) for end in (ends if scale.limit else ["0"])]
    words = [element("span", element("bdi", text)) for text in (low, high)]
    return element(
        "div",
        element("div", class_=f"ramp {'signed' if explanation.signed else 'unsigned'}"),
        element("div", *ticks, class_="ticks"),
        element("div", *words, class_="ends") if scale.limit else Markup(),
        element("p", meaning(explanation, scale), class_="muted"),
        class_="legend",
    )


def _top(explanation: Explanation, scale: Scale) -> Markup:
    rows = [
        element(
            "tr",
            element("td", element("bdi", short(name_of(name), _LONGEST))),
            element(
                "td",
                heat_span(number(score, signed=scale.signed), float(scale.strength(score)), scale),
            ),
        )
        for name, score in explanation.top(_TOP)
    ]
    return element("table", element("caption", "Largest scores"), element("tbody", *rows))


def _aside(explanation: Explanation, scale: Scale) -> Markup:
    """The score on tokens that stand nowhere in the input, each of them on demand."""
    sentence = aside(explanation)
    if not sentence:
        return Markup()
    chips = [
        element(
            "li",
            element("bdi", name_of(name)),
            " ",
            heat_span(number(score, signed=scale.signed), float(scale.strength(score)), scale),
        )
        for name, score in outside(explanation)
    ]
    return element("details", element("summary", sentence), element("ul", *chips, class_="chips"))
