"""Time as a seam: the engine asks a clock, so that tests and replays can own it."""

import time
from typing import Protocol


class Clock(Protocol):
    def now(self) -> int:
        """Milliseconds since the epoch; may jump."""
        ...

    def ticks(self) -> float:
        """Seconds that only ever grow; for durations."""
        ...


class SystemClock:
    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def ticks(self) -> float:
        return time.monotonic()
