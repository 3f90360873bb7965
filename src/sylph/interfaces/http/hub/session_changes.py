"""What every session is right now, for those who look at all of them: told when it changes, once a second each."""

import asyncio
from collections.abc import Callable

from sylph.core.events import Event
from sylph.core.signals import SessionPurged
from sylph.engine.runtime.runtime import Runtime
from sylph.interfaces.http.hub.messages import SessionChangedMessage, SessionRemovedMessage, describe_session_change

# Seconds between two notes of one session, and until the first: what comes together is told together.
REPEAT_DELAY, FIRST_DELAY = 1.0, 0.02
MAX_CACHED = 500
# A client that was away is told again of what changed so many ms before it left.
OVERLAP_MS = 3000


class SessionChangeFeed:
    """Works only while somebody looks; then also at what other processes write to the same store."""

    def __init__(self, runtime: Runtime, tell: Callable[[str], None]) -> None:
        self._runtime, self._tell = runtime, tell
        self._seen: dict[str, int] = {}
        self._told: dict[str, float] = {}
        self._due: dict[str, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._notes: dict[str, SessionChangedMessage] = {}
        self._version = -1
        self._reading: set[asyncio.Task[None]] = set()
        self.open = False

    def start(self) -> None:
        if not self.open:
            self.open = True
            self._runtime.bus.add_listener(self._on_event)

    def stop(self) -> None:
        if self.open:
            self.open = False
            self._runtime.bus.remove_listener(self._on_event)
            self._due.clear()
            self._seen.clear()
            self._notes.clear()
            self._version = -1
            for task in self._reading:
                task.cancel()
            if self._timer:
                self._timer.cancel()
                self._timer = None

    async def sessions_to_report(self, since: int) -> list[str]:
        """Sessions that somebody who comes now has to be told of: that ask, or changed since they were here."""
        cards = await self._runtime.cards.load_items()
        return [card.id for card in cards if card.asked or (since and card.updated >= since - OVERLAP_MS)]

    def describe_change(self, session: str) -> SessionChangedMessage | SessionRemovedMessage:
        if known := self._notes.get(session):
            return known
        summary = self._runtime.peek_state(session)
        return (
            describe_session_change(self._runtime, session, summary)
            if summary.seq
            else SessionRemovedMessage(id=session)
        )

    async def poll_log(self) -> None:
        """Looks for what nobody has told: sessions of other processes, forks, imports, and those that are gone."""
        version = self._runtime.log.data_version()
        if version == self._version:
            return
        first, self._version = self._version == -1, version
        heads = {card.id: card.seq for card in await self._runtime.cards.load_items()}
        before, self._seen = self._seen, heads
        if first or not self.open:
            return
        for session in before.keys() | heads.keys():
            if before.get(session) != heads.get(session):
                self._schedule_change(session)

    def _on_event(self, event: Event) -> None:
        if event.seq:
            if self._version != -1:
                self._seen[event.session] = event.seq
            self._schedule_change(event.session)
        elif isinstance(event.body, SessionPurged):
            self._schedule_change(event.session)

    def _schedule_change(self, session: str) -> None:
        self._notes.pop(session, None)
        if session in self._due:
            return
        now = asyncio.get_running_loop().time()
        due = self._due[session] = max(now + FIRST_DELAY, self._told.get(session, 0.0) + REPEAT_DELAY)
        if self._timer is None or due < self._timer.when():
            self._set_timer(due)

    def _set_timer(self, due: float) -> None:
        if self._timer:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(due, self._report_due)

    def _report_due(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        self._told = {session: at for session, at in self._told.items() if at + REPEAT_DELAY > now}
        for session in [session for session, due in self._due.items() if due <= now]:
            del self._due[session]
            if not self._runtime.warmer.is_warm(session):
                self._warm_session(session)
                continue
            self._told[session] = now
            if (
                isinstance(made := self.describe_change(session), SessionChangedMessage)
                and len(self._notes) < MAX_CACHED
            ):
                self._notes[session] = made
            self._tell(session)
        if self._due:
            self._set_timer(min(self._due.values()))

    def _warm_session(self, session: str) -> None:
        """A long log that was written elsewhere is told of once it is read: nobody else waits for that."""

        async def read() -> None:
            await self._runtime.warmer.warm_session(session)
            if self.open:
                self._schedule_change(session)

        task = asyncio.create_task(read())
        self._reading.add(task)
        task.add_done_callback(self._reading.discard)
