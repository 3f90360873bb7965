"""Events as they happen, from the log: server-sent events per session."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Annotated

from fastapi import Header, Query
from msgspec import Struct
from starlette.responses import Response, StreamingResponse

from sylph.core.commands import Send
from sylph.core.events import Event, line_of
from sylph.interfaces.http.house import House
from sylph.interfaces.http.route import Routes
from sylph.interfaces.http.who import Who

routes = Routes("streams")
SSE = "text/event-stream"
BEAT = 15.0


class MessageBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: str


class Kept(Struct, frozen=True, kw_only=True):
    id: str


@routes.post("/sessions/{id}/messages", scope="chat", gives=Kept, status=202, errors=(404, 409))
async def message(house: House, who: Who, id: str, body: MessageBody) -> Kept:
    """Say something to a session; it is answered in its stream."""
    session = (await house.app.runtime.find(id)).id
    return Kept(id=await house.app.runtime.send(session, Send(text=body.text, actor=who.actor)))


@routes.get("/sessions/{id}/events", scope="read", media=SSE, errors=(404,))
async def events(
    house: House,
    id: str,
    after: Annotated[int, Query(ge=0, description="Only facts after this number.")] = 0,
    last_event_id: Annotated[str, Header(max_length=30)] = "",
) -> Response:
    """Follow a session: past facts first, then what happens, with no gap."""
    session = (await house.app.runtime.find(id)).id
    after = int(last_event_id) if last_event_id.isdecimal() else after
    return StreamingResponse(follow(house, session, after), media_type=SSE)


async def follow(house: House, session: str, after: int) -> AsyncGenerator[bytes, None]:
    watched = house.app.runtime.watch(session, after=after)
    closing = asyncio.create_task(house.closing.wait())
    coming: asyncio.Task[Event] | None = None
    try:
        while not closing.done():
            coming = coming or asyncio.create_task(anext(watched))  # pyright: ignore[reportArgumentType]
            await asyncio.wait((coming, closing), timeout=BEAT, return_when=asyncio.FIRST_COMPLETED)
            if coming.done():
                yield framed(coming.result())
                coming = None
            elif not closing.done():
                yield b": beat\n\n"
    finally:
        closing.cancel()
        if coming:
            coming.cancel()
        await watched.aclose()


def framed(event: Event) -> bytes:
    number = b"id: %d\n" % event.seq if event.seq else b""
    return b"%sevent: %s\ndata: %s\n\n" % (number, event.type.encode(), line_of(event))
