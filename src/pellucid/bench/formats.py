"""A study's table in the formats that papers, sheets and programs read."""

from __future__ import annotations

import csv
import io
import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pellucid._errors import ArgumentError, explain_error
from pellucid._store import replacing
from pellucid.bench.intervals import DRAWS
from pellucid.bench.published import printed, published_in
from pellucid.bench.store import Store
from pellucid.bench.table import Cell, Group, StudyTable
from pellucid.bench.wording import count
from pellucid.viz.wording import number

LEGEND = (
    "Mean (or pooled number) and its 95 % interval (percentile bootstrap over samples, "
    f"{DRAWS} draws). Bold: the best, and what is not distinguishable from it (the interval of the "
    "difference on the same samples contains 0)."
)
_SHOWN = 12  # digits of a hash
_ARROWS = {"higher": " ↑", "lower": " ↓", None: ""}


def markdown(table: StudyTable) -> str:
    """One table for each model and data set."""
    lines: list[str] = []
    for part, groups in table.parts().items():
        heads = [table.columns[-1], *(_head(table, groups, m) for m in table.measures(groups))]
        lines += [f"### {' · '.join(part)}", "", _piped(heads), _piped(["---"] * len(heads))]
        lines += [_piped([group[-1], *_texts(table, groups, group, "**")]) for group in groups]
        lines.append("")
    lines += [LEGEND, *caveats(table)]
    for one in published_in(table.about):
        lines += ["", f"### {one.title}", "", _piped([table.columns[-1], *one.measures])]
        lines.append(_piped(["---"] * (1 + len(one.measures))))
        lines += [_piped([row, *map(printed, numbers)]) for row, numbers in one.rows.items()]
    return "\n".join([*lines, "", *provenance(table)]) + "\n"


def provenance(table: StudyTable) -> list[str]:
    """Where the numbers come from, in lines: weights, data, seed and versions, without paths."""
    about = table.about
    found = [
        f"- model {name}: weights {one['weights'][:_SHOWN]}, {one['dtype']}"
        for name, one in about.get("models", {}).items()
    ]
    found += [
        f"- data {name}: {one['read']}, {count(one['samples'], 'sample')}, "
        f"fingerprint {one['fingerprint'][:_SHOWN]}"
        for name, one in about.get("data", {}).items()
    ]
    settings = about.get("settings", {})
    repeated = settings.get("repetitions", 1)
    said = f", {repeated} repetitions" if repeated > 1 else ""
    versions = ", ".join(f"{name} {one}" for name, one in about.get("versions", {}).items())
    return [*found, f"- plan {about.get('name')}, seed {settings.get('seed')}{said}; {versions}"]


def latex(table: StudyTable) -> str:
    """One tabular for each model and data set, with booktabs."""
    lines: list[str] = [f"% {one}" for one in (LEGEND, *caveats(table))]
    arrows = {"higher": r" $\uparrow$", "lower": r" $\downarrow$", None: ""}
    for part, groups in table.parts().items():
        measures = table.measures(groups)
        heads = [f"{_tex(m)}{arrows[_better(table, groups, m)]}" for m in measures]
        lines += [f"% {' / '.join(part)}", rf"\begin{{tabular}}{{l{'r' * len(measures)}}}"]
        lines += [r"\toprule", " & ".join([table.columns[-1], *heads]) + r" \\", r"\midrule"]
        for group in groups:
            cells = [table.by_place.get((group, measure)) for measure in measures]
            lines.append(" & ".join([_tex(group[-1]), *map(_tex_cell, cells)]) + r" \\")
        lines += [r"\bottomrule", r"\end{tabular}"]
    return "\n".join(lines) + "\n"


