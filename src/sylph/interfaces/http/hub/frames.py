"""How what is told looks on the wire: as server-sent events of one session or of several, or as WebSocket messages."""

import time
from collections import deque
from typing import Protocol

import msgspec

from sylph.core.events import Event, encode_event
from sylph.interfaces.http.hub.cursor import StreamCursor
from sylph.interfaces.http.hub.messages import SessionChangedMessage, StreamHeartbeat, StreamMessage

# What waits is written together, up to about so many bytes.
CHUNK_BYTES = 65_536
# Larger ones are made anew for each reader instead of being kept.
MAX_CACHED, MAX_CACHED_BYTES = 64, 8192
SSE_HEARTBEAT = b": beat\n\n"


class StreamEventEncoder:
    """Encodes each event once, however many read it."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Event, bytes]] = {}

    def encode_event(self, event: Event) -> bytes:
        known = self._kept.get(id(event))
        if known and known[0] is event:
            return known[1]
        made = encode_event(event)
        if len(made) <= MAX_CACHED_BYTES:
            if len(self._kept) >= MAX_CACHED:
                self._kept.clear()
            self._kept[id(event)] = (event, made)
        return made


class StreamFraming(Protocol):
    cursor: StreamCursor
    """Where the client stands when it has everything that was framed."""

    def frame_event(self, event: Event, line: bytes) -> bytes: ...
    def frame_message(self, message: StreamMessage | SessionChangedMessage) -> bytes: ...
    def frame_heartbeat(self) -> bytes: ...
    def next_chunk(self, waiting: deque[bytes]) -> bytes:
        """What is written next, taken from what waits."""
        ...


class SessionSseFraming:
    """One session: the `id` of a fact is its number."""

    def __init__(self, cursor: StreamCursor) -> None:
        self.cursor = cursor

    def frame_event(self, event: Event, line: bytes) -> bytes:
        number = b"id: %d\n" % event.seq if event.seq else b""
        return b"%sevent: %s\ndata: %s\n\n" % (number, event.type.encode(), line)

    def frame_message(self, message: StreamMessage | SessionChangedMessage) -> bytes:
        return _sse_message(b"", message)

    def frame_heartbeat(self) -> bytes:
        return SSE_HEARTBEAT

    def next_chunk(self, waiting: deque[bytes]) -> bytes:
        return _join_waiting(waiting)


class MultiplexedSseFraming:
    """Several sessions: the `id` is the place in all of them."""

    def __init__(self, cursor: StreamCursor) -> None:
        self.cursor = cursor

    def frame_event(self, event: Event, line: bytes) -> bytes:
        if not event.seq:
            return b"event: %s\ndata: %s\n\n" % (event.type.encode(), line)
        self.cursor.positions[event.session] = event.seq
        return b"id: %s\nevent: %s\ndata: %s\n\n" % (self.cursor.to_text().encode(), event.type.encode(), line)

    def frame_message(self, message: StreamMessage | SessionChangedMessage) -> bytes:
        if isinstance(message, SessionChangedMessage):
            self.cursor.changed_at = max(self.cursor.changed_at, message.updated)
        return _sse_message(b"id: %s\n" % self.cursor.to_text().encode(), message)

    def frame_heartbeat(self) -> bytes:
        return SSE_HEARTBEAT

    def next_chunk(self, waiting: deque[bytes]) -> bytes:
        return _join_waiting(waiting)


class WebSocketFraming:
    """The messages of a WebSocket, one after the other."""

    def __init__(self) -> None:
        self.cursor = StreamCursor()

    def frame_event(self, event: Event, line: bytes) -> bytes:  # noqa: ARG002 - the same for all kinds of frames
        return line

    def frame_message(self, message: StreamMessage | SessionChangedMessage) -> bytes:
        return msgspec.json.encode(message)

    def frame_heartbeat(self) -> bytes:
        return self.frame_message(StreamHeartbeat(ts=time.time_ns() // 1_000_000))

    def next_chunk(self, waiting: deque[bytes]) -> bytes:
        return waiting.popleft()


def _sse_message(id: bytes, message: StreamMessage | SessionChangedMessage) -> bytes:
    return b"%sevent: %s\ndata: %s\n\n" % (id, _message_type(message).encode(), msgspec.json.encode(message))


def _message_type(message: StreamMessage | SessionChangedMessage) -> str:
    return str(type(message).__struct_config__.tag)


def _join_waiting(waiting: deque[bytes]) -> bytes:
    if len(waiting) == 1:
        return waiting.popleft()
    found: list[bytes] = []
    size = 0
    while waiting and size < CHUNK_BYTES:
        found.append(waiting.popleft())
        size += len(found[-1])
    return b"".join(found)
