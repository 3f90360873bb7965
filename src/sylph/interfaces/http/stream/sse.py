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
from sylph.interfaces.http.hub import cursor
from sylph.interfaces.http.hub.cursor import StreamCursor
from sylph.interfaces.http.hub.frames import MultiplexedSseFraming, SessionSseFraming
from sylph.interfaces.http.hub.messages import (
    MAX_SESSIONS,
    After,
    Name,
    ServerMessage,
    StreamOpened,
    StreamSubscribed,
)
from sylph.interfaces.http.hub.stream_hub import StreamHub
from sylph.interfaces.http.hub.subscriber import StreamSubscriber
from sylph.interfaces.http.kit.principal import Principal
from sylph.interfaces.http.kit.route import RouteGroup
from sylph.interfaces.http.state.server_state import ServerState
from sylph.interfaces.http.stream.websocket_commands import ClientMessage

routes = RouteGroup("streams")
SSE = "text/event-stream"
HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    # A proxy that collects before it passes on would turn a stream into a download.
    (b"x-accel-buffering", b"no"),
]
RETRY_LINE = b"retry: 1000\n\n"
CLOSE_TIMEOUT = 0.2


class FollowedSession(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A session to follow."""

    id: Name
    after: After = 0


class StreamBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All sessions to follow from now on. One that is followed already goes on where it is."""

    sessions: Annotated[tuple[FollowedSession, ...], Meta(max_length=MAX_SESSIONS)]


class StreamView(Struct, frozen=True, kw_only=True):
    """A stream, the sessions it follows, and the last fact of each that was put into it."""

    client: str
    sessions: dict[str, int]


class StreamSchema(Struct, frozen=True, kw_only=True):
    """JSON Schemas (2020-12): `said` of what streams and the WebSocket say, `heard` of what the WebSocket takes."""

    said: dict[str, Any]
    heard: dict[str, Any]


class EventStreamResponse(Response):
    """A response that goes on as long as the client listens."""

    media_type = SSE

    def __init__(self, hub: StreamHub, line: StreamSubscriber) -> None:
        super().__init__()
        self._hub, self._line = hub, line

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - the base class says so
        async def write(data: bytes) -> None:
            await send({"type": "http.response.body", "body": data, "more_body": True})

        try:
            await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            await write(RETRY_LINE)
            await self._hub.serve_subscriber(self._line, write, _wait_disconnect(receive))
        finally:
            self._line.reader.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_TIMEOUT):
                await send({"type": "http.response.body", "body": b"", "more_body": False})


def _wait_disconnect(receive: Receive) -> Coroutine[Any, Any, None]:
    async def leave() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    return leave()


@routes.get("/sessions/{id}/events", scope="read", media=SSE, errors=(404, 409))
async def stream_session_events(
    server: ServerState,
    principal: Principal,
    id: str,
    after: Annotated[int, Query(ge=0, le=2**53, description="Only facts after this number.")] = 0,
    last_event_id: Annotated[str, Header(description="The last `id` that was got; it goes before `after`.")] = "",
) -> Response:
    """Follow a session: past facts first, then what happens, with no gap."""
    after = cursor.parse_fact_number(last_event_id) if last_event_id else after
    log = server.app.runtime.log
    session = id if log.head(id).seq else (await server.app.runtime.find_session(id)).id
    line = server.hub.new_subscriber(principal, SessionSseFraming(StreamCursor()))
    line.alone = True
    server.hub.follow_sessions(line, {session: after})
    return EventStreamResponse(server.hub, line)


@routes.get("/stream", scope="read", media=SSE, errors=(404, 409))
async def stream_events(
    server: ServerState,
    principal: Principal,
    sessions: Annotated[
        str,
        Query(
            max_length=cursor.MAX_LENGTH,
            description=(
                f"Sessions to follow, {MAX_SESSIONS} at the most, with commas between; `id:13` from fact 14 on."
            ),
        ),
    ] = "",
    last_event_id: Annotated[
        str, Header(description="The last `id` that was got; it tells which sessions are followed, and from where.")
    ] = "",
) -> Response:
    """Follow several sessions, and what changes in all others, by one stream."""
    if last_event_id:
        places = cursor.parse_cursor(last_event_id)
    else:
        asked = cursor.parse_positions(sessions, ",")
        places = StreamCursor(
            positions={await server.hub.resolve_session_id(session): after for session, after in asked.items()}
        )
    line = server.hub.new_subscriber(principal, MultiplexedSseFraming(StreamCursor(changed_at=places.changed_at)))
    await server.hub.watch_changes(line, places.changed_at)
    server.hub.follow_sessions(line, places.positions)
    opened = dict(line.reader.after)
    line.queue_first(
        StreamOpened(
            client=line.client,
            sessions=opened,
            beat_ms=server.hub.heartbeat_ms,
            version=__version__,
            started=int(server.started * 1000),
        )
    )
    return EventStreamResponse(server.hub, line)


@routes.get("/stream/schema", scope=None, gives=StreamSchema)
async def get_stream_schema() -> StreamSchema:
    """Get the form of all messages of streams and of the WebSocket, but for the events of the log."""
    return StreamSchema(said=message_schema(ServerMessage), heard=message_schema(ClientMessage))


def message_schema(messages: Any) -> dict[str, Any]:
    (found,), parts = msgspec.json.schema_components([messages], ref_template="#/$defs/{name}")
    return {**found, "$defs": parts}


@routes.post(
    "/stream/{client}",
    scope="read",
    gives=StreamView,
    errors=(404, 409),
    example=StreamBody(sessions=(FollowedSession(id="bcdfghjkmnpq", after=13),)),
    answer=StreamView(client="xzbcdfghjkmn", sessions={"bcdfghjkmnpq": 13}),
)
async def change_subscriptions(server: ServerState, principal: Principal, client: str, body: StreamBody) -> StreamView:
    """Change which sessions an open stream follows; the stream itself says so, too."""
    line = server.hub.find_subscriber(client, principal)
    if line is None:
        raise NotFound(f"There is no open stream {client!r}.", next=["open one: GET /api/v1/stream"])
    wanted = {await server.hub.resolve_session_id(place.id): place.after for place in body.sessions}
    for session in line.reader.after.keys() - wanted.keys():
        line.unfollow_session(session)
    server.hub.follow_sessions(line, {id: after for id, after in wanted.items() if id not in line.reader.after})
    now = dict(line.reader.after)
    line.queue_message(StreamSubscribed(sessions=now))
    return StreamView(client=client, sessions=now)
