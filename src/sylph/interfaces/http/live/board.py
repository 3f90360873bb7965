"""What every session is right now, for those who look at all of them: told when it changes, once a second each."""

import asyncio
from collections.abc import Callable

from sylph.core.events import Event
from sylph.core.signals import SessionPurged
from sylph.engine.runtime import Runtime
from sylph.interfaces.http.live.messages import Changed, Removed, changed

# Seconds between two notes of one session, and until the first: what comes together is told together.
PAUSE, FIRST = 1.0, 0.02
KEPT = 500
# A client that was away is told again of what changed so many ms before it left.
OVERLAP = 3000


class Board:
    """Works only while somebody looks; then also at what other processes write to the same store."""

    def __init__(self, runtime: Runtime, tell: Callable[[str], None]) -> None:
        self._runtime, self._tell = runtime, tell
        self._seen: dict[str, int] = {}
        self._told: dict[str, float] = {}
        self._due: dict[str, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._notes: dict[str, Changed] = {}
        self._version = -1
        self._reading: set[asyncio.Task[None]] = set()
        self.open = False

    def start(self) -> None:
        if not self.open:
            self.open = True
            self._runtime.bus.hear(self._hear)

    def stop(self) -> None:
        if self.open:
            self.open = False
            self._runtime.bus.unhear(self._hear)
            self._due.clear()
            self._seen.clear()
            self._notes.clear()
            self._version = -1
            for task in self._reading:
                task.cancel()
            if self._timer:
                self._timer.cancel()
                self._timer = None

    async def wanting(self, since: int) -> list[str]:
        """Sessions that somebody who comes now has to be told of: that ask, or changed since they were here."""
        cards = await self._runtime.cards.all()
        return [card.id for card in cards if card.asked or (since and card.updated >= since - OVERLAP)]

    def note(self, session: str) -> Changed | Removed:
        if known := self._notes.get(session):
            return known
        summary = self._runtime.glance(session)
        return changed(self._runtime, session, summary) if summary.seq else Removed(id=session)

    async def poll(self) -> None:
        """Looks for what nobody has told: sessions of other processes, forks, imports, and those that are gone."""
        version = self._runtime.log.version()
        if version == self._version:
            return
        first, self._version = self._version == -1, version
        heads = {card.id: card.seq for card in await self._runtime.cards.all()}
        before, self._seen = self._seen, heads
        if first or not self.open:
            return
        for session in before.keys() | heads.keys():
            if before.get(session) != heads.get(session):
                self._stir(session)

    def _hear(self, event: Event) -> None:
        if event.seq:
            if self._version != -1:
                self._seen[event.session] = event.seq
            self._stir(event.session)
        elif isinstance(event.body, SessionPurged):
            self._stir(event.session)

    def _stir(self, session: str) -> None:
        self._notes.pop(session, None)
        if session in self._due:
            return
        now = asyncio.get_running_loop().time()
        due = self._due[session] = max(now + FIRST, self._told.get(session, 0.0) + PAUSE)
        if self._timer is None or due < self._timer.when():
            self._wait(due)

    def _wait(self, due: float) -> None:
        if self._timer:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(due, self._flush)

    def _flush(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        self._told = {session: at for session, at in self._told.items() if at + PAUSE > now}
        for session in [session for session, due in self._due.items() if due <= now]:
            del self._due[session]
            if not self._runtime.warmer.near(session):
                self._read(session)
                continue
            self._told[session] = now
            if isinstance(made := self.note(session), Changed) and len(self._notes) < KEPT:
                self._notes[session] = made
            self._tell(session)
        if self._due:
            self._wait(min(self._due.values()))

    def _read(self, session: str) -> None:
        """A long log that was written elsewhere is told of once it is read: nobody else waits for that."""

        async def read() -> None:
            await self._runtime.warmer.one(session)
            if self.open:
                self._stir(session)

        task = asyncio.create_task(read())
        self._reading.add(task)
        task.add_done_callback(self._reading.discard)
