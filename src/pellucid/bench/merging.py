"""Parts of one study put together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from pellucid._errors import StoreError, explain_error
from pellucid.bench.database import NAME
from pellucid.bench.store import Store
from pellucid.bench.units import canonical


@dataclass(frozen=True)
class Merged:
    """What a merge found."""

    taken: int  # units that were new
    known: int  # units that were there already
    differing: int  # of those, the ones whose numbers are others; the first ones are kept
    states: dict[str, int]


def merge(runs: Sequence[str | Path], out: str | Path) -> Merged:
    """Write what runs or shards of one plan have found into one folder; again changes nothing.

    Every unit is checked as it is read, and its arrays come with it.
    """
    out = Path(out)
    parts_of = [part for run in runs for part in _parts(Path(run))]
    folders = [part for part in parts_of if part.resolve() != out.resolve()]
    if not folders:
        raise StoreError(
            explain_error(
                "there is nothing to merge",
                got=", ".join(map(str, runs)),
                expected="several runs, or a run's folder with the folders of its shards",
                instead="pellucid bench merge RUN_1 RUN_2 --out RUN",
            )
        )
    with ExitStack() as opened:
        parts = [opened.enter_context(Store.reading(folder)) for folder in folders]
        store = opened.enter_context(Store.writing(out))
        _check_same([*parts, *([store] if store.about() else [])])
        store.prepare_like(parts)
        taken = known = differing = 0
        for part in parts:
            for record in (*part.records("done"), *part.records("failed")):
                new = store.adopt(record, part.maps(record))
                taken, known = taken + new, known + (not new)
                differing += record.state == "done" and record.seal != store.seal_of(record.key)
        return Merged(taken, known, differing, store.counts())


def _parts(run: Path) -> Iterator[Path]:
    """The folders of a run: its shards, and itself where it holds results."""
    shards = sorted(path.parent for path in run.glob(f"shard-*-of-*/{NAME}"))
    if (run / NAME).is_file() or not shards:
        yield run
    yield from shards


def _check_same(stores: Sequence[Store]) -> None:
    first = stores[0].about()
    for store in stores[1:]:
        found = store.about()
        if canonical(found) != canonical(first):
            names = sorted(name for name in found | first if found.get(name) != first.get(name))
            raise StoreError(
                explain_error(
                    "these are runs of different plans",
                    got=f"{store.folder}, which differs from the first in {', '.join(names)}",
                    expected="parts of one study, run by the same code",
                    instead="pellucid bench compare RUN_A RUN_B",
                )
            )
