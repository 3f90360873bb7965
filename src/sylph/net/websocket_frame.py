"""WebSocket frames (RFC 6455), the client's side: what goes out masked, what comes in checked and put together."""

from typing import NamedTuple

from sylph.core.errors import ProviderError

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
CONTROL = 8
SMALL = 125
KNOWN = {0, TEXT, BINARY, CLOSE, PING, PONG}


class WebSocketMessage(NamedTuple):
    """A whole message, or a control frame."""

    kind: int
    data: bytes


def encode_frame(kind: int, data: bytes, mask: bytes) -> bytes:
    """One frame from the client, which is always masked."""
    size = len(data)
    if size <= SMALL:
        head = bytes((0x80 | kind, 0x80 | size))
    elif size < 1 << 16:
        head = bytes((0x80 | kind, 0x80 | 126)) + size.to_bytes(2, "big")
    else:
        head = bytes((0x80 | kind, 0x80 | 127)) + size.to_bytes(8, "big")
    return head + mask + apply_mask(data, mask)


def apply_mask(data: bytes, mask: bytes) -> bytes:
    """All at once as one large number: a loop over the bytes would take seconds for a long prompt."""
    size = len(data)
    key = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(data, "little") ^ int.from_bytes(key, "little")).to_bytes(size, "little")


class WebSocketDecoder:
    """Feed it bytes; it gives the messages they complete. Raises ProviderError where the server breaks the rules."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = bytearray()
        self._kind = 0
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[WebSocketMessage]:
        self._held += data
        found: list[WebSocketMessage] = []
        while (message := self._next_frame()) is not None:
            if message.kind >= 0:
                found.append(message)
        return found

    def _next_frame(self) -> WebSocketMessage | None:
        """The next frame: a message, one of kind -1 if the message goes on, or None until more has come."""
        if len(self._held) < 2:
            return None
        first, second = self._held[0], self._held[1]
        kind, last, size, at = first & 0x0F, bool(first & 0x80), second & 0x7F, 2
        self._check_header(first, second, kind)
        if size >= 126:
            width = 2 if size == 126 else 8
            if len(self._held) < at + width:
                return None
            size, at = int.from_bytes(self._held[at : at + width], "big"), at + width
        if self._size + size > self._limit:
            raise protocol_error(f"it sends a message of more than {self._limit:,} bytes")
        if len(self._held) < at + size:
            return None
        data = bytes(self._held[at : at + size])
        del self._held[: at + size]
        return WebSocketMessage(kind, data) if kind >= CONTROL else self._add_fragment(kind, data, last=last)

    def _check_header(self, first: int, second: int, kind: int) -> None:
        if first & 0x70 or kind not in KNOWN:
            raise protocol_error("it sends frames that nobody asked for")
        if second & 0x80:
            raise protocol_error("it masks its frames")
        if kind >= CONTROL and (not first & 0x80 or second & 0x7F > SMALL):
            raise protocol_error("it sends a control frame that is too long or in parts")

    def _add_fragment(self, kind: int, data: bytes, *, last: bool) -> WebSocketMessage:
        if bool(kind) == bool(self._kind):
            raise protocol_error("it mixes up the parts of its messages")
        self._kind = self._kind or kind
        self._parts.append(data)
        self._size += len(data)
        if not last:
            return WebSocketMessage(-1, b"")
        whole = WebSocketMessage(self._kind, b"".join(self._parts))
        self._kind, self._size = 0, 0
        self._parts.clear()
        return whole


def protocol_error(why: str) -> ProviderError:
    return ProviderError("format", f"The server does not keep to the WebSocket protocol: {why}.")
