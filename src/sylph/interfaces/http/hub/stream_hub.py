"""Everybody who listens: each has a line, one clock keeps all lines alive, and whoever takes nothing is let go."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from msgspec import Struct
from starlette.websockets import WebSocketDisconnect

from sylph.core.errors import StoreError, SylphError
from sylph.core.ids import new_id
from sylph.engine.runtime.runtime import Runtime
from sylph.interfaces.http.hub.frames import StreamEventEncoder, StreamFraming
from sylph.interfaces.http.hub.session_changes import SessionChangeFeed
from sylph.interfaces.http.hub.subscriber import StreamSubscriber, Write
from sylph.interfaces.http.kit.principal import Principal
from sylph.interfaces.http.kit.problem_details import AccessDenied

logger = logging.getLogger("sylph.http")
# So long is the id of a session.
SESSION_ID_LENGTH = 12


class StreamTiming(Struct, frozen=True, kw_only=True):
    """In seconds."""

    tick: float = 1.0
    heartbeat: float = 15.0
    """So long nothing is said before a sign of life."""
    write_timeout: float = 60.0
    """So long a client may take nothing before it is let go."""
    max_streams: int = 512
    """Lines at the same time."""


class StreamHub:
    def __init__(self, runtime: Runtime, pace: StreamTiming | None = None) -> None:
        self.runtime, self.pace = runtime, pace or StreamTiming()
        self._press = StreamEventEncoder()
        self._board = SessionChangeFeed(runtime, self._report_change)
        self._lines: dict[str, StreamSubscriber] = {}
        self._pumps: dict[str, asyncio.Task[None]] = {}
        self._late: dict[tuple[str, str], int] = {}
        self._version = -1
        self._ended = False
        self._clock: asyncio.Task[None] | None = None

    @property
    def heartbeat_ms(self) -> int:
        return round(self.pace.heartbeat * 1000)

    def new_subscriber(self, principal: Principal, frames: StreamFraming) -> StreamSubscriber:
        """A new line. Raises Denied where there are too many already."""
        if len(self._lines) >= self.pace.max_streams:
            raise AccessDenied(
                f"{self.pace.max_streams} streams are open already.",
                kind="too_many",
                next=["close some of them", "follow several sessions by one stream: GET /api/v1/stream"],
            )
        return StreamSubscriber(new_id(), principal, self.runtime.bus.open_reader(), frames)

    def find_subscriber(self, client: str, principal: Principal) -> StreamSubscriber | None:
        line = self._lines.get(client)
        return line if line and line.principal.id == principal.id else None

    async def resolve_session_id(self, session: str) -> str:
        """The id of a session by its beginning or `last`. One that is whole is taken as it is: it may be gone."""
        if len(session) >= SESSION_ID_LENGTH or self.runtime.log.head(session).seq:
            return session
        return (await self.runtime.find_session(session)).id

    def follow_sessions(self, line: StreamSubscriber, places: dict[str, int]) -> None:
        for session, after in places.items():
            line.follow_session(session, after, self.runtime.log.head(session).seq)

    async def watch_changes(self, line: StreamSubscriber, since: int = 0) -> None:
        """Has it be told of changes to all sessions, beginning with those it does not know of."""
        self._board.start()
        await self._board.poll_log()
        line.noted = {}
        for session in await self._board.sessions_to_report(since):
            line.queue_change(session)

    def unwatch_changes(self, line: StreamSubscriber) -> None:
        line.noted = None
        self._stop_unused()

    async def serve_subscriber(self, line: StreamSubscriber, write: Write, left: Coroutine[Any, Any, None]) -> None:
        """Returns when the client has left, is let go, or the server ends."""
        pump = asyncio.create_task(line.run_writer(write, self._press, self._board))
        leaving = asyncio.create_task(left)
        self._lines[line.client], self._pumps[line.client] = line, pump
        self._clock = self._clock or asyncio.create_task(self._run_clock())
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
            self._stop_unused()
        for end in ends:
            if isinstance(end, Exception) and not isinstance(end, WebSocketDisconnect | OSError):
                logger.error("a stream broke off: %s", end, exc_info=None if isinstance(end, SylphError) else end)

    def end_all(self) -> None:
        """The server ends: so do all lines, also those in the middle of a write that nobody takes."""
        self._ended = True
        for pump in self._pumps.values():
            pump.cancel()

    async def _run_clock(self) -> None:
        """The clock of all lines."""
        while True:
            await asyncio.sleep(self.pace.tick)
            self._keep_alive(asyncio.get_running_loop().time())
            try:
                self._check_log()
                if self._board.open:
                    await self._board.poll_log()
            except StoreError as error:
                logger.warning("the store cannot be looked at: %s", error)

    def _keep_alive(self, now: float) -> None:
        for line in list(self._lines.values()):
            if line.blocked:
                if now - line.blocked > self.pace.write_timeout:
                    logger.info("a client took nothing for %.0f s and is let go", self.pace.write_timeout)
                    self._pumps[line.client].cancel()
            elif now - line.told >= self.pace.heartbeat:
                line.queue_heartbeat()

    def _check_log(self) -> None:
        """What other processes write is told by nobody: the log is looked at where it stays ahead of a reader."""
        version = self.runtime.log.data_version()
        if version == self._version and not self._late:
            return
        self._version = version
        late, self._late = self._late, {}
        for line in self._lines.values():
            for session, after in list(line.reader.after.items()) if not line.blocked else ():
                head = self.runtime.log.head(session).seq
                if not head:
                    line.report_gone(session)
                elif head <= after:
                    continue
                elif late.get((line.client, session)) == after:
                    line.reader.recheck_log(session)
                else:
                    self._late[line.client, session] = after

    def report_config_change(self) -> None:
        """The configuration is another: whoever looks at everything is told."""
        for line in self._lines.values():
            line.queue_config_change()

    def _report_change(self, session: str) -> None:
        for line in self._lines.values():
            line.queue_change(session)

    def _stop_unused(self) -> None:
        if not any(line.noted is not None for line in self._lines.values()):
            self._board.stop()
        if not self._lines and self._clock:
            self._clock.cancel()
            self._clock = None
