"""Heat over text: the text as it was written, with a coloured ground behind each word."""

from __future__ import annotations

from pellucid._results import Explanation, Word
from pellucid._types import Text
from pellucid.viz.colour import Scale
from pellucid.viz.group import Group
from pellucid.viz.markup import Markup, element
from pellucid.viz.shown import Run, runs, tokens
from pellucid.viz.wording import number

_APART = "\u2068\u2069"  # Unicode's isolates: a word written from the right leaves its number alone


def text_heat(explanation: Explanation, scale: Scale) -> Markup:
    """The text by words, and once more by tokens where these are not the same."""
    words = _parts(explanation, explanation.words(), scale, "by-words")
    if _words_are_tokens(explanation):
        return element("div", words, class_="texts")
    return element(
        "div", words, _parts(explanation, tokens(explanation), scale, "by-tokens"), class_="texts"
    )


def text_controls(group: Group, name: str) -> Markup:
    """The choice between words and tokens, where there is one."""
    if all(_words_are_tokens(one) for one in group.explanations):
        return Markup()
    choices = [
        element(
            "label",
            element("input", type="radio", name=f"{name}-unit", class_=f"as-{unit}", checked=on),
            element("span", unit),
        )
        for unit, on in (("words", True), ("tokens", False))
    ]
    return element(
        "div",
        element("fieldset", element("legend", "Show"), *choices, class_="choice"),
        class_="controls",
    )


def heat_span(text: str, strength: float, scale: Scale, title: str | None = None) -> Markup:
    """A piece of text on the colour of its score."""
    hue = "amount" if not scale.signed else "for" if strength >= 0 else "against"
    return element(
        "span", text, class_=f"heat {hue}", style=f"--heat:{abs(strength):.3f}", title=title
    )


def _parts(explanation: Explanation, words: list[Word], scale: Scale, unit: str) -> Markup:
    """Each text of a pair as a paragraph of its own."""
    assert isinstance(explanation.item, Text)
    paragraphs = []
    for part, text in enumerate(explanation.item.parts):
        own = [word for word in words if word.part == part]
        pieces = [_piece(run, scale) for run in runs(text, own)]
        paragraphs.append(element("p", *pieces, dir="auto"))
    return element("div", *paragraphs, class_=f"text {unit}")


def _piece(run: Run, scale: Scale) -> str:
    if not run.words:
        return run.text
    scores = [(word.text, number(word.score, signed=scale.signed)) for word in run.words]
    title = "\n".join(f"{_APART[0]}{text}{_APART[1]}  {score}" for text, score in scores)
    return heat_span(run.text, float(scale.strength(run.score)), scale, title)


def _words_are_tokens(explanation: Explanation) -> bool:
    return [word.span for word in explanation.words()] == [
        word.span for word in tokens(explanation)
    ]
