"""A plan run from its file to its page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pellucid._arguments import integer, real
from pellucid.bench.engines import engine_named
from pellucid.bench.plan import Plan, read_plan
from pellucid.bench.runner import Summary, run_task
from pellucid.bench.shard import WHOLE, Shard


def run(
    plan: str | Path | Plan,
    out: str | Path,
    *,
    engine: str = "serial",
    workers: int | None = None,
    gpus: float = 0.0,
    shard: str | None = None,
    attempts: int = 2,
    progress: bool | None = None,
    variables: Mapping[str, Any] | None = None,
) -> Summary:
    """Run a plan into a folder, or continue there; what is done is never done again.

    Main arguments: `plan` is the path of a TOML file, or a name that `pellucid bench plans` lists;
    `out` is the folder for its results.

    Other arguments: `engine` is "serial", "process" or "ray", with so many `workers`, of which
    each takes a part `gpus` of a GPU of a Ray cluster; `shard`, as
    "3/8", does the third of eight parts, in a folder of its own below `out`; a unit that fails is
    tried `attempts` times in all; `progress` shows a bar (None: on a terminal);
    `variables` are values for what a plan leaves open.
    """
    from pellucid.bench.check import checked
    from pellucid.bench.report import write_report

    part = WHOLE if shard is None else Shard.parse(shard)
    several = None if workers is None else integer("workers", workers, 1)
    chosen = engine_named(engine, several, real("gpus", gpus))
    attempts = integer("attempts", attempts, 1, 2)
    study = checked(plan if isinstance(plan, Plan) else read_plan(plan, variables))
    summary = run_task(
        study, Path(out), engine=chosen, shard=part, attempts=attempts, progress=progress
    )
    if summary.states["done"]:
        write_report(part.folder(Path(out)))
    return summary
