"""The page of all stored results: `python benchmarks/table.py` writes docs/benchmarks.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
PAGE = _HERE.parent / "docs" / "benchmarks.md"
_HEAD = """# Benchmarks

Ours against something else, side by side in one process, as `make bench` stored it. A ratio below
its goal is good. This page is written by `python benchmarks/table.py` from `benchmarks/results/`.
"""


def page() -> str:
    """All results as one page."""
    files = sorted((_HERE / "results").glob("*.json"))
    return "\n".join([_HEAD, *(_section(file) for file in files)])


def _section(file: Path) -> str:
    stored = json.loads(file.read_text(encoding="utf-8"))
    where = ", ".join(f"{name} {value}" for name, value in stored["provenance"].items())
    head = f"## {file.stem}\n\n{where}\n\n"
    columns = ("what", "ours", "against", "ratio", "goal", "")
    table = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    return head + "\n".join([*table, *(_row(claim) for claim in stored["claims"])]) + "\n"


def _row(claim: dict[str, Any]) -> str:
    unit = f" {claim['unit']}" if claim["unit"] else ""
    spread = f" ± {claim['spread']:.2g}" if claim["spread"] else ""
    cells = (
        claim["what"],
        f"{claim['ours']:.3g}{unit}",
        f"{claim['other']:.3g}{unit} ({claim['against']})",
        f"{claim['ratio']:.3g}{spread}",
        f"{claim['goal']:.3g}",
        "reached" if claim["reached"] else "**not reached**",
    )
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
