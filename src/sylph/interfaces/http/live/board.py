"""What every session is right now, for those who look at all of them: told when it changes, once a second each."""

import asyncio
from collections.abc import Callable

from msgspec import Struct

from sylph.core.events import Event
from sylph.core.signals import SessionPurged
from sylph.engine import fold
from sylph.engine.runtime import Runtime
from sylph.engine.summary import SUMMARY, Summary
from sylph.interfaces.http.live.messages import Changed, Removed, changed

# Seconds between two notes of one session, and until the first: what comes together is told together.
PAUSE, FIRST = 1.0, 0.02
KEPT = 500
# A client that was away is told again of what changed so shortly before it left.
OVERLAP = 3000


class Seen(Struct):
    seq: int
    updated: int
    asks: bool
    told: float = 0.0


class Board:
    """Works only while somebody looks; then also at what other processes write to the same store."""

    def __init__(self, runtime: Runtime, tell: Callable[[str], None]) -> None:
        self._runtime, self._tell = runtime, tell
        self._seen: dict[str, Seen] = {}
        self._due: dict[str, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._notes: dict[str, Changed] = {}
        self._version = -1
        self.open = False

    def start(self) -> None:
        if not self.open:
            self.open = True
            self._runtime.bus.hear(self._hear)
            self.poll()

    def stop(self) -> None:
        if self.open:
            self.open = False
            self._runtime.bus.unhear(self._hear)
            self._due.clear()
            if self._timer:
                self._timer.cancel()
                self._timer = None

    def wanting(self, since: int) -> list[str]:
        """Sessions that somebody who comes now has to be told of: that ask, or changed since they were here."""
        return [id for id, seen in self._seen.items() if seen.asks or (since and seen.updated >= since - OVERLAP)]

    def note(self, session: str) -> Changed | Removed:
        if known := self._notes.get(session):
            return known
        summary = self._runtime.glance(session)
        return self._keep(session, summary) if summary.seq else Removed(id=session)

    def poll(self) -> None:
        """Looks for what nobody has told: sessions of other processes, forks, imports, and those that are gone."""
        version = self._runtime.log.version()
        if version == self._version:
            return
        self._version = version
        if not self._seen:
            self._begin()
            return
        heads = self._runtime.log.heads()
        for session in self._seen.keys() - heads.keys():
            self._stir(session)
        for session, seq in heads.items():
            seen = self._seen.get(session)
            if seen is None or seen.seq < seq:
                self._stir(session)

    def _begin(self) -> None:
        for session, summary in fold.load_all(self._runtime.log, SUMMARY).items():
            self._seen[session] = Seen(summary.seq, summary.updated, bool(summary.asked))

    def _hear(self, event: Event) -> None:
        if event.seq or isinstance(event.body, SessionPurged):
            self._stir(event.session)

    def _stir(self, session: str) -> None:
        if session in self._due:
            return
        seen = self._seen.get(session)
        loop = asyncio.get_running_loop()
        due = self._due[session] = max(loop.time() + FIRST, seen.told + PAUSE if seen else 0.0)
        if self._timer is None or due < self._timer.when():
            self._wait(due)

    def _wait(self, due: float) -> None:
        if self._timer:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(due, self._flush)

    def _flush(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        for session in [session for session, due in self._due.items() if due <= now]:
            del self._due[session]
            summary = self._runtime.glance(session)
            if summary.seq:
                self._keep(session, summary)
                self._seen[session] = Seen(summary.seq, summary.updated, bool(summary.asked), now)
            else:
                self._notes.pop(session, None)
                self._seen.pop(session, None)
            self._tell(session)
        if self._due:
            self._wait(min(self._due.values()))

    def _keep(self, session: str, summary: Summary) -> Changed:
        if len(self._notes) >= KEPT:
            self._notes.clear()
        made = self._notes[session] = changed(session, summary)
        return made
