"""What is told where a method that samples was given a time, and it was up."""

from __future__ import annotations

from collections.abc import Sequence


def late_notes(done: Sequence[int], asked: int, of: str) -> list[tuple[str, ...]]:
    """A sentence for every input of which not all was done that was asked for."""
    return [(f"the time was up after {count} of {asked} {of}",) * (count < asked) for count in done]
