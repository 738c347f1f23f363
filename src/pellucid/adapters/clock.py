"""Time, as what waits for a service sees it."""

from __future__ import annotations

import time


class Clock:
    """The time of day and the means to wait; a program that must not wait passes its own."""

    def now(self) -> float:
        """Seconds since 1970."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)
