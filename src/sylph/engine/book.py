"""A session's log with its folds: what the session knows, and the one way to add to it."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from msgspec import Struct, field

from sylph.core import facts, signals
from sylph.core.changes import UndoStarted
from sylph.core.clock import Clock
from sylph.core.deliveries import Courier, Nobody
from sylph.core.errors import Conflict, StoreError, UserError
from sylph.core.events import Event, Fact, Signal
from sylph.core.ids import turn_id
from sylph.engine import erase, fold, history
from sylph.engine.bus import Bus, Now
from sylph.engine.cause import cause
from sylph.engine.history import HISTORY, History
from sylph.engine.lease import Lease
from sylph.engine.log import Log
from sylph.engine.redact.veil import Veil
from sylph.engine.seal import Draft
from sylph.engine.shape import output_digest
from sylph.engine.states import State, Trigger, step
from sylph.engine.summary import SUMMARY
from sylph.engine.unfinished import Unfinished

SNAPSHOT_EVERY = 200

logger = logging.getLogger(__name__)


class Shelf(Struct, frozen=True, kw_only=True):
    """What the books of all sessions share."""

    log: Log
    bus: Bus
    clock: Clock
    lease: Callable[[str], Lease]
    courier: Courier = field(default_factory=Nobody)
    veil: Veil = field(default_factory=Veil)


def whole(log: Log, session: str, call: str) -> str | None:
    """The full output of a call; None where there is none yet."""
    found = log.find(session, facts.ToolFinished, f'"call":"{call}"')
    finished = next((fact for _, _, fact in found if fact.call == call), None)
    if finished is None:
        return None
    kept = log.blob(session, finished.whole) if finished.whole else None
    return finished.output if kept is None else kept.decode("utf-8", "replace")


class Book:
    """Everything here comes from the log; nothing is kept beside it."""

    def __init__(self, id: str, shelf: Shelf) -> None:
        self.id, self._shelf = id, shelf
        self.summary, _, self._saved = fold.load(shelf.log, id, SUMMARY)
        self.history: History = fold.load(shelf.log, id, HISTORY)[0]
        if self.history.lost:
            self.history = self._rebuild()
        self._lease: Lease | None = None
        self._failed: StoreError | None = None
        self._newest: asyncio.Future[None] | None = None
        self._unfinished, self._told = Unfinished(), self.summary.seq

    @property
    def now_written(self) -> Now:
        """What is being written, as whoever has heard of everything sees it."""
        return Now(self._told, self._unfinished.told())

    @property
    def state(self) -> State:
        return self.summary.state

    @property
    def current(self) -> bool:
        """Whether this is still all there is: false after a failure, or when somebody else wrote."""
        if self._failed:
            return False
        return self._writing or self._shelf.log.head(self.id).seq == self.summary.seq

    @property
    def _writing(self) -> bool:
        return self._newest is not None and not self._newest.done()

    @property
    def veil(self) -> Veil:
        return self._shelf.veil

    @property
    def clock(self) -> Clock:
        return self._shelf.clock

    @property
    def now(self) -> int:
        return self._shelf.clock.now()

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
        ts, turn = self.now if at is None else at, self._turn(new)
        origins = self.summary.origins
        drafts = [Draft(fact, ts, turn, actor, origins.get(cause(fact), 0)) for fact in new]
        appended = self._shelf.log.append(self.id, drafts, expected=self.summary.seq, durable=safe, blobs=blobs)
        # Their place is fixed, so the folds move now: whatever is decided next follows these, or fails with them.
        for event in appended.events:
            SUMMARY.step(self.summary, event)
            HISTORY.step(self.history, event)
        self._placed(new)
        self._newest = appended.done
        appended.done.add_done_callback(lambda done: self._committed(appended.events, done))
        await asyncio.shield(appended.done)
        return appended.events

    def _placed(self, new: Sequence[Fact]) -> None:
        """They have their place in the log."""

    async def enter(self, trigger: Trigger, *new: Fact, at: int | None = None) -> None:
        """Takes an edge of the state machine, with the facts that belong to it in the same breath."""
        was, to = self.state, step(self.state, trigger)
        if to is None:
            raise UserError(f"A session that is {was} cannot {trigger}.", kind="wrong_state", details={"state": was})
        await self.emit(*new, facts.StateChanged(to=to, was=was, event=trigger), at=at)

    def show(self, signal: Signal) -> None:
        """A signal to whoever looks; next to free if nobody does."""
        if isinstance(signal, signals.Progress | signals.SessionFailed):
            signal = self.veil.signal(signal)
        self._unfinished.show(signal)
        if self._shelf.bus.watched(self.id):
            self._shelf.bus.publish(
                Event(session=self.id, seq=0, ts=self.now, turn=self.summary.open_turn, body=signal)
            )

    async def whole(self, call: str) -> str | None:
        """The full output of a call, however much of it the model was shown."""
        return whole(self._shelf.log, self.id, call)

    def image(self, digest: str) -> bytes | None:
        """An image of the conversation; None where it is gone or was erased."""
        kept = self._shelf.log.blob(self.id, digest)
        return kept if kept is not None and output_digest(kept) == digest else None

    def turn_start(self, turn: str) -> tuple[int, str]:
        """Where a turn began, and with which input."""
        found = self._shelf.log.find(self.id, facts.TurnStarted)
        return next(((seq, fact.input) for seq, of, fact in found if of == turn), (0, ""))

    def message(self, id: str) -> facts.InputReceived:
        """A message by its id; an empty one where it cannot be read."""
        found = self._shelf.log.find(self.id, facts.InputReceived, f'"id":"{id}"')
        return next((fact for _, _, fact in found if fact.id == id), facts.InputReceived(id=id, text=""))

    def undo_begun(self) -> UndoStarted | None:
        """The newest undo that was begun, with the true names of its files."""
        begun = next((fact for _, _, fact in self._shelf.log.find(self.id, UndoStarted)), None)
        return begun and self.veil.unveiled(begun)

    async def erase(self, secret: str, why: str) -> int:
        """Overwrites a secret. What is in memory still knows it: this book is not to be used any more."""
        found = erase.find(self._shelf.log, self.id, secret)
        if found:
            await self.emit(found.fact(why), actor="user")
            await erase.apply(self._shelf.log, self.id, found)
        return len(found.records) + len(found.blobs)

    def own(self) -> bool:
        """Makes this process the one that writes to the session; True if it was not already."""
        if self._lease:
            return False
        self._lease = self._shelf.lease(self.id)
        if not self.current:
            self.release()
            raise Conflict(
                f"Session {self.id} has grown since it was opened here.", next=["Open it again and send once more."]
            )
        return True

    def release(self) -> None:
        if self._lease:
            self._lease.release()
            self._lease = None

    async def save(self) -> None:
        """Snapshots: the summary always, for it is small and lists read it; the history when enough has happened."""
        while self._newest and self._writing:
            await asyncio.wait([self._newest])
        seq = self.summary.seq
        if self._failed or self._shelf.log.read_only or seq == self._saved:
            return
        try:
            await fold.save(self._shelf.log, self.id, SUMMARY, self.summary, seq)
            if self._saved == 0 or seq // SNAPSHOT_EVERY != self._saved // SNAPSHOT_EVERY:
                await fold.save(self._shelf.log, self.id, HISTORY, self.history, seq)
        except StoreError as error:
            logger.warning("no snapshot of %s: %s", self.id, error)
        else:
            self._saved = seq

    def _turn(self, new: Sequence[Fact]) -> str:
        begins = any(isinstance(fact, facts.TurnStarted) for fact in new)
        return turn_id(self.summary.turns + 1) if begins else self.summary.open_turn

    def _committed(self, events: list[Event], done: "asyncio.Future[None]") -> None:
        error = done.exception()
        if isinstance(error, StoreError):
            # The log could not be added to: from here on this object knows nothing reliable.
            self._failed = error
            return
        for event in events:
            self._unfinished.settle(event.body)
            self._told = event.seq
            self._shelf.bus.publish(event)
        if self.history.lost:
            self.history = self._rebuild()

    def _rebuild(self) -> History:
        log = self._shelf.log
        return history.rebuild(lambda after, limit: log.read(self.id, after=after, limit=limit), self.summary.seq)
