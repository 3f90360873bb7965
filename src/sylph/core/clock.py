"""Time as a seam: the engine asks a clock, so that tests and replays can own it."""

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    def now(self) -> int:
        """Milliseconds since the epoch; may jump."""
        ...

    def ticks(self) -> float:
        """Seconds that only ever grow; for durations."""
        ...

    def elapsed_ms(self, began: float, what: str) -> int:
        """Milliseconds since the tick `began`; `what` took them: a call by its id, an answer, the first word of it."""
        ...

    def timeout(self, seconds: float | None) -> asyncio.Timeout:
        """Bounds what is done inside of it."""
        ...

    async def sleep(self, seconds: float, what: str = "") -> None:
        """Waits; `what` is the delivery that waits for its next try, if it is one."""
        ...


class SystemClock:
    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def ticks(self) -> float:
        return time.monotonic()

    def elapsed_ms(self, began: float, what: str) -> int:  # noqa: ARG002 - a replay wants to know
        return round((self.ticks() - began) * 1000)

    def timeout(self, seconds: float | None) -> asyncio.Timeout:
        return asyncio.timeout(seconds)

    async def sleep(self, seconds: float, what: str = "") -> None:  # noqa: ARG002 - a replay wants to know
        await asyncio.sleep(seconds)
