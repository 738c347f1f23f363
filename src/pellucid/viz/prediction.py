"""What the model predicts, as small bars, with the explained class marked."""

from __future__ import annotations

from collections.abc import Mapping, Set
from itertools import compress

from pellucid.viz.markup import Markup, element
from pellucid.viz.wording import are_probabilities, name_of, number, percent

_OPEN = 5  # labels that are shown at once


def prediction(found: Mapping[str, float], explained: Set[str]) -> Markup:
    """The most probable labels, the rest of them folded away; a regression's value as a number."""
    if not are_probabilities(found):
        rows = [element("li", element("bdi", k), _digits(number(v), v)) for k, v in found.items()]
        return _titled("Predicted", element("ol", *rows, class_="bars"))
    ordered = sorted(found.items(), key=lambda pair: -pair[1])
    bars = [_bar(label, probability, label in explained) for label, probability in ordered]
    open_ = [i < _OPEN or label in explained for i, (label, _) in enumerate(ordered)]
    rest = [bar for bar, shown in zip(bars, open_, strict=True) if not shown]
    listed = element("ol", *compress(bars, open_), class_="bars")
    if not rest:
        return _titled("Predicted probability", listed)
    more = element(
        "details",
        element("summary", f"{len(rest)} more"),
        element("ol", *rest, class_="bars"),
    )
    return _titled("Predicted probability", listed, more)


def _bar(label: str, probability: float, explained: bool) -> Markup:
    return element(
        "li",
        element("bdi", name_of(label), title=label),
        element("span", element("span", style=f"width:{100 * probability:.2f}%"), class_="track"),
        _digits(percent(probability), probability),
        element("span", "explained", class_="badge") if explained else Markup(),
        class_="explained" if explained else None,
    )


def _digits(text: str, exact: float) -> Markup:
    return element("span", text, class_="number", title=repr(exact))


def _titled(title: str, *content: str) -> Markup:
    return element("div", element("h3", title), *content, class_="prediction")
