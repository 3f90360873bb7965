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
from sylph.interfaces.http.house import House
from sylph.interfaces.http.openai.begin import Begun
from sylph.interfaces.http.openai.tale import Piece, Tale
from sylph.interfaces.http.problems import Denied

# Proxies and clients give up on what is silent for long; tools may be.
BEAT = 10.0
BEATS = b": working\n\n"


class Live(Struct, frozen=True, kw_only=True):
    """A request that waits for its reply."""

    house: House
    request: Request
    begun: Begun
    tale: Tale
    stays: bool
    """Whether the turn goes on where the client goes away."""

    async def pieces(self) -> AsyncGenerator[Piece | None, None]:
        """What is shown of the reply; None where nothing has come for a while."""
        number, tale = self.begun.number, self.tale
        watched = self.house.app.runtime.watch(self.begun.session, after=self.begun.seq - 1)
        gone, closing = asyncio.create_task(self._gone()), asyncio.create_task(self.house.closing.wait())
        coming: asyncio.Task[Event] | None = None
        try:
            while not tale.whole(number):
                coming = coming or asyncio.create_task(anext(watched))  # pyright: ignore[reportArgumentType]
                await asyncio.wait((coming, gone, closing), timeout=BEAT, return_when=asyncio.FIRST_COMPLETED)
                if coming.done():
                    at, piece = len(tale.replies) - 1, tale.see(coming.result())
                    coming = None
                    if piece and at == number:
                        yield piece
                elif gone.done():
                    raise Denied("Nobody waits for the answer any more.", kind="gone")
                elif closing.done():
                    raise Denied("The server is about to end; the turn goes on with its next start.", kind="closing")
                else:
                    yield None
        finally:
            with anyio.CancelScope(shield=True):
                for task in (gone, closing, coming):
                    if task:
                        task.cancel()
                await asyncio.wait([task for task in (gone, closing, coming) if task])
                await watched.aclose()
                if not tale.whole(number) and not self.house.closing.is_set() and not self.stays:
                    await self._stop()

    async def whole(self) -> Tale:
        """The turn, once the reply is whole."""
        async for _ in self.pieces():
            pass
        return self.tale

    async def _gone(self) -> None:
        while (await self.request.receive())["type"] != "http.disconnect":
            pass

    async def _stop(self) -> None:
        """Ends a turn that nobody waits for, as long as it is the one of this request."""
        runtime, session = self.house.app.runtime, self.begun.session
        with suppress(UserError, NotFound):
            summary = await runtime.find(session)
            if self.begun.input in summary.queue:
                await runtime.send(session, Withdraw(id=self.begun.input))
            elif summary.open_input == self.begun.input:
                await runtime.send(session, Interrupt(reason="the client has gone"))


def live(house: House, request: Request, begun: Begun, *, stays: bool) -> Live:
    tale = Tale(session=begun.session, input=begun.input, created=time.time_ns() // 1_000_000)
    return Live(house=house, request=request, begun=begun, tale=tale, stays=stays)
