"""What of the code decides numbers: a digest of it, so that changed code has changed keys."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import version
from pathlib import Path

import pellucid

_ELSEWHERE = ("bench", "cli", "testing", "viz")  # which show and arrange numbers, and make none
_TASKS = ("bench", "tasks")  # which makes them


@cache
def code_version() -> dict[str, str]:
    """The versions of the libraries that compute, and a digest of our own source."""
    root = Path(pellucid.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root)
        if name.parts[0] not in _ELSEWHERE or name.parts[:2] == _TASKS:
            digest.update(f"{name.as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return {
        "pellucid": f"{pellucid.__version__} ({digest.hexdigest()[:12]})",
        "torch": version("torch"),
        "transformers": version("transformers"),
    }
