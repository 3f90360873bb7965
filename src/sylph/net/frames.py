"""WebSocket frames (RFC 6455), the client's side: what goes out masked, what comes in checked and put together."""

from typing import NamedTuple

from sylph.core.errors import ProviderError

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
CONTROL = 8
SMALL = 125
KNOWN = {0, TEXT, BINARY, CLOSE, PING, PONG}


class Message(NamedTuple):
    """A whole message, or a control frame."""

    kind: int
    data: bytes


def frame(kind: int, data: bytes, mask: bytes) -> bytes:
    """One frame from the client, which is always masked."""
    size = len(data)
    if size <= SMALL:
        head = bytes((0x80 | kind, 0x80 | size))
    elif size < 1 << 16:
        head = bytes((0x80 | kind, 0x80 | 126)) + size.to_bytes(2, "big")
    else:
        head = bytes((0x80 | kind, 0x80 | 127)) + size.to_bytes(8, "big")
    return head + mask + masked(data, mask)


def masked(data: bytes, mask: bytes) -> bytes:
    """All at once as one large number: a loop over the bytes would take seconds for a long prompt."""
    size = len(data)
    key = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(data, "little") ^ int.from_bytes(key, "little")).to_bytes(size, "little")


class Frames:
    """Feed it bytes; it gives the messages they complete. Raises ProviderError where the server breaks the rules."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = bytearray()
        self._kind = 0
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[Message]:
        self._held += data
        found: list[Message] = []
        while (message := self._frame()) is not None:
            if message.kind >= 0:
                found.append(message)
        return found

    def _frame(self) -> Message | None:
        """The next frame: a message, one of kind -1 if the message goes on, or None until more has come."""
        if len(self._held) < 2:
            return None
        first, second = self._held[0], self._held[1]
        kind, last, size, at = first & 0x0F, bool(first & 0x80), second & 0x7F, 2
        self._check(first, second, kind)
        if size >= 126:
            width = 2 if size == 126 else 8
            if len(self._held) < at + width:
                return None
            size, at = int.from_bytes(self._held[at : at + width], "big"), at + width
        if self._size + size > self._limit:
            raise broken(f"it sends a message of more than {self._limit:,} bytes")
        if len(self._held) < at + size:
            return None
        data = bytes(self._held[at : at + size])
        del self._held[: at + size]
        return Message(kind, data) if kind >= CONTROL else self._part(kind, data, last=last)

    def _check(self, first: int, second: int, kind: int) -> None:
        if first & 0x70 or kind not in KNOWN:
            raise broken("it sends frames that nobody asked for")
        if second & 0x80:
            raise broken("it masks its frames")
        if kind >= CONTROL and (not first & 0x80 or second & 0x7F > SMALL):
            raise broken("it sends a control frame that is too long or in parts")

    def _part(self, kind: int, data: bytes, *, last: bool) -> Message:
        if bool(kind) == bool(self._kind):
            raise broken("it mixes up the parts of its messages")
        self._kind = self._kind or kind
        self._parts.append(data)
        self._size += len(data)
        if not last:
            return Message(-1, b"")
        whole = Message(self._kind, b"".join(self._parts))
        self._kind, self._size = 0, 0
        self._parts.clear()
        return whole


def broken(why: str) -> ProviderError:
    return ProviderError("format", f"The server does not keep to the WebSocket protocol: {why}.")
