"""`pellucid --version`."""

from __future__ import annotations

from typing import Annotated

import typer


def _print_version(wanted: bool) -> None:
    if wanted:
        from pellucid import __version__

        typer.echo(f"pellucid {__version__}")
        raise typer.Exit


Version = Annotated[
    bool,
    typer.Option(
        "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
    ),
]


def version(version: Version = False) -> None:
    """See what a Transformer sees: explain predictions of text and image models."""