def comma_separated(table: StudyTable) -> str:
    """One line a number, with everything that belongs to it."""
    text = io.StringIO()
    records = list(flat(table))
    writer = csv.DictWriter(text, list(records[0]) if records else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue()


def html(table: StudyTable) -> str:
    """The page of the tables, without curves and pictures."""
    from pellucid.bench.report import page

    return page(table)


FORMATS: dict[str, Callable[[StudyTable], str]] = {
    "md": markdown,
    "csv": comma_separated,
    "html": html,
    "latex": latex,
}


def flat(table: StudyTable) -> Iterator[dict[str, Any]]:
    """Every number as a record."""
    for cell in table.cells:
        low, high = cell.interval or (None, None)
        yield {
            **dict(zip(table.columns, cell.group, strict=True)),
            "measure": cell.measure,
            "better": cell.better,
            "value": cell.value,
            "low": low,
            "high": high,
            "samples": cell.samples,
            "skipped": sum(cell.skipped.values()),
            "reasons": "; ".join(f"{n} {why}" for why, n in cell.skipped.items()),
            "best": cell.first,
            "level_with_best": cell.best,
        }


def caveats(table: StudyTable) -> list[str]:
    """What is missing from the numbers, in sentences."""
    waiting, failed = table.states["waiting"], table.states["failed"]
    found = [f"Not finished: {count(waiting, 'unit')} still to do."] if waiting else []
    if table.states["elsewhere"]:
        found.append(f"{count(table.states['elsewhere'], 'unit')} are in other shards.")
    if failed:
        errors = "; ".join(f"{n} x {why.splitlines()[0]}" for why, n in table.errors.items())
        found.append(f"{count(failed, 'unit')} failed and not in the numbers: {errors}.")
    return found + _skipped(table)


def _skipped(table: StudyTable) -> list[str]:
    """Why samples are missing, said once for all methods that miss as many for one reason."""
    methods: dict[tuple[str, str, str, int], list[str]] = defaultdict(list)
    for cell in table.cells:
        for why, times in cell.skipped.items():
            methods[" · ".join(cell.group[:-1]), cell.measure, why, times].append(cell.group[-1])
    return [
        f"{part}, {measure}: {count(times, 'sample')} skipped by {', '.join(names)}: {why}."
        for (part, measure, why, times), names in methods.items()
    ]


def write_parquet(folder: Path, path: Path) -> int:
    """Write one line for every sample and measure of a run; how many."""
    try:
        import pyarrow  # type: ignore[import-not-found,import-untyped,unused-ignore]
        from pyarrow import parquet
    except ImportError:
        raise ArgumentError(
            explain_error(
                "parquet files need pyarrow",
                got="no module named 'pyarrow'",
                expected="the extra 'data'",
                instead="pip install 'pellucid[data]', or --format csv",
            )
        ) from None
    with Store.reading(folder) as store:
        columns = store.about()["columns"]
        text, real = pyarrow.string(), pyarrow.float64()
        named = [(column, text) for column in (*columns, "sample", "measure")]
        schema = pyarrow.schema([*named, ("value", real), ("skipped", text), ("detail", text)])
        written = 0
        with (
            replacing(path, overwrite=True) as partial,
            parquet.ParquetWriter(partial, schema) as writer,
        ):
            for record in store.records():
                lines = [
                    {column: record.labels[column] for column in columns}
                    | {"sample": row.sample, "measure": row.measure, "value": row.value}
                    | {"skipped": row.skipped, "detail": json.dumps(dict(row.detail))}
                    for row in record.rows
                ]
                writer.write_table(pyarrow.Table.from_pylist(lines, schema))
                written += len(lines)
    return written


# ---- cells ---------------------------------------------------------------------------------------


def shown(cell: Cell | None) -> str:
    """A number with its interval."""
    if cell is None or cell.value is None:
        return "–"
    if cell.interval is None:
        return number(cell.value)
    low, high = cell.interval
    return f"{cell.value:.3f} [{low:.3f}, {high:.3f}]"


def _texts(table: StudyTable, groups: list[Group], group: Group, bold: str) -> Iterator[str]:
    for measure in table.measures(groups):
        cell = table.by_place.get((group, measure))
        mark = bold if cell is not None and cell.best else ""
        yield f"{mark}{shown(cell)}{mark}"


def _better(table: StudyTable, groups: list[Group], measure: str) -> str | None:
    return next(c.better for c in table.cells if c.measure == measure and c.group in groups)


def _head(table: StudyTable, groups: list[Group], measure: str) -> str:
    return f"{measure}{_ARROWS[_better(table, groups, measure)]}"


def _piped(cells: list[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _tex(text: str) -> str:
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    special |= {one: "\\" + one for one in "&%$#_{}"}
    return "".join(special.get(one, one) for one in text)


def _tex_cell(cell: Cell | None) -> str:
    if cell is None or cell.value is None:
        return "--"
    value = rf"\mathbf{{{cell.value:.3f}}}" if cell.best else f"{cell.value:.3f}"
    if cell.interval is None:
        return f"${value}$"
    low, high = cell.interval
    return rf"${value}$ {{\scriptsize [{low:.3f}, {high:.3f}]}}"
