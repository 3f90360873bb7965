"""Everybody who listens: each has a line, one clock keeps all lines alive, and whoever takes nothing is let go."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from msgspec import Struct
from starlette.websockets import WebSocketDisconnect

from sylph.core.errors import StoreError, SylphError
from sylph.core.ids import new_id
from sylph.engine.runtime import Runtime
from sylph.interfaces.http.live.board import Board
from sylph.interfaces.http.live.frames import Frames, Press
from sylph.interfaces.http.live.lines import Line, Write
from sylph.interfaces.http.problems import Denied
from sylph.interfaces.http.who import Who

logger = logging.getLogger("sylph.http")
# So long is the id of a session.
WHOLE = 12


class Pace(Struct, frozen=True, kw_only=True):
    """In seconds."""

    tick: float = 1.0
    beat: float = 15.0
    """So long nothing is said before a sign of life."""
    patience: float = 60.0
    """So long a client may take nothing before it is let go."""
    most: int = 512
    """Lines at the same time."""


class Hub:
    def __init__(self, runtime: Runtime, pace: Pace | None = None) -> None:
        self.runtime, self.pace = runtime, pace or Pace()
        self._press = Press()
        self._board = Board(runtime, self._note)
        self._lines: dict[str, Line] = {}
        self._pumps: dict[str, asyncio.Task[None]] = {}
        self._late: dict[tuple[str, str], int] = {}
        self._version = -1
        self._ended = False
        self._clock: asyncio.Task[None] | None = None

    @property
    def beat_ms(self) -> int:
        return round(self.pace.beat * 1000)

    def line(self, who: Who, frames: Frames) -> Line:
        """A new line. Raises Denied where there are too many already."""
        if len(self._lines) >= self.pace.most:
            raise Denied(
                f"{self.pace.most} streams are open already.",
                kind="too_many",
                next=["close some of them", "follow several sessions by one stream: GET /api/v1/stream"],
            )
        return Line(new_id(), who, self.runtime.bus.reader(), frames)

    def find(self, client: str, who: Who) -> Line | None:
        line = self._lines.get(client)
        return line if line and line.who.id == who.id else None

    async def whole(self, session: str) -> str:
        """The id of a session by its beginning or `last`. One that is whole is taken as it is: it may be gone."""
        if len(session) >= WHOLE or self.runtime.log.head(session).seq:
            return session
        return (await self.runtime.find(session)).id

    def follow(self, line: Line, places: dict[str, int]) -> None:
        for session, after in places.items():
            line.follow(session, after, self.runtime.log.head(session).seq)

    async def look(self, line: Line, since: int = 0) -> None:
        """Has it be told of changes to all sessions, beginning with those it does not know of."""
        self._board.start()
        await self._board.poll()
        line.noted = {}
        for session in await self._board.wanting(since):
            line.note(session)

    def look_away(self, line: Line) -> None:
        line.noted = None
        self._rest()

    async def serve(self, line: Line, write: Write, left: Coroutine[Any, Any, None]) -> None:
        """Returns when the client has left, is let go, or the server ends."""
        pump = asyncio.create_task(line.pump(write, self._press, self._board))
        leaving = asyncio.create_task(left)
        self._lines[line.client], self._pumps[line.client] = line, pump
        self._clock = self._clock or asyncio.create_task(self._run())
        if line.noted is not None:
            self._board.start()
        if self._ended:
            pump.cancel()
        try:
            await asyncio.wait({pump, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            line.reader.close()
            del self._lines[line.client], self._pumps[line.client]
            for task in (pump, leaving):
                task.cancel()
            ends = await asyncio.gather(pump, leaving, return_exceptions=True)
            self._rest()
        for end in ends:
            if isinstance(end, Exception) and not isinstance(end, WebSocketDisconnect | OSError):
                logger.error("a stream broke off: %s", end, exc_info=None if isinstance(end, SylphError) else end)

    def end(self) -> None:
        """The server ends: so do all lines, also those in the middle of a write that nobody takes."""
        self._ended = True
        for pump in self._pumps.values():
            pump.cancel()

    async def _run(self) -> None:
        """The clock of all lines."""
        while True:
            await asyncio.sleep(self.pace.tick)
            self._keep_alive(asyncio.get_running_loop().time())
            try:
                self._look_around()
                if self._board.open:
                    await self._board.poll()
            except StoreError as error:
                logger.warning("the store cannot be looked at: %s", error)

    def _keep_alive(self, now: float) -> None:
        for line in list(self._lines.values()):
            if line.blocked:
                if now - line.blocked > self.pace.patience:
                    logger.info("a client took nothing for %.0f s and is let go", self.pace.patience)
                    self._pumps[line.client].cancel()
            elif now - line.told >= self.pace.beat:
                line.beat()

    def _look_around(self) -> None:
        """What other processes write is told by nobody: the log is looked at where it stays ahead of a reader."""
        version = self.runtime.log.version()
        if version == self._version and not self._late:
            return
        self._version = version
        late, self._late = self._late, {}
        for line in self._lines.values():
            for session, after in list(line.reader.after.items()) if not line.blocked else ():
                head = self.runtime.log.head(session).seq
                if not head:
                    line.gone(session)
                elif head <= after:
                    continue
                elif late.get((line.client, session)) == after:
                    line.reader.look(session)
                else:
                    self._late[line.client, session] = after

    def configured(self) -> None:
        """The configuration is another: whoever looks at everything is told."""
        for line in self._lines.values():
            line.configured()

    def _note(self, session: str) -> None:
        for line in self._lines.values():
            line.note(session)

    def _rest(self) -> None:
        if not any(line.noted is not None for line in self._lines.values()):
            self._board.stop()
        if not self._lines and self._clock:
            self._clock.cancel()
            self._clock = None
