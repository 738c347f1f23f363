"""Ctrl-C, or a scheduler's SIGTERM: what is at work is finished and written, then the run ends."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pellucid.bench.units import Unit

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass
class Stop:
    """Whether the run was asked to end."""

    asked: bool = False

    def until(self, units: Iterable[Unit]) -> Iterator[Unit]:
        """The units, for as long as nobody has asked."""
        for unit in units:
            if self.asked:
                return
            yield unit


@contextmanager
def stopping() -> Iterator[Stop]:
    """Listen for the signals; the second one does at once what it always does."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # signals are not delivered here
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def ask(number: int, frame: Any) -> None:
        stop.asked = True
        for one, handler in before.items():
            signal.signal(one, handler)
        sys.stderr.write("\nstopping when what is at work is written; again to stop at once\n")

    for number in _SIGNALS:
        signal.signal(number, ask)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
