"""What the verbs of studies print."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from pellucid.bench.plan import Plan
    from pellucid.bench.runner import Summary


def print_summary(summary: Summary, out: Path, shard: str | None) -> None:
    """How the run ended; the exit code is 1 where something is missing."""
    from pellucid.bench.shard import WHOLE, Shard
    from pellucid.bench.wording import count, duration

    part = WHOLE if shard is None else Shard.parse(shard)
    folder, states = part.folder(out), summary.states
    typer.echo(f"{count(summary.done, 'unit')} done in {duration(summary.seconds)}")
    if summary.lost:
        typer.echo(f"{count(summary.lost, 'worker')} lost and replaced")
    typer.echo(
        f"in all: {states['done']:,} done, {states['failed']:,} failed, {states['waiting']:,} to do"
    )
    if states["done"]:
        typer.echo(f"report: {folder / 'report.html'}")
    if part.of > 1:
        typer.echo(f"when all parts are done: pellucid bench merge {out}")
    if states["failed"]:
        typer.echo(f"errors: {folder / 'log.jsonl'}; to try again: --attempts 4")
    if summary.stopped:
        typer.echo("stopped; the same command continues")
    if states["failed"] or states["waiting"]:
        raise typer.Exit(1)


def print_estimates(plan: Plan) -> None:
    """The units of a plan, and what they would cost here."""
    from pellucid.bench.check import checked
    from pellucid.bench.probe import estimates, peak_memory
    from pellucid.bench.wording import count, duration
    from pellucid.cli._common import print_table

    study = checked(plan)
    found = estimates(study)
    columns = [*study.about()["columns"], "units", "samples", "forwards", "time"]
    rows = [
        [
            *one.labels,
            f"{one.units:,}",
            f"{one.samples:,}",
            f"{one.forwards:,}",
            duration(one.seconds),
        ]
        for one in found
    ]
    print_table(columns, rows)
    units, forwards = sum(one.units for one in found), sum(one.forwards for one in found)
    seconds, memory = sum(one.seconds for one in found), peak_memory()
    typer.echo(
        f"{count(units, 'unit')}, about {forwards:,} forwards and {duration(seconds)} one after "
        "the other, as a small part of each says"
    )
    if memory is not None:
        typer.echo(f"memory: {memory:.1f} GiB, the most that this worker held meanwhile")


def write(text: str, out: Path | None) -> None:
    """To a file, or to standard output."""
    from pellucid._store import replacing

    if out is None:
        sys.stdout.write(text)
        return
    with replacing(out, overwrite=True) as temporary:
        temporary.write_text(text, encoding="utf-8")
    typer.echo(f"table: {out}")
