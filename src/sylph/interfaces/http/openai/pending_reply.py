"""A reply as it comes: what is shown of a turn, until it is whole or nobody is there any more."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import suppress

import anyio
from msgspec import Struct
from starlette.requests import Request

from sylph.core.commands import Interrupt, Withdraw
from sylph.core.errors import NotFound, UserError
from sylph.core.events import Event
from sylph.interfaces.http.kit.problem_details import AccessDenied
from sylph.interfaces.http.openai.start import ReplyHandle
from sylph.interfaces.http.openai.turn_stream import ReplyPiece, TurnStream
from sylph.interfaces.http.state.server_state import ServerState

# Proxies and clients give up on what is silent for long; tools may be.
HEARTBEAT_SECONDS = 10.0
HEARTBEAT_COMMENT = b": working\n\n"


class PendingReply(Struct, frozen=True, kw_only=True):
    """A request that waits for its reply."""

    server: ServerState
    request: Request
    handle: ReplyHandle
    turn: TurnStream
    keep_running: bool
    """Whether the turn goes on where the client goes away."""

    async def stream_pieces(self) -> AsyncGenerator[ReplyPiece | None, None]:
        """What is shown of the reply; None where nothing has come for a while."""
        number, tale = self.handle.number, self.turn
        watched = self.server.app.runtime.watch(self.handle.session, after=self.handle.seq - 1)
        gone, closing = asyncio.create_task(self._wait_disconnect()), asyncio.create_task(self.server.closing.wait())
        coming: asyncio.Task[Event] | None = None
        try:
            while not tale.is_complete(number):
                coming = coming or asyncio.create_task(anext(watched))  # pyright: ignore[reportArgumentType]
                await asyncio.wait(
                    (coming, gone, closing), timeout=HEARTBEAT_SECONDS, return_when=asyncio.FIRST_COMPLETED
                )
                if coming.done():
                    at, piece = len(tale.replies) - 1, tale.apply_event(coming.result())
                    coming = None
                    if piece and at == number:
                        yield piece
                elif gone.done():
                    raise AccessDenied("Nobody waits for the answer any more.", kind="gone")
                elif closing.done():
                    raise AccessDenied(
                        "The server is about to end; the turn goes on with its next start.", kind="closing"
                    )
                else:
                    yield None
        finally:
            with anyio.CancelScope(shield=True):
                for task in (gone, closing, coming):
                    if task:
                        task.cancel()
                await asyncio.wait([task for task in (gone, closing, coming) if task])
                await watched.aclose()
                if not tale.is_complete(number) and not self.server.closing.is_set() and not self.keep_running:
                    await self._stop_turn()

    async def wait_complete(self) -> TurnStream:
        """The turn, once the reply is whole."""
        async for _ in self.stream_pieces():
            pass
        return self.turn

    async def _wait_disconnect(self) -> None:
        while (await self.request.receive())["type"] != "http.disconnect":
            pass

    async def _stop_turn(self) -> None:
        """Ends a turn that nobody waits for, as long as it is the one of this request."""
        runtime, session = self.server.app.runtime, self.handle.session
        with suppress(UserError, NotFound):
            summary = await runtime.find_session(session)
            if self.handle.input in summary.queue:
                await runtime.send(session, Withdraw(id=self.handle.input))
            elif summary.open_input == self.handle.input:
                await runtime.send(session, Interrupt(reason="the client has gone"))


def make_pending_reply(server: ServerState, request: Request, begun: ReplyHandle, *, stays: bool) -> PendingReply:
    tale = TurnStream(session=begun.session, input=begun.input, created=time.time_ns() // 1_000_000)
    return PendingReply(server=server, request=request, handle=begun, turn=tale, keep_running=stays)
