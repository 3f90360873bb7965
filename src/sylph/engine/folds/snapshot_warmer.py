"""Snapshots made in passing: a log that nobody has folded for long is read once, a page at a time, for all who wait."""

import asyncio
import logging
from typing import Any

from sylph.core.errors import StoreError
from sylph.engine.folds import fold
from sylph.engine.folds.fold import Fold
from sylph.engine.folds.history import HISTORY_FOLD
from sylph.engine.folds.session_state import SESSION_FOLD
from sylph.engine.log.store import EventLog

# A log that has grown by fewer facts is read again each time: that costs less than it takes to write a snapshot.
STALE_AFTER_FACTS = 200

logger = logging.getLogger(__name__)


class SnapshotWarmer:
    """Sees to it that snapshots are near: of an imported session, one of an older version, one left by a crash."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._under_way: dict[tuple[str, str], asyncio.Task[None]] = {}

    async def warm_all(self) -> None:
        """The summary of every session that needs it."""
        for session in self._stale_sessions(SESSION_FOLD):
            await self.warm_session(session)

    def is_warm(self, session: str) -> bool:
        """Whether it is quickly said what a session is and does."""
        return not self._stale_sessions(SESSION_FOLD, session)

    async def warm_session(self, session: str) -> None:
        """The summary of a session, if it needs it. While this goes on, others have their turn."""
        await self._warm_fold(session, SESSION_FOLD)

    async def warm_with_history(self, session: str) -> None:
        """Also what its model is shown: for whoever opens it to write."""
        await self._warm_fold(session, SESSION_FOLD)
        await self._warm_fold(session, HISTORY_FOLD)

    async def _warm_fold(self, session: str, what: Fold[Any]) -> None:
        key = session, what.name
        if key not in self._under_way:
            if not self._stale_sessions(what, session):
                return
            task = self._under_way[key] = asyncio.create_task(self._build_snapshot(session, what))
            task.add_done_callback(lambda _: self._under_way.pop(key, None))
        # Who leaves takes nothing from the others that wait.
        await asyncio.shield(self._under_way[key])

    def _stale_sessions(self, what: Fold[Any], session: str = "") -> list[str]:
        return (
            []
            if self._log.read_only
            else self._log.stale_snapshots(what.name, what.version, STALE_AFTER_FACTS, session)
        )

    async def _build_snapshot(self, session: str, what: Fold[Any]) -> None:
        try:
            state, seq = await fold.load_in_pages(self._log, session, what)
            await fold.save_snapshot(self._log, session, what, state, seq)
        except StoreError as error:
            # Whoever needs the session itself will be told; a snapshot is only a shortcut.
            logger.warning("no snapshot of %s: %s", session, error)
