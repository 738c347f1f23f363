"""`pellucid explore`: inputs and a model in, walks on the terminal, as a page, as files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pellucid.cli._files import write_json
from pellucid.cli._inputs import check_kinds, class_of, gathered, named_value
from pellucid.cli._options import (
    Device,
    Force,
    Inputs,
    Json,
    Model,
    Pair,
    Seed,
    TextFile,
    Trust,
)
from pellucid.cli._tokens import HELP, parse_tokens
from pellucid.cli._walked import Decoding, Outputs, names_of, print_decoded, print_walks

if TYPE_CHECKING:
    from pellucid.adapters.base import Adapter

Goal = Annotated[
    str, typer.Option("--goal", help="stay (in the class), leave (it), or the class to walk to.")
]
Steps = Annotated[int, typer.Option("--steps", help="The most steps.")]
Tokens = Annotated[str | None, typer.Option("--tokens", help=HELP)]
Space = Annotated[
    str, typer.Option("--space", help="embedding, word (texts), pixels (images) or hidden:1 ...")
]
Preset = Annotated[
    str | None, typer.Option("--preset", help="The authors' own: paper, published or released.")
]
Distance = Annotated[
    float | None, typer.Option("--distance", help="End a walk that far from its start.")
]
Within = Annotated[
    str | None, typer.Option("--within", help="bounds: only what embeddings can be; or layernorm.")
]
SaveEvery = Annotated[int, typer.Option("--save-every", help="Keep a point every so many steps.")]
Repeats = Annotated[int, typer.Option("--repeats", help="Walks from each input.")]
Rules = Annotated[
    list[str], typer.Option("--set", metavar="NAME=VALUE", help="A rule of the walk.")
]
Using = Annotated[
    str | None, typer.Option("--using", help="Decode by inverse (images), nearest, mlm or head.")
]
Mlm = Annotated[
    str | None, typer.Option("--mlm", metavar="MODEL", help="The masked language model for it.")
]
Kept = Annotated[
    Path | None, typer.Option("--checkpoint", help="A file that a killed walk continues from.")
]
Long = Annotated[str, typer.Option("--long", help="Texts that do not fit: refuse or truncate.")]
Out = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR|PAGE.html", help="Write a page, or it and the walks."),
]


def explore(
    model: Model,
    inputs: Inputs = None,
    goal: Goal = "stay",
    steps: Steps = 1000,
    tokens: Tokens = None,
    space: Space = "embedding",
    preset: Preset = None,
    distance: Distance = None,
    within: Within = None,
    save_every: SaveEvery = 10,
    repeats: Repeats = 1,
    pair: Pair = None,
    file: TextFile = None,
    seed: Seed = 0,
    set_: Rules = [],  # noqa: B006  # typer copies it
    using: Using = None,
    mlm: Mlm = None,
    checkpoint: Kept = None,
    out: Out = None,
    json_: Json = None,
    long: Long = "refuse",
    device: Device = None,
    trust_remote_code: Trust = False,
    force: Force = False,
) -> None:
    """Walk from texts or images to what the model cannot tell from them, or to another class."""
    from pellucid.cli._common import load_model

    raw = gathered("explore", inputs or [], pair, file)
    rules = _rules(preset, within, set_) | {"distance": distance, "space": space, "long": long}
    rules |= {"steps": steps, "save_every": save_every, "repeats": repeats, "seed": seed}
    rules |= {"tokens": parse_tokens(tokens), "checkpoint": checkpoint}
    outputs = Outputs.at(out, json_, len(raw) * max(repeats, 1), force)
    options = {"device": device, "trust_remote_code": trust_remote_code}
    adapter = load_model(model, **options)
    check_kinds("explore", raw, adapter)
    decoding = Decoding.by(adapter, using, mlm, **options)
    _walk(adapter, raw, _goal(adapter, goal), rules, outputs, decoding, json_)


def _walk(
    adapter: Adapter,
    raw: Sequence[Any],
    goal: str | int,
    rules: dict[str, Any],
    outputs: Outputs,
    decoding: Decoding,
    json_: Path | None,
) -> None:
    """Walk, then keep what was found before anything is made of it."""
    from pellucid import explore as walk

    found = walk(adapter, list(raw), goal=goal, **rules)
    if json_ is not None:
        write_json(found, json_, outputs.force)
    names = names_of(raw, rules["repeats"])
    if not outputs.quiet:
        print_walks(found, names)
    outputs.save(found)
    if outputs.page is not None or decoding.options:
        decoded = [decoding.of(one) for one in found]
        if not outputs.quiet:
            print_decoded(decoded, names)
        pairs = zip(found, decoded, strict=True)
        outputs.write([one if seen is None else (one, seen) for one, seen in pairs])


def _goal(adapter: Adapter, goal: str) -> str | int:
    """A word for a walk, or a class of this model."""
    from pellucid import ArgumentError
    from pellucid._errors import unknown_name

    found = goal if goal in ("stay", "leave") else class_of(adapter, goal)
    if isinstance(found, str) and found not in ("stay", "leave", *adapter.labels):
        names = ["stay", "leave", *adapter.labels]
        raise ArgumentError(unknown_name("goal", goal, names, write="--goal {!r}"))
    return found if found is not None else "stay"


def _rules(preset: str | None, within: str | None, given: Sequence[str]) -> dict[str, Any]:
    """The rules of a walk, by names that exist."""
    from dataclasses import fields

    from pellucid import ArgumentError
    from pellucid._errors import unknown_name
    from pellucid.explorer.settings import PRESETS, Settings

    if preset is not None and preset not in PRESETS:
        raise ArgumentError(unknown_name("preset", preset, PRESETS, write="--preset {}"))
    known = {field.name for field in fields(Settings)} - {"within"}  # which has its own option
    found = dict(named_value(setting, "persistence=0.9") for setting in given)
    for name in found:
        if name not in known:
            raise ArgumentError(unknown_name("rule of a walk:", name, known, write="--set {}=..."))
    return found | {"preset": preset, "within": within}
