"""`pellucid bench`: studies that can be stopped, continued, shared out and compared."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pellucid.cli._studies import print_estimates, print_summary, write

if TYPE_CHECKING:
    from pellucid.bench.comparing import Compared

bench = typer.Typer(
    name="bench",
    help="Run studies: models x data x methods x metrics, from a plan.",
    no_args_is_help=True,
)

Plan = Annotated[str, typer.Argument(help="A TOML file, or a name from `pellucid bench plans`.")]
Run = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]
Runs = Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of runs or shards.")]
Out = Annotated[
    Path | None, typer.Option("--out", metavar="RUN", help="The folder, new or to be continued.")
]
EngineName = Annotated[str, typer.Option("--engine", help="serial, process or ray.")]
Workers = Annotated[
    int | None, typer.Option("--workers", help="How many at a time. Default: all cores.")
]
Gpus = Annotated[
    float, typer.Option("--gpus", help="The part of a GPU for each worker of the engine 'ray'.")
]
ShardOf = Annotated[
    str | None, typer.Option("--shard", metavar="i/N", help="Only this part, for a job array.")
]
Attempts = Annotated[int, typer.Option("--attempts", help="How often a unit that fails is tried.")]
Dry = Annotated[bool, typer.Option("--dry-run", help="Only say what it is and what it costs.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="What the plan leaves open; may be repeated."),
]
Format = Annotated[str, typer.Option("--format", help="md, csv, html, latex, or parquet.")]
File = Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write it to a file.")]
Show = Annotated[
    str | None, typer.Option("--show", metavar="NAME", help="Print this plan, to start from.")
]


@bench.command()
def run(
    plan: Plan,
    out: Out = None,
    engine: EngineName = "serial",
    workers: Workers = None,
    gpus: Gpus = 0.0,
    shard: ShardOf = None,
    attempts: Attempts = 2,
    dry_run: Dry = False,
    variables: Set = None,
) -> None:
    """Run a plan, or continue it: what is done is not done again."""
    from pellucid import ArgumentError
    from pellucid import bench as studies
    from pellucid._errors import explain_error
    from pellucid.bench.variables import assignments

    wanted = studies.read_plan(plan, assignments(variables or ()))
    if dry_run:
        print_estimates(wanted)
        return
    if out is None:
        raise ArgumentError(
            explain_error(
                "where are the results to be kept?",
                got="no --out",
                expected="a folder, new or of an earlier start",
                instead=f"pellucid bench run {plan} --out RUN",
            )
        )
    summary = studies.run(
        wanted, out, engine=engine, workers=workers, gpus=gpus, shard=shard, attempts=attempts
    )
    print_summary(summary, out, shard)


@bench.command()
def table(run: Run, format: Format = "md", out: File = None) -> None:
    """Print the table of a run, also of one that is not finished."""
    from pellucid import ArgumentError
    from pellucid._errors import explain_error, unknown_name
    from pellucid.bench.formats import FORMATS, write_parquet
    from pellucid.bench.table import table_of

    if format == "parquet":
        if out is None:
            raise ArgumentError(
                explain_error(
                    "a parquet file is not for a terminal",
                    got="--format parquet",
                    expected="--out FILE",
                    instead=f"pellucid bench table {run} --format parquet --out rows.parquet",
                )
            )
        typer.echo(f"{write_parquet(run, out):,} rows, one a sample and metric: {out}")
        return
    if format not in FORMATS:
        known = [*FORMATS, "parquet"]
        raise ArgumentError(unknown_name("format", format, known, write="--format {}"))
    write(FORMATS[format](table_of(run)), out)


@bench.command()
def compare(run_a: Run, run_b: Run) -> None:
    """Compare what two runs have in common, sample by sample."""
    from pellucid import bench as studies
    from pellucid.cli._common import print_table

    found = studies.compare(run_a, run_b)
    for part in dict.fromkeys(one.group[:-1] for one in found):
        typer.echo(f"{' · '.join(part)}: A is {run_a}, B is {run_b}")
        lines = [_line(one) for one in found if one.group[:-1] == part]
        print_table(["", "", "A", "B", "A - B (95 % interval)", "samples"], lines)
    typer.echo("*: the interval leaves 0 out")


@bench.command()
def merge(runs: Runs, out: Out = None) -> None:
    """Put shards or runs of one plan together; with one RUN, its shards are put into it."""
    from pellucid import ArgumentError
    from pellucid import bench as studies
    from pellucid._errors import explain_error
    from pellucid.bench.wording import count

    if out is None and len(runs) > 1:
        raise ArgumentError(
            explain_error(
                "which folder are these runs to be put into?",
                got=f"{len(runs)} runs and no --out",
                expected="a folder, new or of an earlier merge",
                instead=f"pellucid bench merge {' '.join(map(str, runs))} --out MERGED",
            )
        )
    goal = out or runs[0]
    merged = studies.merge(runs, goal)
    typer.echo(f"{count(merged.taken, 'unit')} taken, {merged.known:,} known before")
    if merged.differing:
        typer.echo(f"{merged.differing:,} of them with other numbers: the first ones are kept")
    missing = merged.states["waiting"] + merged.states["elsewhere"]
    typer.echo(
        f"{merged.states['done']:,} done, {merged.states['failed']:,} failed, {missing:,} missing"
    )
    if merged.states["done"]:
        typer.echo(f"report: {studies.write_report(goal)}")


@bench.command()
def plans(show: Show = None) -> None:
    """List the plans that come with the package."""
    from pellucid.bench.plan import plan_names, plan_summary, plan_text
    from pellucid.cli._common import print_table

    if show is not None:
        typer.echo(plan_text(show)[0].rstrip("\n"))
        return
    print_table(["plan", "what it is"], [[name, plan_summary(name)] for name in plan_names()])


def _line(one: Compared) -> list[str]:
    numbers = ["–" if value is None else f"{value:.3f}" for value in (one.first, one.second)]
    apart = one.apart
    if apart is None:
        told = ["–", "fewer than 2"]
    else:
        mark = " *" if apart.is_clear else ""
        range_ = f"({apart.low:+.3f} to {apart.high:+.3f})"
        told = [f"{apart.value:+.3f} {range_}{mark}", f"{apart.samples:,}"]
    return [one.group[-1], one.measure, *numbers, *told]
