"""A session's log with its folds: what the session knows, and the one way to add to it."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from sylph.core import facts
from sylph.core.clock import Clock
from sylph.core.errors import Conflict, StoreError, UserError
from sylph.core.events import Event, Fact, Signal
from sylph.core.ids import turn_id
from sylph.engine import fold, history
from sylph.engine.bus import Bus
from sylph.engine.cause import cause
from sylph.engine.history import HISTORY, History
from sylph.engine.lease import Lease
from sylph.engine.log import Log
from sylph.engine.seal import Draft
from sylph.engine.states import State, Trigger, step
from sylph.engine.summary import SUMMARY

SNAPSHOT_EVERY = 200

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """What the books of all sessions share."""

    log: Log
    bus: Bus
    clock: Clock
    lease: Callable[[str], Lease]


class Book:
    """Everything here comes from the log; nothing is kept beside it."""

    def __init__(self, id: str, shelf: Shelf) -> None:
        self.id, self._shelf = id, shelf
        self.summary, self._seq, self._saved = fold.load(shelf.log, id, SUMMARY)
        # The state as of the newest fact on its way, so that two edges can never start from the same place.
        self.state: State = self.summary.state
        self.history: History = fold.load(shelf.log, id, HISTORY)[0]
        if self.history.lost:
            self.history = self._rebuild()
        self._lease: Lease | None = None
        self._failed: StoreError | None = None

    @property
    def current(self) -> bool:
        """Whether this is still all there is: false after a failure, or when somebody else wrote."""
        return self._failed is None and self._shelf.log.head(self.id).seq == self._seq

    @property
    def now(self) -> int:
        return self._shelf.clock.now()

    async def emit(
        self,
        *new: Fact,
        durable: bool | None = None,
        blobs: Sequence[tuple[str, bytes]] = (),
        actor: str = "sylph",
    ) -> list[Event]:
        """Writes facts, all or none, and returns when they are kept. Cancelling the caller undoes nothing."""
        if self._failed:
            raise self._failed
        if not new:
            return []
        safe = any(fact.durable for fact in new) if durable is None else durable
        ts, turn = self.now, self._turn(new)
        origins = self.summary.origins
        drafts = [Draft(fact, ts, turn, actor, origins.get(cause(fact), 0)) for fact in new]
        appended = self._shelf.log.append(self.id, drafts, expected=self._seq, durable=safe, blobs=blobs)
        self._seq += len(drafts)
        appended.done.add_done_callback(lambda done: self._committed(appended.events, done))
        await asyncio.shield(appended.done)
        return appended.events

    async def enter(self, trigger: Trigger, *new: Fact) -> None:
        """Takes an edge of the state machine, with the facts that belong to it in the same breath."""
        was, to = self.state, step(self.state, trigger)
        if to is None:
            raise UserError(f"A session that is {was} cannot {trigger}.", kind="wrong_state", details={"state": was})
        self.state = to
        await self.emit(*new, facts.StateChanged(to=to, was=was, event=trigger))

    def show(self, signal: Signal) -> None:
        """A signal to whoever looks; free if nobody does."""
        if self._shelf.bus.watched(self.id):
            self._shelf.bus.publish(
                Event(session=self.id, seq=0, ts=self.now, turn=self.summary.open_turn, body=signal)
            )

    async def whole(self, call: str) -> str | None:
        """The full output of a call, however much of it the model was shown."""
        rows = self._shelf.log.query(
            "select data from event where session = ? and type = 'tool.finished' order by seq desc", (self.id,)
        )
        needle = f'"call":"{call}"'.encode()
        found = next((data for (data,) in rows if needle in data), None)
        if found is None:
            return None
        finished = msgspec.json.decode(found, type=facts.ToolFinished)
        kept = self._shelf.log.blob(self.id, finished.whole) if finished.whole else None
        return finished.output if kept is None else kept.decode("utf-8", "replace")

    def turn_start(self, turn: str) -> tuple[int, str]:
        """Where a turn began, and with which input."""
        rows = self._shelf.log.query(
            "select seq, data from event where session = ? and turn = ? and type = 'turn.started'", (self.id, turn)
        )
        if not rows:
            return 0, ""
        return rows[-1][0], msgspec.json.decode(rows[-1][1], type=facts.TurnStarted).input

    def input_text(self, id: str) -> str:
        rows = self._shelf.log.query(
            "select data from event where session = ? and type = 'input.received' order by seq", (self.id,)
        )
        received = (msgspec.json.decode(data, type=facts.InputReceived) for (data,) in rows)
        return next((fact.text for fact in received if fact.id == id), "")

    def own(self) -> bool:
        """Makes this process the one that writes to the session; True if it was not already."""
        if self._lease:
            return False
        self._lease = self._shelf.lease(self.id)
        if self._shelf.log.head(self.id).seq != self._seq:
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
            SUMMARY.step(self.summary, event)
            HISTORY.step(self.history, event)
            self._shelf.bus.publish(event)
        if self.history.lost:
            self.history = self._rebuild()

    def _rebuild(self) -> History:
        log = self._shelf.log
        return history.rebuild(lambda after, limit: log.read(self.id, after=after, limit=limit), self.summary.seq)
