"""All that is wrong with a plan, said at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from textwrap import indent

from pellucid._errors import ArgumentError, PellucidError, explain_error
from pellucid.bench.wording import count


class Problems:
    """Collects designed errors by the place that they are about."""

    def __init__(self, plan: str) -> None:
        self._plan = plan
        self._found: dict[str, None] = {}  # in order, each once

    @contextmanager
    def at(self, place: str) -> Iterator[None]:
        """Keep the designed error of the block, and go on."""
        try:
            yield
        except PellucidError as error:
            self._found[f"{place}: {error}"] = None

    def refuse_any(self) -> None:
        """Raise all of them as one error."""
        if not self._found:
            return
        listed = "\n".join(
            indent(f"- {one}", "    ").replace("    - ", "  - ", 1) for one in self._found
        )
        raise ArgumentError(
            explain_error(
                f"the plan {self._plan} cannot be run as it is",
                got=count(len(self._found), "problem"),
                expected="none",
                instead=f"correct each of them, and look with --dry-run:\n{listed}",
            )
        )
