"""A recording that is played again: what must come next, who has to wait for it, and the first thing that is wrong."""

import asyncio
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence

from sylph.core.errors import StoreError
from sylph.core.events import VERSION, Carried, Event, Head, data_of
from sylph.engine.divergence import Divergence, compare, older, other_head
from sylph.engine.log import Appended, Log
from sylph.engine.outside import Happening, happenings, left_open, sent
from sylph.engine.seal import Draft, Record, digest, event_of, link
from sylph.engine.summary import SUMMARY, Summary


class Diverged(StoreError):
    """The session is about to write something that it did not write then."""

    kind = "diverged"


class Killed(StoreError):
    """The process that did this had died at that point."""

    kind = "killed"


class Tape:
    """The recorded facts and how many of them have happened again (`at`)."""

    def __init__(self, records: Sequence[Record], blobs: Mapping[str, bytes], *, any_head: bool = False) -> None:
        self.records, self.blobs = records, blobs
        self.events = [event_of(record) for record in records]
        self.at = 0
        self.divergence: Divergence | None = None
        self.any_head, self.other_heads = any_head, 0
        self.inside = False
        """The session is in the middle of that in which something came from outside."""
        self.visitors = set["asyncio.Task[str]"]()
        """Who brings commands from outside; everybody else belongs to the session."""
        self._outside = happenings(self.events)
        self._given = sorted(seq for seq, happening in self._outside.items() if happening.kind == "given")
        self._left_open = _left_open(self.events)
        self._taken = set[int]()
        self._held: list[tuple[asyncio.Future[None], asyncio.Future[None]]] = []
        self._waiting: list[asyncio.Future[None]] = []
        self._senders: list[asyncio.Future[None]] = []
        self._stirred = asyncio.Event()
        self.dead = False
        """The process has died: it writes nothing more."""
        self.leaving = False
        """It is being closed, and may write its last facts."""

    @property
    def next(self) -> Event | None:
        return self.events[self.at] if self.at < len(self.events) else None

    @property
    def ahead(self) -> Iterator[Event]:
        """What has still to come."""
        return (self.events[at] for at in range(self.at, len(self.events)))

    @property
    def ended(self) -> bool:
        return self.at >= len(self.events)

    @property
    def room(self) -> int:
        """How many facts come before the next one that can only be taken as it is."""
        found = bisect_left(self._given, self.at + 1)
        return (self._given[found] - 1 if found < len(self._given) else len(self.events) + 1) - self.at

    @property
    def _due(self) -> Happening | None:
        return self._outside.get(self.at + 1)

    @property
    def brought(self) -> bool:
        """Whether what comes next was not the session's own doing."""
        return self._due is not None

    @property
    def _holding(self) -> bool:
        """Whether the session has to wait: what comes next is not its own doing."""
        if self.ended:
            return self._left_open
        return self._due is not None and not self._due.rest and not self._due.inside

    def seal(self, session: str, head: Head, draft: Draft) -> Record:
        """The record that was made then, if it is made again."""
        expected = self.records[head.seq] if head.seq < len(self.records) else None
        data, fact = data_of(draft.fact), draft.fact
        salt = expected.salt if expected else b""
        produced = Record(
            session, head.seq + 1, VERSION, draft.turn, draft.ts, fact.type if isinstance(fact, Carried) else fact.wire,
            draft.actor, draft.cause, data, salt, b"",
        )  # fmt: skip
        produced = produced._replace(hash=link(bytes.fromhex(head.hash), produced, digest(salt, data)))
        if expected and older(expected, produced):
            return expected
        if expected and self.any_head and other_head(expected, produced):
            self.other_heads += 1
            return expected
        if produced != expected:
            raise self.diverge(head.seq + 1, expected, produced)
        return produced

    def diverge(self, seq: int, expected: Record | None, produced: Record | None, what: str = "") -> Diverged:
        """Writes the first divergence down; those that follow are its echo."""
        self.divergence = self.divergence or compare(seq, expected, produced, what)
        self._stirred.set()
        return Diverged(self.divergence.what)

    def advance(self, count: int) -> None:
        """So many more facts are there again."""
        self.at += count
        self.inside = False
        due = self._due
        if (self.ended and self._left_open) or (due and due.fresh):
            self.dead = True
        self._go()
        senders, self._senders = self._senders, []
        for future in senders:
            if not future.done():
                future.set_result(None)
        self._stirred.set()

    def gate(self, done: "asyncio.Future[None]") -> "asyncio.Future[None]":
        """Lets the session know that its facts are kept, but not before what came from outside then is there."""
        if self.leaving or asyncio.current_task() in self.visitors:
            return done
        gated = asyncio.get_running_loop().create_future()
        self._held.append((done, gated))
        done.add_done_callback(lambda _: self._go())
        return gated

    def _go(self) -> None:
        if self._holding:
            return
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)
        held, self._held = self._held, []
        for done, gated in held:
            if not done.done():
                self._held.append((done, gated))
            elif not gated.done():
                gated.set_result(None)

    async def reach(self, wanted: Callable[[Event], bool]) -> Event:
        """Waits until the next fact is one that is `wanted`."""
        while self._holding or self.next is None or not wanted(self.next):
            if self.dead:
                raise Killed("The process had died.")
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            await future
        return self.next

    async def delivery(self, wanted: Callable[[Event], bool]) -> Event:
        """Waits until the next fact is one of the outbox that is `wanted`; the session waits for it meanwhile."""
        while self.dead or self.next is None or not wanted(self.next):
            if self.dead:
                raise Killed("The process had died.")
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._senders.append(future)
            await future
        return self.next

    async def linger(self) -> None:
        """Stays inside of something until all has come that came from outside meanwhile."""
        while self._due and self._due.inside:
            seq = self._due.seq
            self.inside = True
            self._stirred.set()
            await self.reach(lambda event, seq=seq: event.seq > seq)

    async def happening(self, seconds: float) -> Happening | None:
        """The next thing that comes from outside, when it is time for it; None at the end of the tape."""
        while not self.ended and not self.divergence:
            due = self._due
            ready = due and due.kind != "delivery" and not due.breath and due.seq not in self._taken
            if due and ready and (self.inside or not due.inside):
                self._taken.add(due.seq)
                return due
            self._stirred.clear()
            try:
                async with asyncio.timeout(seconds):
                    await self._stirred.wait()
            except TimeoutError:
                self.diverge(self.at + 1, self.records[self.at], None)
        return None

    def breath(self) -> Happening | None:
        """What was said in one breath with what has just been brought."""
        return self._due if self._due and self._due.breath else None

    def bury(self) -> None:
        """Nothing of the process that died goes on."""
        self.dead = True
        waiting = [*self._waiting, *self._senders]
        self._waiting, self._senders = [], []
        for future in (*waiting, *(gated for _, gated in self._held)):
            if not future.done():
                future.set_exception(Killed("The process had died."))
        self._held = []


class TapeLog(Log):
    """A log that takes only what is on the tape."""

    tape: Tape

    def append(
        self,
        session: str,
        drafts: Sequence[Draft],
        *,
        expected: int,
        durable: bool = True,  # noqa: ARG002 - it is thrown away in the end
        blobs: Sequence[tuple[str, bytes]] = (),
    ) -> Appended:
        tape = self.tape
        if tape.dead or tape.divergence:
            raise Killed("The process had died.")
        room = tape.room
        appended = super().append(session, drafts[:room], expected=expected, durable=False, blobs=blobs)
        tape.advance(len(appended.events))
        if len(drafts) > room:
            raise Killed("The session was forked in the middle of this.")
        if all(sent(draft.fact) for draft in drafts):
            # The outbox works beside the session, which waits for it.
            return appended
        return appended._replace(done=tape.gate(appended.done))


def _left_open(events: Sequence[Event]) -> bool:
    state = Summary()
    for event in events:
        SUMMARY.step(state, event)
    return left_open(state)
