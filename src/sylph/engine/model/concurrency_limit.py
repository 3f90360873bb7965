"""A limit on how many model calls run at once: priority first, then arrival, and who waits long rises."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from msgspec import Struct

PERSON, WORKER, BACKGROUND = 0, 1, 2
# So many seconds of waiting lift a call by one step, but never among those that a person waits for.
AGEING = 30.0


class _WaitingCall(Struct, eq=False):
    priority: int
    since: float
    turn: "asyncio.Future[None]"


class ConcurrencyLimiter:
    """Work in the background never holds the last slot: a person's call finds one that is not taken by it."""

    def __init__(self, limit: int, clock: Callable[[], float] | None = None) -> None:
        self._limit = limit
        # How many slots are held, and how many of them by work that no person waits for.
        self._held = self._behind = 0
        self._clock = clock
        self._waiting: list[_WaitingCall] = []

    @asynccontextmanager
    async def hold_slot(self, priority: int = PERSON) -> AsyncGenerator[None, None]:
        """Holds one slot. A lower number goes first; among equals, whoever came first."""
        await self._acquire_slot(priority)
        try:
            yield
        finally:
            self._release_slot(priority)

    async def _acquire_slot(self, priority: int) -> None:
        if self._has_free_slot(priority) and not any(each.priority <= priority for each in self._waiting):
            self._count_slots(priority, 1)
            return
        mine = _WaitingCall(priority, self._now(), asyncio.get_running_loop().create_future())
        self._waiting.append(mine)
        try:
            await mine.turn
        except asyncio.CancelledError:
            if mine in self._waiting:
                self._waiting.remove(mine)
            elif mine.turn.done() and not mine.turn.cancelled():
                # The slot was handed over in the same moment: pass it on.
                self._release_slot(priority)
            raise

    def resize(self, limit: int) -> None:
        """From now on so many run at once; those that run are not stopped."""
        self._limit = limit
        self._hand_over()

    def _release_slot(self, priority: int) -> None:
        self._count_slots(priority, -1)
        self._hand_over()

    def _hand_over(self) -> None:
        while allowed := [each for each in self._waiting if self._has_free_slot(each.priority)]:
            now = self._now()
            first = min(allowed, key=lambda each: _waiting_rank(each, now))
            self._waiting.remove(first)
            if not first.turn.done():
                self._count_slots(first.priority, 1)
                first.turn.set_result(None)

    def _has_free_slot(self, priority: int) -> bool:
        if self._held >= self._limit:
            return False
        return priority == PERSON or self._limit == 1 or self._behind < self._limit - 1

    def _count_slots(self, priority: int, by: int) -> None:
        self._held += by
        self._behind += by if priority != PERSON else 0

    def _now(self) -> float:
        return self._clock() if self._clock else asyncio.get_running_loop().time()


def _waiting_rank(waiting: _WaitingCall, now: float) -> tuple[int, float]:
    lifted = waiting.priority - int((now - waiting.since) / AGEING)
    return (lifted if waiting.priority == PERSON else max(lifted, WORKER)), waiting.since
