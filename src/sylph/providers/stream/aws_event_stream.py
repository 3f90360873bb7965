"""Amazon's binary event stream: messages with headers and checksums, out of bytes that are cut anywhere."""

import struct
import zlib
from typing import NamedTuple

from sylph.core.errors import ProviderError

PRELUDE_SIZE, CHECKSUM_SIZE = 12, 4
# The vendor's own limit is 16 MB for a message and 128 kB for its headers.
MESSAGE_LIMIT = 25 << 20
# How many bytes a header's value of each type has; -1: its length comes first.
HEADER_VALUE_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 6: -1, 7: -1, 8: 8, 9: 16}


class EventStreamMessage(NamedTuple):
    """One message. `headers` are those that are text."""

    headers: dict[str, str]
    payload: bytes


class EventStreamParser:
    """Feed it bytes; it gives the messages they complete."""

    def __init__(self) -> None:
        self._held = bytearray()

    @property
    def pending_bytes(self) -> bytes:
        """What has come of a message that is not complete."""
        return bytes(self._held[:300])

    def feed(self, data: bytes) -> list[EventStreamMessage]:
        self._held += data
        frames: list[EventStreamMessage] = []
        while (size := self._next_size()) and len(self._held) >= size:
            frames.append(_parse_message(bytes(self._held[:size])))
            del self._held[:size]
        return frames

    def _next_size(self) -> int:
        """How long the next message is, once that can be told and is true."""
        if len(self._held) < PRELUDE_SIZE:
            return 0
        total, headers, check = struct.unpack_from(">III", self._held)
        if zlib.crc32(self._held[:8]) != check or not PRELUDE_SIZE + CHECKSUM_SIZE + headers <= total <= MESSAGE_LIMIT:
            raise ProviderError("format", "The event stream is damaged: the beginning of a message is not true.")
        return total


def _parse_message(message: bytes) -> EventStreamMessage:
    if zlib.crc32(message[:-CHECKSUM_SIZE]) != struct.unpack(">I", message[-CHECKSUM_SIZE:])[0]:
        raise ProviderError("format", "The event stream is damaged: a checksum is wrong.")
    end = PRELUDE_SIZE + struct.unpack_from(">I", message, 4)[0]
    try:
        headers = _parse_headers(message[PRELUDE_SIZE:end])
    except (struct.error, KeyError, IndexError, UnicodeDecodeError):
        raise ProviderError("format", "The event stream is damaged: its headers cannot be read.") from None
    return EventStreamMessage(headers, message[end:-CHECKSUM_SIZE])


def _parse_headers(data: bytes) -> dict[str, str]:
    headers: dict[str, str] = {}
    at = 0
    while at < len(data):
        end = at + 1 + data[at]
        name, kind = data[at + 1 : end].decode(), data[end]
        at = end + 1
        size = HEADER_VALUE_SIZES[kind]
        if size < 0:
            size = struct.unpack_from(">H", data, at)[0]
            at += 2
        if kind == 7:
            headers[name] = data[at : at + size].decode()
        at += size
    return headers
