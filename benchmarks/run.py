"""Print every claim as a row; store them with their provenance, and write docs/benchmarks.md.

python benchmarks/run.py [NAME ...]     # all, or some of them
"""

from __future__ import annotations

import argparse
import importlib
import json
import platform
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import torch
from _claims import Claim
from table import PAGE, page

NAMES = (
    *("starting", "memory", "recording", "measuring", "evaluating", "perturbation"),
    *("attention_methods", "relevance", "walking", "drift", "removal_engine"),
    *("slalom_fidelity", "slalom_stability", "studies"),
)
RESULTS = Path(__file__).parent / "results"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(NAMES), metavar="NAME")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    for name in options.names:
        found = importlib.import_module(name).claims()
        for claim in found:
            print(row(claim), flush=True)
        store(name, found)
    PAGE.write_text(page(), encoding="utf-8")


def row(claim: Claim) -> str:
    """What, ours, against what, ratio, goal, reached or not, spread."""
    verdict = "reached" if claim.reached else "NOT reached"
    return (
        f"{claim.what}\n    {claim.ours:.4g} {claim.unit} against {claim.other:.4g} {claim.unit} "
        f"({claim.against}): ratio {claim.ratio:.3f} (spread {claim.spread:.3f}), "
        f"goal {claim.goal:.3g}: {verdict}"
    )


def store(name: str, found: list[Claim]) -> None:
    """One JSON file a benchmark, with where and with what it was run."""
    provenance = {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
    }
    rows = [asdict(claim) | {"ratio": claim.ratio, "reached": claim.reached} for claim in found]
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps({"provenance": provenance, "claims": rows}, indent=2)
    (RESULTS / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
