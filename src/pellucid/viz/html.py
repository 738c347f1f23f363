"""The page: a heading, then for each input its prediction, its methods side by side, its walks."""

from __future__ import annotations

import base64
import hashlib
import uuid
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from pellucid._results import Explanation
from pellucid._types import Picture, Text
from pellucid.viz import colour
from pellucid.viz.card import card
from pellucid.viz.group import Group, grouped
from pellucid.viz.image import image_controls, picture_uri, thumbnail
from pellucid.viz.markup import Markup, element, join
from pellucid.viz.prediction import prediction
from pellucid.viz.text import text_controls
from pellucid.viz.trajectory import walk_card
from pellucid.viz.walk import Walk
from pellucid.viz.wording import short

_SCREEN = "width=device-width, initial-scale=1"


def document(shown: Sequence[Explanation | Walk], title: str | None) -> str:
    """The page of these results."""
    heading = title or _models(shown)
    content = element("div", _header(shown, heading, "page"), _main(shown, "page"))
    return whole(title or f"{heading}: {_inputs(shown)}", content)


def whole(title: str, content: Markup) -> str:
    """A whole page; its policy lets nothing load, and no script run but our own."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy()),
        element("meta", name="viewport", content=_SCREEN),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        _style(),
    )
    body = element("body", content, _script(), **_root("page"))
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def embedded(shown: Sequence[Explanation | Walk]) -> str:
    """The content with its style and script, under an id that no other one on the page has."""
    name = _fresh_name()
    return _inside(name, _main(shown, name))


def embedded_table(content: Markup) -> str:
    """A part of a page that has nothing to choose, with its style."""
    return _inside(_fresh_name(), content)


def _fresh_name() -> str:
    return f"pellucid-{uuid.uuid4().hex[:12]}"


def _inside(name: str, content: Markup) -> Markup:
    return join(_style(), element("div", content, **_root(name)), _script())


# ---- the parts of a page -------------------------------------------------------------------------


def _header(shown: Sequence[Explanation | Walk], heading: str, root: str) -> Markup:
    """The heading, what is on the page, and the choice between light and dark."""
    counts = f"{_contents(shown)} of {_count(len(grouped(shown)), 'input')}"
    made = f"pellucid {shown[0].provenance.versions.get('pellucid', '')}".strip()
    themes = [
        element(
            "label",
            element(
                "input", type="radio", name=f"{root}-theme", class_=f"theme-{theme}", checked=on
            ),
            element("span", theme),
        )
        for theme, on in (("auto", True), ("light", False), ("dark", False))
    ]
    return element(
        "header",
        element("div", element("h1", element("bdi", heading)), element("p", f"{counts} · {made}")),
        element("fieldset", element("legend", "Theme"), *themes, class_="choice"),
        class_="page-head",
    )


def _main(shown: Sequence[Explanation | Walk], root: str) -> Markup:
    groups = grouped(shown)
    return element("main", *(_input(group, f"{root}-{i}") for i, group in enumerate(groups)))


def _input(group: Group, name: str) -> Markup:
    """One input of one model: what it is, what the model predicts, and a card for each method."""
    item, source = group.item, group.provenance
    weights = element(
        "code", source.weights[:12], title=f"SHA-256 of all weights: {source.weights}"
    )
    head = element(
        "div",
        thumbnail(item) if isinstance(item, Picture) else Markup(),
        element(
            "div",
            element("h2", element("bdi", _title(item))),
            element("p", element("bdi", source.model), " · weights ", weights, class_="muted"),
        ),
        prediction(group.prediction, group.labels),
        class_="input-head",
    )
    walks = [walk_card(walk) for walk in group.walks]
    view = f"--view:url({picture_uri(item)})" if isinstance(item, Picture) else None
    return element("section", head, _methods(group, name), *walks, class_="input", style=view)


def _methods(group: Group, name: str) -> Markup:
    """The explanations of an input, and what chooses how all of them are shown."""
    if not group.explanations:
        return Markup()
    picture = isinstance(group.item, Picture)
    controls = image_controls(group, name) if picture else text_controls(group, name)
    cards = element("div", *(card(one, group) for one in group.explanations), class_="cards")
    return join(controls, cards)


def _models(shown: Sequence[Explanation | Walk]) -> str:
    names = list(dict.fromkeys(one.provenance.model for one in shown))
    return names[0] if len(names) == 1 else f"{len(names)} models"


def _inputs(shown: Sequence[Explanation | Walk]) -> str:
    groups = grouped(shown)
    return _title(groups[0].item) if len(groups) == 1 else _count(len(groups), "input")


def _title(item: Text | Picture) -> str:
    if isinstance(item, Picture):
        height, width = item.view.shape[:2]
        return f"image, {width} × {height}"
    return " / ".join(f"“{short(part, 72 // len(item.parts))}”" for part in item.parts)


def _contents(shown: Sequence[Explanation | Walk]) -> str:
    walks = sum(isinstance(one, Walk) for one in shown)
    kinds = {"explanation": len(shown) - walks, "trajectory": walks}
    return " and ".join(_count(number, what) for what, number in kinds.items() if number)


def _count(number: int, what: str) -> str:
    if number != 1:
        what = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"{number} {what}"


# ---- style and script ----------------------------------------------------------------------------


def _root(name: str) -> dict[str, str]:
    """The attributes of the element that all style is under; the colours are those of Python."""
    named = {"for": colour.FOR, "against": colour.AGAINST, "amount": colour.AMOUNT}
    style = ";".join(f"--{key}:{' '.join(map(str, rgb))}" for key, rgb in named.items())
    return {"id": name, "class_": "pellucid", "style": style}


def _style() -> Markup:
    return element("style", Markup(_asset("page.css")))


def _script() -> Markup:
    return element("script", Markup(_asset("page.js")))


def _policy() -> str:
    digest = base64.b64encode(hashlib.sha256(_asset("page.js").encode()).digest()).decode()
    return (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


@cache
def _asset(name: str) -> str:
    return files("pellucid.viz").joinpath(name).read_text(encoding="utf-8")
