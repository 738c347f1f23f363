"""A page for every method, and one that lists them: from declarations, docstrings and a run."""

from __future__ import annotations

from collections.abc import Callable

from prose import body_of, cell, defaults_of, module_of, presets_of, prose, source_of, sources
from tried import IMAGE, SENTENCE, TEXT, Shown

from pellucid._needs import MEANING, flags
from pellucid._spec import Method
from pellucid.methods import METHODS

Try = Callable[[Method], list[Shown]]


def pages(run: Try) -> dict[str, str | bytes]:
    """All pages and pictures by their paths; `run` tries a method."""
    made: dict[str, str | bytes] = {}
    tried = {name: run(spec) for name, spec in METHODS.items()}
    made["methods/index.md"] = index(tried)
    for name, spec in METHODS.items():
        made[f"methods/{name}.md"] = page(spec, tried[name])
        pictures = [one.picture for one in tried[name] if one.picture]
        made |= {f"methods/{name}.png": picture for picture in pictures}
    return made


def index(tried: dict[str, list[Shown]]) -> str:
    """The list of all methods, with what each asks for and costs."""
    rows = [
        f"| [`{name}`]({name}.md) | {cell(spec.summary)} "
        f"| {'signed' if spec.signed else 'unsigned'} "
        f"| {_passes(tried[name], IMAGE)} | {_passes(tried[name], TEXT)} |"
        for name, spec in METHODS.items()
    ]
    head = ["| method | what it does | scores | image | text |", "|---|---|---|---|---|"]
    return "\n".join(
        [
            "# Methods",
            "",
            "One file each. A *signed* score says in which direction a token speaks, an unsigned "
            "one only how much. The last columns are forwards + backwards of one image and of one "
            "text through a bundled model, counted while this page was made. "
            "[Which one?](../choosing.md) compares them.",
            "",
            *head,
            *rows,
            "",
        ]
    )


def page(spec: Method, tried: list[Shown]) -> str:
    """The page of one method."""
    title, body, misleads = module_of(spec.function)
    needs = [f"- {MEANING[flag]}" for flag in flags(spec.needs)] or ["- predictions, nothing else"]
    explains = f"the {spec.explains.replace('_', '-')} of the predicted class"
    settings = defaults_of(spec.function, 1)
    parts = [
        f"# {spec.name}",
        f"{prose(spec.summary)}",
        *(_example(spec, one) for one in tried),
        "## What it is",
        prose(f"{title}\n\n{body}".strip()),
        source_of(spec.function, "The method, as it runs"),
        "## Parameters",
        prose(body_of(spec.function)) or "It has none.",
        f"```python\n{spec.name}({settings})\n```" if settings else "",
        presets_of(spec.presets),
        "## What it needs and gives",
        "It asks a model for",
        "\n".join(needs),
        f"It explains {explains} unless `target=` says otherwise. Its scores are "
        f"{'signed' if spec.signed else 'unsigned'} and "
        f"{'those of one class' if spec.class_specific else 'the same for every class'}.",
        "## What it costs",
        _costs(tried),
        "## When it misleads",
        prose(misleads),
        "## Source",
        sources(spec.cite),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _example(spec: Method, one: Shown) -> str:
    if one.colours:
        return one.colours  # which end with its notes
    notes = "".join(f"\n\n> {prose(note)}" for note in one.notes)
    return f"![{spec.name} on a handwritten 8]({spec.name}.png){{ .map }}{notes}"


def _costs(tried: list[Shown]) -> str:
    rows = [f"| `{one.model}` | {one.forwards} | {one.backwards} |" for one in tried]
    what = f'One input, the defaults: a handwritten 8, and "{SENTENCE}"'
    return "\n".join([what, "", "| model | forwards | backwards |", "|---|---|---|", *rows])


def _passes(tried: list[Shown], model: str) -> str:
    counts = [f"{one.forwards}&nbsp;+&nbsp;{one.backwards}" for one in tried if one.model == model]
    return counts[0] if counts else ""
