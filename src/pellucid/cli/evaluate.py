"""`pellucid evaluate`: a small study without a plan."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from pellucid.cli._options import Seed

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA", help="bundled/images, bundled/texts, a folder, a .csv or a .parquet."
    ),
]
Models = Annotated[
    list[str], typer.Option("--model", "-m", help="A model; may be given several times.")
]
Methods = Annotated[
    list[str], typer.Option("--method", help="A method; may be given several times.")
]
Metrics = Annotated[
    list[str], typer.Option("--metric", help="A metric; may be given several times.")
]
Reader = Annotated[
    str | None, typer.Option("--read", help="What reads DATA. Default: by its ending.")
]
Options = Annotated[
    list[str],
    typer.Option("--option", metavar="NAME=VALUE", help="A keyword of the reader: text=review"),
]
TargetOf = Annotated[
    str, typer.Option("--target", help="predicted, label (that of each sample), or a class.")
]
Out = Annotated[
    Path | None, typer.Option("--out", metavar="RUN", help="Keep the study, to be continued.")
]
_READERS = {".csv": "csv", ".parquet": "parquet"}
_BUNDLED = "bundled/"


def evaluate(
    data: Data,
    model: Models,
    method: Methods,
    metric: Metrics,
    read: Reader = None,
    option: Options = [],  # noqa: B006  # typer copies it
    target: TargetOf = "predicted",
    seed: Seed = 0,
    out: Out = None,
) -> None:
    """Measure methods on data: a small study without a plan."""
    from pellucid.bench.plan import as_plan

    document = {
        "study": {"target": target, "seed": seed},
        "models": [{"load": one} for one in model],
        "data": [_read(data, read, option)],
        "methods": [{"method": one} for one in method],
        "metrics": [{"metric": one} for one in metric],
    }
    plan = as_plan(document, "evaluate", json.dumps(document, indent=2))
    if out is not None:
        _print_study(plan, out)
        return
    with tempfile.TemporaryDirectory() as folder:
        _print_study(plan, Path(folder))


def _print_study(plan: Any, folder: Path) -> None:
    """Run it, and print its table; a study that is not whole is no success."""
    from pellucid.bench import run, table_of
    from pellucid.bench.formats import markdown

    summary = run(plan, folder)
    typer.echo(markdown(table_of(folder)), nl=False)
    if summary.states["done"] < sum(summary.states.values()):
        raise typer.Exit(1)


def _read(data: str, reader: str | None, options: Sequence[str]) -> dict[str, Any]:
    """The entry of the data: what is bundled by its kind, files by what reads them."""
    from pellucid import ArgumentError
    from pellucid._errors import explain_error
    from pellucid.cli._inputs import named_value

    given = dict(named_value(one, "text=review", "--option") for one in options)
    if data.startswith(_BUNDLED) and reader is None:
        return {"read": "bundled", "kind": data.removeprefix(_BUNDLED), **given}
    path = Path(data)
    found = reader or ("folder" if path.is_dir() else _READERS.get(path.suffix.lower()))
    if found is None or not path.exists():
        raise ArgumentError(
            explain_error(
                "this data cannot be read",
                got=data if path.exists() else f"{data}, which does not exist",
                expected="a folder of images, a .csv, a .parquet, or --read with what reads it",
                instead="pellucid evaluate bundled/images --model pellucid/digits-vit "
                "--method rollout --metric deletion",
            )
        )
    return {"read": found, "name": path.stem, "path": data, **given}
