"""The experiments of SLALOM's paper: known truths, and models trained from scratch on reviews.

    python benchmarks/slalom_tables.py prepare             # Yelp-HAT as JSON, once, from parquet
    python benchmarks/slalom_tables.py run OUT.json        # adds the cells that it does not hold
    python benchmarks/slalom_tables.py run OUT.json --only slalom/ --workers 4 --minutes 5
    python benchmarks/slalom_tables.py run SMOKE.json --size smoke
    python benchmarks/slalom_tables.py table OUT.json      # writes docs/results/slalom.md

Run it from the sources, with PYTHONPATH=src. It reads two files of training/.data (--data): the
reviews of `python training/fetch.py`, and what `prepare` wrote. Models are left in OUT.models.
Cells are short, and many small models leave a GPU idle between kernels, so that several processes
(--workers) share it; what is timed runs alone.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from _data import FOLDER
from _slalom_cells import SIZES, Place, names, run
from _slalom_page import page

PREPARED = Path(__file__).parent.parent / "training" / ".data"
PAGE = Path(__file__).parent.parent / "docs" / "results" / "slalom.md"


def prepare(folder: Path) -> None:
    """Keep text, label and people's marks of every review of Yelp-HAT, in lower case."""
    import pyarrow.parquet as parquet

    rows = parquet.read_table(FOLDER / "data" / "yelp_hat.parquet").to_pylist()
    kept = [(" ".join(row["words"]).lower(), row["label"], row["maps"]) for row in rows]
    same = [one for one, row in zip(kept, rows, strict=True) if _is_spaced(one[0], row["words"])]
    print(f"{len(same)} of {len(rows)} reviews have a mark for every word between spaces")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "yelp_hat.json").write_text(json.dumps(same), encoding="utf-8")


def _is_spaced(text: str, words: list[str]) -> bool:
    return len(text.split()) == len(words)


# ---- running -------------------------------------------------------------------------------------


def fill(out: Path, place: Place, only: str, workers: int, seconds: float) -> int:
    """Run what is missing, and write the file after each cell. How many failed."""
    stored = _stored(out, place)
    end, failed = time.monotonic() + seconds, 0
    for wanted in names(SIZES[place.size]):
        missing = [
            one for one in wanted if one.startswith(only) and not _is_done(stored, one, place)
        ]
        alone = wanted[0].startswith("runtime")
        for name, record in _each(missing, place, 1 if alone else workers, end):
            failed += "error" in record
            stored["cells"][name] = record
            out.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
            told = record.get("error", f"{record['took']:.1f} s")
            print(f"{name}: {told}", flush=True)
    return failed


def _stored(out: Path, place: Place) -> dict[str, Any]:
    stored = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {"cells": {}}
    before = stored.get("size", place.size)
    if before != place.size:
        raise SystemExit(
            f"{out} holds cells of size {before!r}; give another file for {place.size!r}"
        )
    return stored | {
        "size": place.size,
        "settings": asdict(SIZES[place.size]),
        "provenance": _provenance(place.device),
    }


def _is_done(stored: dict[str, Any], name: str, place: Place) -> bool:
    """Whether a cell is stored, and with it the model that it left."""
    kind, *rest = name.split("/")
    there = kind != "models" or Path(place.models, *rest).exists()
    return there and "error" not in stored["cells"].get(name, {"error": "missing"})


def _each(
    wanted: list[str], place: Place, workers: int, end: float
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names and records as they are finished, until the time is over."""
    if workers == 1 or len(wanted) < 2:
        for name in wanted:
            if time.monotonic() < end:
                yield _record(name, place)
        return
    context = multiprocessing.get_context("spawn")
    with _one_thread(), context.Pool(workers) as pool:  # leaving it ends what still runs
        found = pool.imap_unordered(partial(_record, place=place), wanted)
        for _ in wanted:
            try:
                yield found.next(timeout=max(end - time.monotonic(), 0))
            except multiprocessing.TimeoutError:
                return


@contextmanager
def _one_thread() -> Iterator[None]:
    """Processes that are started here have one thread each: together they fill the cores."""
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        yield
    finally:
        os.environ.pop("OMP_NUM_THREADS")
        if before is not None:
            os.environ["OMP_NUM_THREADS"] = before


def _record(name: str, place: Place) -> tuple[str, dict[str, Any]]:
    """A cell with its time; one that fails is a record too, and is tried again the next time."""
    began = time.monotonic()
    try:
        record = run(name, place)
    except Exception as error:  # noqa: BLE001  # the others are to go on
        traceback.print_exc()
        record = {"error": f"{type(error).__name__}: {str(error).splitlines()[0]}"}
    return name, record | {"took": time.monotonic() - began}


def _provenance(device: str) -> dict[str, str]:
    import torch
    import transformers

    name = torch.cuda.get_device_name() if device == "cuda" else "cpu"
    created = datetime.now(UTC).isoformat(timespec="seconds")
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    return {"created": created, "device": name, **versions}


# ---- the command line ----------------------------------------------------------------------------


def main() -> None:
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("prepare", "run", "table"))
    parser.add_argument("out", type=Path, nargs="?", help="the file of records")
    parser.add_argument("--size", choices=SIZES, default="full")
    parser.add_argument("--only", default="", help="cells whose names begin so")
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--workers", type=int, default=12 if device == "cuda" else 2)
    parser.add_argument("--device", default=device)
    parser.add_argument("--data", type=Path, default=PREPARED, help="folder of the reviews")
    asked = parser.parse_args()
    if asked.what == "prepare":
        prepare(asked.data)
        return
    if asked.out is None:
        parser.error(f"{asked.what} needs the file of records, such as OUT.json")
    if asked.what == "table":
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(page(json.loads(asked.out.read_text(encoding="utf-8"))), encoding="utf-8")
        return
    for file, command in {
        "reviews.csv.gz": "python training/fetch.py",
        "yelp_hat.json": "python benchmarks/slalom_tables.py prepare",
    }.items():
        if not (asked.data / file).exists():
            raise SystemExit(f"{asked.data / file} is missing; type: {command}")
    models = asked.out.with_suffix(".models")
    place = Place(asked.size, str(asked.data), str(models), asked.device)
    if fill(asked.out, place, asked.only, asked.workers, 60 * asked.minutes):
        sys.exit("some cells failed; the same command tries them again")


if __name__ == "__main__":
    main()
