"""A recording that is played again: what must come next, who has to wait for it, and the first thing that is wrong."""

import asyncio
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence

from sylph.core.errors import StoreError
from sylph.core.events import ENVELOPE_VERSION, Event, LogHead, UnreadableRecord, encode_body
from sylph.engine.folds.session_state import SESSION_FOLD, SessionState
from sylph.engine.log.hash_chain import LogRecord, PendingFact, chain_hash, event_from_record, salted_digest
from sylph.engine.log.store import AppendResult, EventLog
from sylph.replay.divergence import Divergence, describe_divergence, differs_only_in_head, is_older_format
from sylph.replay.external_facts import ExternalCause, find_external_causes, has_open_work, is_outbox_fact


class ReplayDiverged(StoreError):
    """The session is about to write something that it did not write then."""

    kind = "diverged"


class ReplayKilled(StoreError):
    """The process that did this had died at that point."""

    kind = "killed"


class Playback:
    """The recorded facts and how many of them have happened again (`at`)."""

    def __init__(self, records: Sequence[LogRecord], blobs: Mapping[str, bytes], *, any_head: bool = False) -> None:
        self.records, self.blobs = records, blobs
        self.events = [event_from_record(record) for record in records]
        self.at = 0
        self.divergence: Divergence | None = None
        self.any_head, self.other_heads = any_head, 0
        self.inside = False
        """The session is in the middle of that in which something came from outside."""
        self.visitors = set["asyncio.Task[str]"]()
        """Who brings commands from outside; everybody else belongs to the session."""
        self._outside = find_external_causes(self.events)
        self._given = sorted(seq for seq, happening in self._outside.items() if happening.kind == "given")
        self._left_open = _ends_open(self.events)
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
    def next_event(self) -> Event | None:
        return self.events[self.at] if self.at < len(self.events) else None

    @property
    def upcoming(self) -> Iterator[Event]:
        """What has still to come."""
        return (self.events[at] for at in range(self.at, len(self.events)))

    @property
    def at_end(self) -> bool:
        return self.at >= len(self.events)

    @property
    def facts_until_given(self) -> int:
        """How many facts come before the next one that can only be taken as it is."""
        found = bisect_left(self._given, self.at + 1)
        return (self._given[found] - 1 if found < len(self._given) else len(self.events) + 1) - self.at

    @property
    def _due_cause(self) -> ExternalCause | None:
        return self._outside.get(self.at + 1)

    @property
    def next_is_external(self) -> bool:
        """Whether what comes next was not the session's own doing."""
        return self._due_cause is not None

    @property
    def _is_holding(self) -> bool:
        """Whether the session has to wait: what comes next is not its own doing."""
        if self.at_end:
            return self._left_open
        return self._due_cause is not None and not self._due_cause.when_idle and not self._due_cause.mid_step

    def seal_record(self, session: str, head: LogHead, draft: PendingFact) -> LogRecord:
        """The record that was made then, if it is made again."""
        expected = self.records[head.seq] if head.seq < len(self.records) else None
        data, fact = encode_body(draft.fact), draft.fact
        salt = expected.salt if expected else b""
        produced = LogRecord(
            session, head.seq + 1, ENVELOPE_VERSION, draft.turn, draft.ts,
            fact.type if isinstance(fact, UnreadableRecord) else fact.wire,
            draft.actor, draft.cause, data, salt, b"",
        )  # fmt: skip
        produced = produced._replace(hash=chain_hash(bytes.fromhex(head.hash), produced, salted_digest(salt, data)))
        if expected and is_older_format(expected, produced):
            return expected
        if expected and self.any_head and differs_only_in_head(expected, produced):
            self.other_heads += 1
            return expected
        if produced != expected:
            raise self.record_divergence(head.seq + 1, expected, produced)
        return produced

    def record_divergence(
        self, seq: int, expected: LogRecord | None, produced: LogRecord | None, what: str = ""
    ) -> ReplayDiverged:
        """Writes the first divergence down; those that follow are its echo."""
        self.divergence = self.divergence or describe_divergence(seq, expected, produced, what)
        self._stirred.set()
        return ReplayDiverged(self.divergence.what)

    def advance(self, count: int) -> None:
        """So many more facts are there again."""
        self.at += count
        self.inside = False
        due = self._due_cause
        if (self.at_end and self._left_open) or (due and due.new_process):
            self.dead = True
        self._release_waiting()
        senders, self._senders = self._senders, []
        for future in senders:
            if not future.done():
                future.set_result(None)
        self._stirred.set()

    def gate_write(self, done: "asyncio.Future[None]") -> "asyncio.Future[None]":
        """Lets the session know that its facts are kept, but not before what came from outside then is there."""
        if self.leaving or asyncio.current_task() in self.visitors:
            return done
        gated = asyncio.get_running_loop().create_future()
        self._held.append((done, gated))
        done.add_done_callback(lambda _: self._release_waiting())
        return gated

    def _release_waiting(self) -> None:
        if self._is_holding:
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

    async def wait_for_fact(self, wanted: Callable[[Event], bool]) -> Event:
        """Waits until the next fact is one that is `wanted`."""
        while self._is_holding or self.next_event is None or not wanted(self.next_event):
            if self.dead:
                raise ReplayKilled("The process had died.")
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            await future
        return self.next_event

    async def wait_for_delivery(self, wanted: Callable[[Event], bool]) -> Event:
        """Waits until the next fact is one of the outbox that is `wanted`; the session waits for it meanwhile."""
        while self.dead or self.next_event is None or not wanted(self.next_event):
            if self.dead:
                raise ReplayKilled("The process had died.")
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._senders.append(future)
            await future
        return self.next_event

    async def wait_for_external(self) -> None:
        """Stays inside of something until all has come that came from outside meanwhile."""
        while self._due_cause and self._due_cause.mid_step:
            seq = self._due_cause.seq
            self.inside = True
            self._stirred.set()
            await self.wait_for_fact(lambda event, seq=seq: event.seq > seq)

    async def next_cause(self, seconds: float) -> ExternalCause | None:
        """The next thing that comes from outside, when it is time for it; None at the end of the tape."""
        while not self.at_end and not self.divergence:
            due = self._due_cause
            ready = due and due.kind != "delivery" and not due.with_previous and due.seq not in self._taken
            if due and ready and (self.inside or not due.mid_step):
                self._taken.add(due.seq)
                return due
            self._stirred.clear()
            try:
                async with asyncio.timeout(seconds):
                    await self._stirred.wait()
            except TimeoutError:
                self.record_divergence(self.at + 1, self.records[self.at], None)
        return None

    def joined_cause(self) -> ExternalCause | None:
        """What was said in one breath with what has just been brought."""
        return self._due_cause if self._due_cause and self._due_cause.with_previous else None

    def kill_process(self) -> None:
        """Nothing of the process that died goes on."""
        self.dead = True
        waiting = [*self._waiting, *self._senders]
        self._waiting, self._senders = [], []
        for future in (*waiting, *(gated for _, gated in self._held)):
            if not future.done():
                future.set_exception(ReplayKilled("The process had died."))
        self._held = []


class ReplayLog(EventLog):
    """A log that takes only what is on the tape."""

    playback: Playback

    def append(
        self,
        session: str,
        drafts: Sequence[PendingFact],
        *,
        expected: int,
        durable: bool = True,  # noqa: ARG002 - it is thrown away in the end
        blobs: Sequence[tuple[str, bytes]] = (),
    ) -> AppendResult:
        playback = self.playback
        if playback.dead or playback.divergence:
            raise ReplayKilled("The process had died.")
        room = playback.facts_until_given
        appended = super().append(session, drafts[:room], expected=expected, durable=False, blobs=blobs)
        playback.advance(len(appended.events))
        if len(drafts) > room:
            raise ReplayKilled("The session was forked in the middle of this.")
        if all(is_outbox_fact(draft.fact) for draft in drafts):
            # The outbox works beside the session, which waits for it.
            return appended
        return appended._replace(done=playback.gate_write(appended.done))


def _ends_open(events: Sequence[Event]) -> bool:
    state = SessionState()
    for event in events:
        SESSION_FOLD.step(state, event)
    return has_open_work(state)
