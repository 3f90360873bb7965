"""Snapshots made in passing: a log that nobody has folded for long is read once, a page at a time, for all who wait."""

import asyncio
import logging

from sylph.core.errors import StoreError
from sylph.engine import fold
from sylph.engine.fold import Fold
from sylph.engine.log import Log
from sylph.engine.summary import SUMMARY, Summary

# A log that has grown by fewer facts is read again each time: that costs less than it takes to write a snapshot.
FAR = 200

logger = logging.getLogger(__name__)


class Warmer:
    """Sees to it that a summary is near: an imported session, one of an older version, one left by a crash."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._under_way: dict[str, asyncio.Task[None]] = {}

    async def all(self) -> None:
        """Every session that needs it."""
        for session in self._behind():
            await self.one(session)

    async def one(self, session: str) -> None:
        """One session, if it needs it. While this goes on, others have their turn."""
        if session not in self._under_way:
            if not self._behind(session):
                return
            self._under_way[session] = asyncio.create_task(self._warm(session, SUMMARY))
            self._under_way[session].add_done_callback(lambda _: self._under_way.pop(session, None))
        # Who leaves takes nothing from the others that wait.
        await asyncio.shield(self._under_way[session])

    def _behind(self, session: str = "") -> list[str]:
        return [] if self._log.read_only else self._log.behind(SUMMARY.name, SUMMARY.version, FAR, session)

    async def _warm(self, session: str, what: Fold[Summary]) -> None:
        try:
            state, seq = await fold.load_gently(self._log, session, what)
            await fold.save(self._log, session, what, state, seq)
        except StoreError as error:
            # Whoever needs the session itself will be told; a snapshot is only a shortcut.
            logger.warning("no snapshot of %s: %s", session, error)
