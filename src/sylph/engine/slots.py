"""A limit on how many model calls run at once: priority first, then arrival."""

import asyncio
import heapq
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


class Slots:
    def __init__(self, limit: int) -> None:
        self._free = limit
        self._arrivals = 0
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []

    @asynccontextmanager
    async def take(self, priority: int = 0) -> AsyncGenerator[None, None]:
        """Holds one slot. A lower number goes first; among equals, whoever came first."""
        await self._acquire(priority)
        try:
            yield
        finally:
            self._release()

    async def _acquire(self, priority: int) -> None:
        if self._free > 0:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._arrivals += 1
        heapq.heappush(self._waiting, (priority, self._arrivals, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                # The slot was handed over in the same moment: pass it on.
                self._release()
            raise

    def _release(self) -> None:
        while self._waiting:
            _, _, turn = heapq.heappop(self._waiting)
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
