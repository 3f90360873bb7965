"""Snapshots made in passing: a log that nobody has folded for long is read once, a page at a time, for all who wait."""

import asyncio
import logging
from typing import Any

from sylph.core.errors import StoreError
from sylph.engine import fold
from sylph.engine.fold import Fold
from sylph.engine.history import HISTORY
from sylph.engine.log import Log
from sylph.engine.summary import SUMMARY

# A log that has grown by fewer facts is read again each time: that costs less than it takes to write a snapshot.
FAR = 200

logger = logging.getLogger(__name__)


class Warmer:
    """Sees to it that snapshots are near: of an imported session, one of an older version, one left by a crash."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._under_way: dict[tuple[str, str], asyncio.Task[None]] = {}

    async def all(self) -> None:
        """The summary of every session that needs it."""
        for session in self._behind(SUMMARY):
            await self.one(session)

    def near(self, session: str) -> bool:
        """Whether it is quickly said what a session is and does."""
        return not self._behind(SUMMARY, session)

    async def one(self, session: str) -> None:
        """The summary of a session, if it needs it. While this goes on, others have their turn."""
        await self._warm(session, SUMMARY)

    async def both(self, session: str) -> None:
        """Also what its model is shown: for whoever opens it to write."""
        await self._warm(session, SUMMARY)
        await self._warm(session, HISTORY)

    async def _warm(self, session: str, what: Fold[Any]) -> None:
        key = session, what.name
        if key not in self._under_way:
            if not self._behind(what, session):
                return
            task = self._under_way[key] = asyncio.create_task(self._read(session, what))
            task.add_done_callback(lambda _: self._under_way.pop(key, None))
        # Who leaves takes nothing from the others that wait.
        await asyncio.shield(self._under_way[key])

    def _behind(self, what: Fold[Any], session: str = "") -> list[str]:
        return [] if self._log.read_only else self._log.behind(what.name, what.version, FAR, session)

    async def _read(self, session: str, what: Fold[Any]) -> None:
        try:
            state, seq = await fold.load_gently(self._log, session, what)
            await fold.save(self._log, session, what, state, seq)
        except StoreError as error:
            # Whoever needs the session itself will be told; a snapshot is only a shortcut.
            logger.warning("no snapshot of %s: %s", session, error)
