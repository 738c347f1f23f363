"""What is seen of a long run: a bar with an honest remaining time, and a log in JSON lines."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from pellucid.bench.units import Outcome, canonical
from pellucid.bench.wording import duration

_OFTEN = 0.5  # seconds between two looks at the bar


class Watch:
    """Counts what happens, and tells it."""

    def __init__(self, log: TextIO, waiting: Mapping[str, int], bar: Any = None) -> None:
        self.done = self.failed = self.lost = 0
        self._log = log
        self._waiting = Counter(waiting)
        self._bar = bar
        self._began = self._shown = time.monotonic()
        self._seconds: dict[str, float] = defaultdict(float)  # of work, by labels
        self._times: Counter[str] = Counter()  # how often, by labels

    def saw(self, outcome: Outcome) -> None:
        """Count an outcome, log it, and move the bar."""
        labels = canonical(outcome.unit.labels)
        event = {"unit": outcome.unit.key, **outcome.unit.labels}
        if outcome.lost:
            self.lost += 1
            self.tell("lost", **event, why=outcome.lost)
            return
        self._seconds[labels] += outcome.seconds
        self._times[labels] += 1
        seconds = round(outcome.seconds, 6)
        if outcome.result is None:
            self.failed += 1
            self.tell("failed", **event, seconds=seconds, why=outcome.error, trace=outcome.trace)
        else:
            self.done += 1
            self._waiting[labels] -= 1
            self.tell("done", **event, seconds=seconds)
        self._show(outcome.result is not None)

    def tell(self, what: str, **facts: Any) -> None:
        """One line of the log."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._log.write(json.dumps({"time": now, "event": what, **facts}) + "\n")

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._began

    def remaining(self) -> float | None:
        """Seconds to go: what the units that wait cost, by what such units have cost so far.

        A method that takes ten times as long as the others is counted as such once one of its units
        is done; until then it counts as the mean. Workers are as many as they have shown to be.
        """
        work = sum(self._seconds.values())
        if not work:
            return None
        mean = work / self._times.total()
        waiting = sum(
            count * (self._seconds[labels] / self._times[labels] if self._times[labels] else mean)
            for labels, count in self._waiting.items()
            if count > 0
        )
        return waiting * self.elapsed / work

    def _show(self, moved: bool) -> None:
        if self._bar is None:
            return
        now = time.monotonic()
        if now - self._shown > _OFTEN:
            self._shown = now
            left = self.remaining()
            told = [] if left is None else [f"about {duration(left)} left"]
            told += [f"{self.failed} failed"] if self.failed else []
            self._bar.set_postfix_str(", ".join(told), refresh=False)
        self._bar.update(int(moved))


@contextmanager
def watching(folder: Path, waiting: Mapping[str, int], progress: bool | None) -> Iterator[Watch]:
    """A watch that writes to the folder's log; its bar is shown on terminals unless told."""
    shown = sys.stderr.isatty() if progress is None else progress
    with (folder / "log.jsonl").open("a", encoding="utf-8", buffering=1) as log:
        if not shown:
            yield Watch(log, waiting)
            return
        from tqdm import tqdm

        with tqdm(total=sum(waiting.values()), unit="unit", bar_format=_BAR) as bar:
            yield Watch(log, waiting, bar)


_BAR = "{n_fmt}/{total_fmt} units |{bar}| {elapsed}, {rate_fmt}{postfix}"
