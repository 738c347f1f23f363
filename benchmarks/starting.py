"""Starting: importing pellucid and asking for help load nothing heavy."""

from __future__ import annotations

import statistics
import subprocess
import sys

from _claims import Claim


def claims() -> list[Claim]:
    return [
        _start("import pellucid", "import pellucid", goal=100.0),
        _start(
            "pellucid --help",
            "import sys; sys.argv = ['pellucid', '--help']; from pellucid.cli import main; main()",
            goal=1000.0,
        ),
    ]


def _start(what: str, program: str, goal: float) -> Claim:
    """Milliseconds that a program takes beyond an empty one, as its own clock sees them."""
    times = [_milliseconds(program) for _ in range(9)]
    low, middle, high = statistics.quantiles(times, n=4)
    return Claim(what, middle, "allowed", goal, "ms", 1.0, (high - low) / goal)


def _milliseconds(program: str) -> float:
    wrapped = (
        "import time; began = time.perf_counter()\n"
        f"try:\n    {program}\nexcept SystemExit:\n    pass\n"
        "import sys; sys.stderr.write(str(1000 * (time.perf_counter() - began)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", wrapped], capture_output=True, text=True, check=True
    )
    return float(done.stderr)
