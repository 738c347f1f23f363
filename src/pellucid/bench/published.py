"""What the papers print: numbers stored with the package, cited by their tables.

A plan names its tables as `published = ["tis: Table 1"]` under [study]: the file, and the table in
it. They are shown after our own numbers, under the same headings, and are never mixed with them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pellucid._errors import ArgumentError, unknown_name

_FOLDER = Path(__file__).parent / "published"
_MISSING = "-"  # in a row: the paper prints no such number


@dataclass(frozen=True)
class Published:
    """One table of a paper."""

    name: str  # "tis: Table 1"
    cite: str  # the key of the paper
    about: str  # which model, which data and how many
    measures: tuple[str, ...]
    rows: Mapping[str, Sequence[float | str]]  # a text is a number with its spread, or "-"

    @property
    def title(self) -> str:
        """What it is, and of what."""
        return f"Published: {self.name} ({self.about})"

    def plain(self) -> dict[str, Any]:
        """As it is kept with the results of a run, in JSON that knows no order of names."""
        return {**asdict(self), "rows": list(self.rows.items())}


def published_names() -> list[str]:
    """All tables that are stored."""
    return list(_tables())


def published_table(name: str) -> Published:
    """One of them."""
    if name not in _tables():
        raise ArgumentError(
            unknown_name("published table", name, _tables(), write="published = [{!r}]")
        )
    return _tables()[name]


@cache
def _tables() -> dict[str, Published]:
    return {one.name: one for path in sorted(_FOLDER.glob("*.toml")) for one in _read(path)}


def _read(path: Path) -> Iterator[Published]:
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    for title, table in document["tables"].items():
        measures = tuple(table["measures"])
        rows = {row: tuple(numbers) for row, numbers in table["rows"].items()}
        yield Published(f"{path.stem}: {title}", document["cite"], table["about"], measures, rows)


def published_in(about: Mapping[str, Any]) -> list[Published]:
    """The tables that were kept with the results of a run."""
    return [
        Published(**{**one, "measures": tuple(one["measures"]), "rows": _rows(one["rows"])})
        for one in about.get("published", [])
    ]


def _rows(pairs: Any) -> dict[str, tuple[float | str, ...]]:
    """The rows in the paper's order."""
    return {name: tuple(numbers) for name, numbers in dict(pairs).items()}


def printed(number: float | str) -> str:
    """A number as the paper prints it."""
    return "–" if number == _MISSING else str(number)
