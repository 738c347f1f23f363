"""The arguments and options that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Inputs = Annotated[
    list[str] | None,
    typer.Argument(metavar="INPUT...", help="Texts, or paths of images.", show_default=False),
]
Model = Annotated[
    str,
    typer.Option("--model", "-m", help="A folder, a hub name, or pellucid/<name>."),
]
Pair = Annotated[str | None, typer.Option("--pair", help="The second text of a pair.")]
TextFile = Annotated[
    Path | None, typer.Option("--file", help="A file with one text a line, besides the inputs.")
]
Seed = Annotated[int, typer.Option("--seed", help="Decides all randomness.")]
Json = Annotated[
    Path | None, typer.Option("--json", help="Write the numbers as JSON ('-': to standard output).")
]
Device = Annotated[str | None, typer.Option("--device", help="Where the model runs, as 'cuda'.")]
Trust = Annotated[
    bool, typer.Option("--trust-remote-code", help="Run code that comes with the model.")
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing files.")]
