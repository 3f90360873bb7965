"""Live fan-out. A reader is a bounded inbox over a log: it may miss signals, and is told so; it never misses a fact."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable
from typing import NamedTuple

from sylph.core.events import Event
from sylph.core.signals import ArgsDelta, Lagged, LiveSnapshot, ReasoningDelta, TextDelta, ToolOutput

PAGE = 200
# What may wait for one reader, in characters. A fact counts as so many: however large, it can be read again.
MAX_WAITING_CHARS = 4_000_000
FACT_WEIGHT = 16_384
ReadEvents = Callable[[str, int, int], list[Event]]
EventListener = Callable[[Event], None]


class SessionLiveOutput(NamedTuple):
    """What a session that works here is writing, and the last fact that was told of it."""

    seq: int
    live: LiveSnapshot | None


LiveOutputSource = Callable[[str], SessionLiveOutput | None]


class EventReader:
    """Follows sessions: past facts first, then what happens, with no gap and no repeat.

    Too much waits, and it is forgotten: the facts come from the log then, the signals are counted as missed.
    """

    def __init__(self, bus: "EventBus", size: int) -> None:
        self._bus, self._size = bus, size
        self._waiting: deque[Event] = deque()
        self._weight = 0
        self._full = False
        self._awake = asyncio.Event()
        self._missed = Counter[str]()
        # Those of which the log knows more than this reader, in the order in which they are read.
        self._behind: dict[str, None] = {}
        self.after: dict[str, int] = {}
        """The sessions it follows, and the last fact it took of each."""

    def follow(self, session: str, after: int = 0) -> None:
        """From the fact behind `after` on. The log is read when the inbox is open, so nothing falls between the two."""
        self._bus.attach_reader(session, self)
        self.after[session] = after
        self.recheck_log(session)

    def unfollow(self, session: str) -> None:
        self._bus.detach_reader(session, self)
        self.after.pop(session, None)
        self._behind.pop(session, None)
        self._missed.pop(session, None)

    def close(self) -> None:
        for session in list(self.after):
            self.unfollow(session)

    def recheck_log(self, session: str) -> None:
        """Has it look into the log: somebody else may have written."""
        self._behind[session] = None
        self._awake.set()

    def wake(self) -> None:
        self._awake.set()

    def push(self, event: Event) -> None:
        self._weight += FACT_WEIGHT if event.seq else signal_weight(event)
        if not self._full and (len(self._waiting) >= self._size or self._weight > MAX_WAITING_CHARS):
            self._missed.update(waiting.session for waiting in self._waiting if not waiting.seq)
            self._waiting.clear()
            self._full = True
        if not self._full:
            self._waiting.append(event)
        elif not event.seq:
            self._missed[event.session] += 1
        self._awake.set()

    def take(self) -> list[Event]:
        """All there is by now, but of the past one page at the most."""
        self._awake.clear()
        if self._full:
            self._behind = dict.fromkeys(self.after)
        taken = self._take_live()
        room = PAGE
        for session in list(self._behind):
            if room <= 0:
                break
            past = self._read_past(session, room)
            taken += past
            room -= len(past)
        return taken

    async def wait(self) -> None:
        """Returns when there may be something to take."""
        if self._behind:
            # Whoever reads a long past leaves the others their turn.
            await asyncio.sleep(0)
        else:
            await self._awake.wait()

    def _take_live(self) -> list[Event]:
        taken: list[Event] = []
        for event in self._waiting:
            after = self.after.get(event.session)
            if after is None:
                continue
            if event.session in self._behind:
                # What is shown now may be older than the facts that are read below.
                self._missed[event.session] += not event.seq
            elif event.seq == 0:
                taken.append(event)
            elif event.seq == after + 1:
                self.after[event.session] = event.seq
                taken.append(event)
            elif event.seq > after:
                self._behind[event.session] = None
        self._waiting.clear()
        self._weight, self._full = 0, False
        return taken

    def _read_past(self, session: str, room: int) -> list[Event]:
        found: list[Event] = []
        while len(found) < room and (page := self._bus.read(session, self.after[session], room - len(found))):
            found += page
            self.after[session] = page[-1].seq
        live = self._finish_catch_up(session) if len(found) < room else []
        missed = self._missed.pop(session, 0)
        lagged = [Event(session=session, seq=0, ts=0, body=Lagged(missed=missed))] if missed else []
        return [*lagged, *found, *live]

    def _finish_catch_up(self, session: str) -> list[Event]:
        """All facts are read; what is being written follows them, if the two go together."""
        now = self._bus.unfinished(session)
        if now and now.seq < self.after[session]:
            # A fact is on the disk whose pieces are not known to be done with yet: the next look finds them so.
            return []
        del self._behind[session]
        return [Event(session=session, seq=0, ts=0, body=now.live)] if now and now.live else []


class EventBus:
    def __init__(self, read: ReadEvents, *, size: int = 1024, unfinished: LiveOutputSource = lambda _: None) -> None:
        self.read, self._size, self.unfinished = read, size, unfinished
        self._readers: dict[str, set[EventReader]] = {}
        self._hearers: list[EventListener] = []

    def publish(self, event: Event) -> None:
        for reader in self._readers.get(event.session, ()):
            reader.push(event)
        for hear in self._hearers:
            hear(event)

    def is_watched(self, session: str) -> bool:
        return bool(self._readers.get(session))

    def add_listener(self, hear: EventListener) -> None:
        """Tells of every event that is published, of whichever session; signals only where the session is watched."""
        self._hearers.append(hear)

    def remove_listener(self, hear: EventListener) -> None:
        self._hearers.remove(hear)

    def open_reader(self) -> EventReader:
        return EventReader(self, self._size)

    async def watch(self, session: str, *, after: int = 0) -> AsyncGenerator[Event, None]:
        """What happens in one session. It never ends by itself."""
        reader = self.open_reader()
        reader.follow(session, after)
        try:
            while True:
                for event in reader.take():
                    yield event
                await reader.wait()
        finally:
            reader.close()

    def attach_reader(self, session: str, reader: EventReader) -> None:
        self._readers.setdefault(session, set()).add(reader)

    def detach_reader(self, session: str, reader: EventReader) -> None:
        readers = self._readers.get(session, set())
        readers.discard(reader)
        if not readers:
            self._readers.pop(session, None)


def signal_weight(event: Event) -> int:
    """How much a signal is to keep."""
    body = event.body
    return len(body.text) + 64 if isinstance(body, TextDelta | ReasoningDelta | ArgsDelta | ToolOutput) else 64
