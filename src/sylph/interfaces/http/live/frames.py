"""How what is told looks on the wire: as server-sent events of one session or of several, or as WebSocket messages."""

import time
from collections import deque
from typing import Protocol

import msgspec

from sylph.core.events import Event, line_of
from sylph.interfaces.http.live.cursor import Cursor
from sylph.interfaces.http.live.messages import Beat, Changed, Message

# What waits is written together, up to about so many bytes.
GULP = 65_536
# Larger ones are made anew for each reader instead of being kept.
KEPT, LARGE = 64, 8192
COMMENT = b": beat\n\n"


class Press:
    """Encodes each event once, however many read it."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Event, bytes]] = {}

    def line(self, event: Event) -> bytes:
        known = self._kept.get(id(event))
        if known and known[0] is event:
            return known[1]
        made = line_of(event)
        if len(made) <= LARGE:
            if len(self._kept) >= KEPT:
                self._kept.clear()
            self._kept[id(event)] = (event, made)
        return made


class Frames(Protocol):
    cursor: Cursor
    """Where the client stands when it has everything that was framed."""

    def event(self, event: Event, line: bytes) -> bytes: ...
    def message(self, message: Message | Changed) -> bytes: ...
    def beat(self) -> bytes: ...
    def gulp(self, waiting: deque[bytes]) -> bytes:
        """What is written next, taken from what waits."""
        ...


class Single:
    """One session: the `id` of a fact is its number."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor

    def event(self, event: Event, line: bytes) -> bytes:
        number = b"id: %d\n" % event.seq if event.seq else b""
        return b"%sevent: %s\ndata: %s\n\n" % (number, event.type.encode(), line)

    def message(self, message: Message | Changed) -> bytes:
        return _framed(b"", message)

    def beat(self) -> bytes:
        return COMMENT

    def gulp(self, waiting: deque[bytes]) -> bytes:
        return _joined(waiting)


class Several:
    """Several sessions: the `id` is the place in all of them."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor

    def event(self, event: Event, line: bytes) -> bytes:
        if not event.seq:
            return b"event: %s\ndata: %s\n\n" % (event.type.encode(), line)
        self.cursor.places[event.session] = event.seq
        return b"id: %s\nevent: %s\ndata: %s\n\n" % (self.cursor.text().encode(), event.type.encode(), line)

    def message(self, message: Message | Changed) -> bytes:
        if isinstance(message, Changed):
            self.cursor.at = max(self.cursor.at, message.updated)
        return _framed(b"id: %s\n" % self.cursor.text().encode(), message)

    def beat(self) -> bytes:
        return COMMENT

    def gulp(self, waiting: deque[bytes]) -> bytes:
        return _joined(waiting)


class Texts:
    """The messages of a WebSocket, one after the other."""

    def __init__(self) -> None:
        self.cursor = Cursor()

    def event(self, event: Event, line: bytes) -> bytes:  # noqa: ARG002 - the same for all kinds of frames
        return line

    def message(self, message: Message | Changed) -> bytes:
        return msgspec.json.encode(message)

    def beat(self) -> bytes:
        return self.message(Beat(ts=time.time_ns() // 1_000_000))

    def gulp(self, waiting: deque[bytes]) -> bytes:
        return waiting.popleft()


def _framed(id: bytes, message: Message | Changed) -> bytes:
    return b"%sevent: %s\ndata: %s\n\n" % (id, _tag(message).encode(), msgspec.json.encode(message))


def _tag(message: Message | Changed) -> str:
    return str(type(message).__struct_config__.tag)


def _joined(waiting: deque[bytes]) -> bytes:
    if len(waiting) == 1:
        return waiting.popleft()
    found: list[bytes] = []
    size = 0
    while waiting and size < GULP:
        found.append(waiting.popleft())
        size += len(found[-1])
    return b"".join(found)
