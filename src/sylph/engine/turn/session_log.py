"""A session's log with its folds: what the session knows, and the one way to add to it."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from msgspec import Struct, field

from sylph.core import facts, signals
from sylph.core.clock import Clock
from sylph.core.errors import LogConflict, StoreError, UserError
from sylph.core.events import Event, Fact, Signal
from sylph.core.facts.delivery import Courier, NoCourier
from sylph.core.facts.file_change import UndoStarted
from sylph.core.ids import turn_id
from sylph.engine.folds import fold, history
from sylph.engine.folds.causality import cause_ref
from sylph.engine.folds.history import HISTORY_FOLD, ConversationHistory
from sylph.engine.folds.partial_output import PartialOutput
from sylph.engine.folds.session_state import SESSION_FOLD
from sylph.engine.folds.state_machine import ActivityState, StateTrigger, next_state
from sylph.engine.log import erase
from sylph.engine.log.event_bus import EventBus, SessionLiveOutput
from sylph.engine.log.hash_chain import PendingFact, output_digest
from sylph.engine.log.lease import SessionLease
from sylph.engine.log.store import EventLog
from sylph.engine.redact.redactor import NoRedaction

SNAPSHOT_EVERY = 200

logger = logging.getLogger(__name__)


class SessionServices(Struct, frozen=True, kw_only=True):
    """What the books of all sessions share."""

    log: EventLog
    bus: EventBus
    clock: Clock
    take_lease: Callable[[str], SessionLease]
    courier: Courier = field(default_factory=NoCourier)
    redactor: NoRedaction = field(default_factory=NoRedaction)


def load_full_output(log: EventLog, session: str, call: str) -> str | None:
    """The full output of a call; None where there is none yet."""
    found = log.find_facts(session, facts.ToolFinished, f'"call":"{call}"')
    finished = next((fact for _, _, fact in found if fact.call == call), None)
    if finished is None:
        return None
    kept = log.load_blob(session, finished.whole) if finished.whole else None
    return finished.output if kept is None else kept.decode("utf-8", "replace")


class SessionLog:
    """Everything here comes from the log; nothing is kept beside it."""

    def __init__(self, id: str, services: SessionServices) -> None:
        self.id, self._services = id, services
        self.summary, _, self._saved = fold.load_state(services.log, id, SESSION_FOLD)
        self.history: ConversationHistory = fold.load_state(services.log, id, HISTORY_FOLD)[0]
        if self.history.lost:
            self.history = self._rebuild_history()
        self._lease: SessionLease | None = None
        self._failed: StoreError | None = None
        self._newest: asyncio.Future[None] | None = None
        self._unfinished, self._told = PartialOutput(), self.summary.seq

    @property
    def live_output(self) -> SessionLiveOutput:
        """What is being written, as whoever has heard of everything sees it."""
        return SessionLiveOutput(self._told, self._unfinished.to_live_signal())

    @property
    def state(self) -> ActivityState:
        return self.summary.state

    @property
    def is_current(self) -> bool:
        """Whether this is still all there is: false after a failure, or when somebody else wrote."""
        if self._failed:
            return False
        return self._is_writing or self._services.log.head(self.id).seq == self.summary.seq

    @property
    def _is_writing(self) -> bool:
        return self._newest is not None and not self._newest.done()

    @property
    def redactor(self) -> NoRedaction:
        return self._services.redactor

    @property
    def clock(self) -> Clock:
        return self._services.clock

    @property
    def now(self) -> int:
        return self._services.clock.now()

    async def emit(
        self,
        *new: Fact,
        durable: bool | None = None,
        blobs: Sequence[tuple[str, bytes]] = (),
        actor: str = "sylph",
        at: int | None = None,
    ) -> list[Event]:
        """Writes facts, all or none, and returns when they are kept. Cancelling the caller undoes nothing."""
        if self._failed:
            raise self._failed
        if not new:
            return []
        safe = any(fact.durable for fact in new) if durable is None else durable
        ts, turn = self.now if at is None else at, self._turn_for(new)
        origins = self.summary.origins
        drafts = [PendingFact(fact, ts, turn, actor, origins.get(cause_ref(fact), 0)) for fact in new]
        appended = self._services.log.append(self.id, drafts, expected=self.summary.seq, durable=safe, blobs=blobs)
        # Their place is fixed, so the folds move now: whatever is decided next follows these, or fails with them.
        for event in appended.events:
            SESSION_FOLD.step(self.summary, event)
            HISTORY_FOLD.step(self.history, event)
        self._on_appended(new)
        self._newest = appended.done
        appended.done.add_done_callback(lambda done: self._on_committed(appended.events, done))
        await asyncio.shield(appended.done)
        return appended.events

    def _on_appended(self, new: Sequence[Fact]) -> None:
        """They have their place in the log."""

    async def apply_trigger(self, trigger: StateTrigger, *new: Fact, at: int | None = None) -> None:
        """Takes an edge of the state machine, with the facts that belong to it in the same breath."""
        was, to = self.state, next_state(self.state, trigger)
        if to is None:
            raise UserError(f"A session that is {was} cannot {trigger}.", kind="wrong_state", details={"state": was})
        await self.emit(*new, facts.StateChanged(to=to, was=was, event=trigger), at=at)

    def publish_signal(self, signal: Signal) -> None:
        """A signal to whoever looks; next to free if nobody does."""
        if isinstance(signal, signals.Progress | signals.SessionFailed):
            signal = self.redactor.redact_signal(signal)
        self._unfinished.add_signal(signal)
        if self._services.bus.is_watched(self.id):
            self._services.bus.publish(
                Event(session=self.id, seq=0, ts=self.now, turn=self.summary.open_turn, body=signal)
            )

    async def full_output(self, call: str) -> str | None:
        """The full output of a call, however much of it the model was shown."""
        return load_full_output(self._services.log, self.id, call)

    def load_image(self, digest: str) -> bytes | None:
        """An image of the conversation; None where it is gone or was erased."""
        kept = self._services.log.load_blob(self.id, digest)
        return kept if kept is not None and output_digest(kept) == digest else None

    def find_turn_start(self, turn: str) -> tuple[int, str]:
        """Where a turn began, and with which input."""
        found = self._services.log.find_facts(self.id, facts.TurnStarted)
        return next(((seq, fact.input) for seq, of, fact in found if of == turn), (0, ""))

    def find_message(self, id: str) -> facts.InputReceived:
        """A message by its id; an empty one where it cannot be read."""
        found = self._services.log.find_facts(self.id, facts.InputReceived, f'"id":"{id}"')
        return next((fact for _, _, fact in found if fact.id == id), facts.InputReceived(id=id, text=""))

    def latest_undo(self) -> UndoStarted | None:
        """The newest undo that was begun, with the true names of its files."""
        begun = next((fact for _, _, fact in self._services.log.find_facts(self.id, UndoStarted)), None)
        return begun and self.redactor.restore_fact(begun)

    async def erase_secret(self, secret: str, why: str) -> int:
        """Overwrites a secret. What is in memory still knows it: this book is not to be used any more."""
        found = erase.find_secret(self._services.log, self.id, secret)
        if found:
            await self.emit(found.to_fact(why), actor="user")
            await erase.apply_erasure(self._services.log, self.id, found)
        return len(found.records) + len(found.blobs)

    def acquire_lease(self) -> bool:
        """Makes this process the one that writes to the session; True if it was not already."""
        if self._lease:
            return False
        self._lease = self._services.take_lease(self.id)
        if not self.is_current:
            self.release_lease()
            raise LogConflict(
                f"Session {self.id} has grown since it was opened here.", next=["Open it again and send once more."]
            )
        return True

    def release_lease(self) -> None:
        if self._lease:
            self._lease.release()
            self._lease = None

    async def save_snapshots(self) -> None:
        """Snapshots: the summary always, for it is small and lists read it; the history when enough has happened."""
        while self._newest and self._is_writing:
            await asyncio.wait([self._newest])
        seq = self.summary.seq
        if self._failed or self._services.log.read_only or seq == self._saved:
            return
        try:
            await fold.save_snapshot(self._services.log, self.id, SESSION_FOLD, self.summary, seq)
            if self._saved == 0 or seq // SNAPSHOT_EVERY != self._saved // SNAPSHOT_EVERY:
                await fold.save_snapshot(self._services.log, self.id, HISTORY_FOLD, self.history, seq)
        except StoreError as error:
            logger.warning("no snapshot of %s: %s", self.id, error)
        else:
            self._saved = seq

    def _turn_for(self, new: Sequence[Fact]) -> str:
        begins = any(isinstance(fact, facts.TurnStarted) for fact in new)
        return turn_id(self.summary.turns + 1) if begins else self.summary.open_turn

    def _on_committed(self, events: list[Event], done: "asyncio.Future[None]") -> None:
        error = done.exception()
        if isinstance(error, StoreError):
            # The log could not be added to: from here on this object knows nothing reliable.
            self._failed = error
            return
        for event in events:
            self._unfinished.settle_fact(event.body)
            self._told = event.seq
            self._services.bus.publish(event)
        if self.history.lost:
            self.history = self._rebuild_history()

    def _rebuild_history(self) -> ConversationHistory:
        log = self._services.log
        return history.rebuild_history(
            lambda after, limit: log.read_events(self.id, after=after, limit=limit), self.summary.seq
        )
