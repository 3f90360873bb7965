"""Every session on a card: what a list shows of it, kept in memory and made anew only for those that have grown."""

import asyncio
import sys
from collections.abc import Callable, Iterable

from msgspec import Struct

from sylph.core.messages import Usage
from sylph.core.permission.types import Mode
from sylph.engine.folds import fold
from sylph.engine.folds.session_state import QUIET_FACTS, SESSION_FOLD, SessionState
from sylph.engine.folds.snapshot_warmer import SnapshotWarmer
from sylph.engine.folds.state_machine import ActivityState
from sylph.engine.log.store import VALID_SEQ, EventLog

# So many are read before others get their turn.
LOAD_BATCH = 100


class SessionListItem(Struct, frozen=True, kw_only=True):
    id: str
    title: str
    workspace: str
    model: str
    mode: Mode
    sandbox: bool
    state: ActivityState
    label: str
    created: int
    updated: int
    seq: int
    turns: int
    inputs: int
    asked: int
    """How many questions wait for a person."""
    queued: int
    open_turn: str
    usage: Usage
    cost: int | None
    parent: str
    root: str
    forked_at: int
    pinned: bool
    archived: bool
    deleted: bool
    unread: bool


class SessionList:
    """`live` gives what this process itself knows of a session, which is newer than any snapshot."""

    def __init__(self, log: EventLog, live: Callable[[str], SessionState | None], warmer: SnapshotWarmer) -> None:
        self._log, self._live, self._warmer = log, live, warmer
        self._known: dict[str, SessionListItem] = {}

    async def load_items(self) -> list[SessionListItem]:
        """All of them, in no order; also those in the trash."""
        heads = self._log.all_heads()
        for gone in self._known.keys() - heads.keys():
            del self._known[gone]
        grown = [id for id, seq in heads.items() if id not in self._known or self._known[id].seq != seq]
        if grown:
            await self._warmer.warm_all()
        for start in range(0, len(grown), LOAD_BATCH):
            if start:
                await asyncio.sleep(0)
            self._refresh_items(grown[start : start + LOAD_BATCH])
        return [self._known[id] for id in heads if id in self._known]

    def _refresh_items(self, some: Iterable[str]) -> None:
        unread: list[str] = []
        for id in some:
            if (summary := self._live(id)) is not None:
                self._known[id] = build_list_item(id, summary)
            else:
                unread.append(id)
        if unread:
            for id, summary in fold.load_all(self._log, SESSION_FOLD, unread).items():
                self._known[id] = build_list_item(id, summary)

    def last_update_at(self, card: SessionListItem, then: int) -> int:
        """When a session had last been updated at an earlier moment; 0 if it was not there yet."""
        if card.updated <= then:
            return card.updated
        quiet = [kind.wire for kind in QUIET_FACTS]
        rows = self._log.query(
            f"select ts from event where session = ? and ts <= ? and type not in ({', '.join('?' * len(quiet))})"
            f" and {VALID_SEQ} order by seq desc limit 1",
            (card.id, then, *quiet),
        )
        return rows[0][0] if rows and card.created <= then else 0


def build_list_item(id: str, summary: SessionState) -> SessionListItem:
    return SessionListItem(
        id=id,
        title=summary.title,
        # Thousands of sessions share a few of these.
        workspace=sys.intern(summary.workspace),
        model=sys.intern(summary.model),
        mode=summary.mode,
        sandbox=summary.sandbox,
        state=summary.state,
        label=summary.label,
        created=summary.created,
        updated=summary.updated,
        seq=summary.seq,
        turns=summary.turns,
        inputs=summary.inputs,
        asked=len(summary.asked),
        queued=len(summary.queue),
        open_turn=summary.open_turn,
        usage=summary.usage,
        cost=summary.cost,
        parent=summary.parent,
        root=summary.root or id,
        forked_at=summary.forked_at,
        pinned=summary.pinned,
        archived=summary.archived,
        deleted=summary.deleted,
        unread=summary.ended > summary.seen,
    )
