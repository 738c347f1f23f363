"""A part of a study, for a scheduler that starts many jobs: `--shard 3/8`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pellucid._errors import ArgumentError, explain_error


@dataclass(frozen=True)
class Shard:
    """The `number`-th of `of` parts, counted from 1."""

    number: int = 1
    of: int = 1

    @classmethod
    def parse(cls, written: str) -> Shard:
        """Read `i/N`."""
        number, slash, of = written.partition("/")
        if slash and number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of):
            return cls(int(number), int(of))
        raise ArgumentError(
            explain_error(
                "this is not a part of a study",
                got=f"--shard {written}",
                expected="i/N with i from 1 to N",
                instead="--shard 1/8",
            )
        )

    def holds(self, position: int) -> bool:
        """Every N-th unit: slow methods and large models are spread over all parts."""
        return position % self.of == self.number - 1

    def folder(self, run: Path) -> Path:
        """Where the part is written: the run's own folder if it is the whole."""
        return run if self.of == 1 else run / f"shard-{self.number}-of-{self.of}"


WHOLE = Shard()
