"""Studies: models x data x methods x metrics, from a plan to a table, resumable at any moment.

    from pellucid import bench

    bench.run("smoke-digits", "RUN")
    bench.table_of("RUN").cells

`pellucid bench` is the same at the command line.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOME = {
    "Plan": "plan",
    "read_plan": "plan",
    "run": "study",
    "run_task": "runner",
    "table_of": "table",
    "compare": "comparing",
    "merge": "merging",
    "write_report": "report",
}

__all__ = sorted(_HOME)

if TYPE_CHECKING:
    from pellucid.bench.comparing import compare as compare
    from pellucid.bench.merging import merge as merge
    from pellucid.bench.plan import Plan as Plan
    from pellucid.bench.plan import read_plan as read_plan
    from pellucid.bench.report import write_report as write_report
    from pellucid.bench.runner import run_task as run_task
    from pellucid.bench.study import run as run
    from pellucid.bench.table import table_of as table_of


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'pellucid.bench' has no attribute {name!r}")
    return getattr(import_module(f"pellucid.bench.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
