"""Events as they happen, from the log: server-sent events of one session, or of several by one stream."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Annotated, Any

import msgspec
from fastapi import Header, Query
from msgspec import Meta, Struct
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from sylph import __version__
from sylph.core.errors import NotFound
from sylph.interfaces.http.house import House
from sylph.interfaces.http.live import cursor
from sylph.interfaces.http.live.cursor import Cursor
from sylph.interfaces.http.live.frames import Several, Single
from sylph.interfaces.http.live.hub import Hub
from sylph.interfaces.http.live.lines import Line
from sylph.interfaces.http.live.messages import MOST, After, Heard, Name, Opened, Said, Subscribed
from sylph.interfaces.http.route import Routes
from sylph.interfaces.http.who import Who

routes = Routes("streams")
SSE = "text/event-stream"
HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    # A proxy that collects before it passes on would turn a stream into a download.
    (b"x-accel-buffering", b"no"),
]
RETRY = b"retry: 1000\n\n"
LAST = 0.2


class Place(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A session to follow."""

    id: Name
    after: After = 0


class StreamBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All sessions to follow from now on. One that is followed already goes on where it is."""

    sessions: Annotated[tuple[Place, ...], Meta(max_length=MOST)]


class StreamView(Struct, frozen=True, kw_only=True):
    """A stream, the sessions it follows, and the last fact of each that was put into it."""

    client: str
    sessions: dict[str, int]


class StreamSchema(Struct, frozen=True, kw_only=True):
    """JSON Schemas (2020-12): `said` of what streams and the WebSocket say, `heard` of what the WebSocket takes."""

    said: dict[str, Any]
    heard: dict[str, Any]


class Stream(Response):
    """A response that goes on as long as the client listens."""

    media_type = SSE

    def __init__(self, hub: Hub, line: Line) -> None:
        super().__init__()
        self._hub, self._line = hub, line

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - the base class says so
        async def write(data: bytes) -> None:
            await send({"type": "http.response.body", "body": data, "more_body": True})

        try:
            await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            await write(RETRY)
            await self._hub.serve(self._line, write, _left(receive))
        finally:
            self._line.reader.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST):
                await send({"type": "http.response.body", "body": b"", "more_body": False})


def _left(receive: Receive) -> Coroutine[Any, Any, None]:
    async def leave() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    return leave()


@routes.get("/sessions/{id}/events", scope="read", media=SSE, errors=(404, 409))
async def events(
    house: House,
    who: Who,
    id: str,
    after: Annotated[int, Query(ge=0, le=2**53, description="Only facts after this number.")] = 0,
    last_event_id: Annotated[str, Header(description="The last `id` that was got; it goes before `after`.")] = "",
) -> Response:
    """Follow a session: past facts first, then what happens, with no gap."""
    after = cursor.number(last_event_id) if last_event_id else after
    log = house.app.runtime.log
    session = id if log.head(id).seq else (await house.app.runtime.find(id)).id
    line = house.hub.line(who, Single(Cursor()))
    line.alone = True
    house.hub.follow(line, {session: after})
    return Stream(house.hub, line)


@routes.get("/stream", scope="read", media=SSE, errors=(404, 409))
async def stream(
    house: House,
    who: Who,
    sessions: Annotated[
        str,
        Query(
            max_length=cursor.LONGEST,
            description=f"Sessions to follow, {MOST} at the most, with commas between; `id:13` from fact 14 on.",
        ),
    ] = "",
    last_event_id: Annotated[
        str, Header(description="The last `id` that was got; it tells which sessions are followed, and from where.")
    ] = "",
) -> Response:
    """Follow several sessions, and what changes in all others, by one stream."""
    if last_event_id:
        places = cursor.read(last_event_id)
    else:
        asked = cursor.read_places(sessions, ",")
        places = Cursor(places={await house.hub.whole(session): after for session, after in asked.items()})
    line = house.hub.line(who, Several(Cursor(at=places.at)))
    await house.hub.look(line, places.at)
    house.hub.follow(line, places.places)
    opened = dict(line.reader.after)
    line.open(
        Opened(
            client=line.client,
            sessions=opened,
            beat_ms=house.hub.beat_ms,
            version=__version__,
            started=int(house.started * 1000),
        )
    )
    return Stream(house.hub, line)


@routes.get("/stream/schema", scope=None, gives=StreamSchema)
async def schema() -> StreamSchema:
    """Get the form of all messages of streams and of the WebSocket, but for the events of the log."""
    return StreamSchema(said=shape(Said), heard=shape(Heard))


def shape(messages: Any) -> dict[str, Any]:
    (found,), parts = msgspec.json.schema_components([messages], ref_template="#/$defs/{name}")
    return {**found, "$defs": parts}


@routes.post(
    "/stream/{client}",
    scope="read",
    gives=StreamView,
    errors=(404, 409),
    example=StreamBody(sessions=(Place(id="bcdfghjkmnpq", after=13),)),
    answer=StreamView(client="xzbcdfghjkmn", sessions={"bcdfghjkmnpq": 13}),
)
async def subscribe(house: House, who: Who, client: str, body: StreamBody) -> StreamView:
    """Change which sessions an open stream follows; the stream itself says so, too."""
    line = house.hub.find(client, who)
    if line is None:
        raise NotFound(f"There is no open stream {client!r}.", next=["open one: GET /api/v1/stream"])
    wanted = {await house.hub.whole(place.id): place.after for place in body.sessions}
    for session in line.reader.after.keys() - wanted.keys():
        line.leave(session)
    house.hub.follow(line, {id: after for id, after in wanted.items() if id not in line.reader.after})
    now = dict(line.reader.after)
    line.say(Subscribed(sessions=now))
    return StreamView(client=client, sessions=now)
