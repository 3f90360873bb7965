"""Amazon's binary framing, whole and damaged."""

import struct
import zlib

import pytest
from tests.model_server.bedrock import frame

from sylph.core.errors import ProviderError
from sylph.providers.stream.aws_event_stream import EventStreamParser

ONE = frame("contentBlockDelta", {"delta": {"text": "世界"}})
# A message of the vendor's own examples: no headers, no payload.
EMPTY = bytes.fromhex("000000100000000005c248eb7d98c8ff")


@pytest.mark.parametrize("size", [1, 2, 7, 64, 10_000])
def test_messages_come_out_however_they_are_cut(size: int) -> None:
    frames, data = EventStreamParser(), ONE * 3 + EMPTY
    found = [each for at in range(0, len(data), size) for each in frames.feed(data[at : at + size])]
    assert len(found) == 4
    assert found[0].headers == {
        ":message-type": "event",
        ":event-type": "contentBlockDelta",
        ":content-type": "application/json",
    }
    assert found[0].payload == '{"delta": {"text": "世界"}}'.encode()
    assert (found[3].headers, found[3].payload) == ({}, b"")


def test_headers_of_every_type_are_passed_over() -> None:
    values = [b"\x00", b"\x01", b"\x02\x07", b"\x03\x00\x07", b"\x04\x00\x00\x00\x07", b"\x05" + bytes(8)]
    values += [b"\x06\x00\x02ab", b"\x08" + bytes(8), b"\x09" + bytes(16), b"\x07\x00\x02ab"]
    headers = b"".join(b"\x01%c%b" % (97 + at, value) for at, value in enumerate(values))
    assert EventStreamParser().feed(framed(headers))[0].headers == {"j": "ab"}


def framed(headers: bytes, payload: bytes = b"{}") -> bytes:
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    begun = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + payload
    return begun + struct.pack(">I", zlib.crc32(begun))


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 502 Bad Gateway",
        ONE[:8] + b"\x00\x00\x00\x00" + ONE[12:],
        ONE[:-1] + bytes([ONE[-1] ^ 1]),
        ONE[:40] + bytes([ONE[40] ^ 1]) + ONE[41:],
        framed(b"\x05ab"),
        framed(b"\x01a\x2a"),
        framed(b"\x01\xff\x07\x00\x00"),
        struct.pack(">III", 1 << 30, 0, zlib.crc32(struct.pack(">II", 1 << 30, 0))),
        struct.pack(">III", 15, 0, zlib.crc32(struct.pack(">II", 15, 0))),
    ],
    ids=["text", "prelude", "checksum", "flipped", "short", "type", "name", "huge", "tiny"],
)
def test_damage_is_noticed(data: bytes) -> None:
    with pytest.raises(ProviderError, match="damaged"):
        EventStreamParser().feed(data)
