"""The command line: one file a verb, each of which parses, calls the public API and prints."""

from __future__ import annotations

import sys

import typer

from pellucid.cli.bench import bench
from pellucid.cli.demo import demo
from pellucid.cli.evaluate import evaluate
from pellucid.cli.explain import explain
from pellucid.cli.explore import explore
from pellucid.cli.lists import methods, metrics, models

app = typer.Typer(
    name="pellucid",
    help="See what a Transformer sees: explain predictions of text and image models.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (explain, explore, evaluate, methods, metrics, models, demo):
    app.command()(command)
app.add_typer(bench)


def main() -> None:
    """Run the command; an error that pellucid raises on purpose is printed, not traced."""
    from pellucid._errors import PellucidError

    try:
        app()
    except PellucidError as error:
        from pellucid.viz.markup import visible

        lines = [visible(line) for line in str(error).splitlines()]
        sys.stderr.write("\n".join(["Error: " + lines[0], *lines[1:], ""]))
        sys.exit(2)
