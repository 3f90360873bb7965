"""Live fan-out. A reader is a bounded inbox over a log: it may miss signals, and is told so; it never misses a fact."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable

from sylph.core.events import Event
from sylph.core.signals import Lagged

PAGE = 500
Read = Callable[[str, int, int], list[Event]]


class Inbox:
    """What waits for one reader: `size` events at most. Too many, and it is emptied and remembers that it lagged."""

    def __init__(self, size: int) -> None:
        self._waiting: deque[Event] = deque()
        self._size = size
        self._awake = asyncio.Event()
        self.missed = 0
        self.lagged = False

    def put(self, event: Event) -> None:
        if len(self._waiting) >= self._size:
            self.missed += sum(1 for waiting in self._waiting if not waiting.seq)
            self._waiting.clear()
            self.lagged = True
        if self.lagged and not event.seq:
            self.missed += 1
        elif not self.lagged:
            self._waiting.append(event)
        self._awake.set()

    def caught_up(self) -> int:
        """Says that the reader goes back to the log; returns how many signals it missed."""
        missed, self.missed, self.lagged = self.missed, 0, False
        return missed

    async def get(self) -> Event | None:
        """The next event, or None when the reader has to go back to the log."""
        while not self._waiting and not self.lagged:
            self._awake.clear()
            await self._awake.wait()
        return None if self.lagged else self._waiting.popleft()


class Bus:
    def __init__(self, read: Read, *, size: int = 1024) -> None:
        self._read, self._size = read, size
        self._inboxes: dict[str, set[Inbox]] = {}

    def publish(self, event: Event) -> None:
        for inbox in self._inboxes.get(event.session, ()):
            inbox.put(event)

    def watched(self, session: str) -> bool:
        return bool(self._inboxes.get(session))

    async def watch(self, session: str, *, after: int = 0) -> AsyncGenerator[Event, None]:
        """Past facts first, then what happens, with no gap and no repeat. It never ends by itself."""
        inbox = Inbox(self._size)
        self._inboxes.setdefault(session, set()).add(inbox)
        try:
            while True:
                # The inbox is open before the log is read, so nothing falls between the two.
                if missed := inbox.caught_up():
                    yield Event(session=session, seq=0, ts=0, body=Lagged(missed=missed))
                while page := self._read(session, after, PAGE):
                    for event in page:
                        yield event
                    after = page[-1].seq
                    await asyncio.sleep(0)
                while event := await inbox.get():
                    if event.seq == 0:
                        yield event
                    elif event.seq == after + 1:
                        after = event.seq
                        yield event
                    elif event.seq > after:
                        break
        finally:
            self._leave(session, inbox)

    def _leave(self, session: str, inbox: Inbox) -> None:
        inboxes = self._inboxes.get(session, set())
        inboxes.discard(inbox)
        if not inboxes:
            self._inboxes.pop(session, None)
