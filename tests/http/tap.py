"""Server-sent events over a bare socket, which can be cut anywhere: in the middle of an event, a chunk, a name."""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from tests.http.served import Told


@dataclass
class Tap:
    """Open until it is cut. It reads no more than so many bytes at a time."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    head: str
    gulp: int = 65_536
    _raw: bytearray = field(default_factory=bytearray)
    _text: bytearray = field(default_factory=bytearray)
    _over: bool = False

    @classmethod
    async def open(cls, url: str, path: str, headers: dict[str, str], gulp: int = 65_536) -> "Tap":
        place = urlsplit(url)
        line = socket.create_connection((place.hostname, place.port))
        # The kernel is not to read for somebody who does not.
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, gulp)
        reader, writer = await asyncio.open_connection(sock=line, limit=gulp)
        lines = [
            f"GET {path} HTTP/1.1",
            f"Host: {place.netloc}",
            *(f"{name}: {value}" for name, value in headers.items()),
        ]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except BaseException:
            # Also by whoever does not wait any longer.
            writer.transport.abort()
            raise
        return cls(reader, writer, head.decode(), gulp)

    def cut(self) -> None:
        self.writer.transport.abort()

    def pause(self) -> None:
        self._transport.pause_reading()

    def resume(self) -> None:
        self._transport.resume_reading()

    @property
    def _transport(self) -> asyncio.Transport:
        assert isinstance(self.writer.transport, asyncio.Transport)
        return self.writer.transport

    async def events(self, most: int = 10**9) -> AsyncGenerator[Told, None]:
        """Until so many bytes were read, or somebody else cuts it."""
        while True:
            while (end := self._text.find(b"\n\n")) >= 0:
                block = bytes(self._text[:end])
                del self._text[: end + 2]
                if told := _told(block):
                    yield told
            if self._over:
                return
            data = b""
            with suppress(OSError, EOFError):
                data = await self.reader.read(min(most, self.gulp))
            most -= len(data)
            self._raw += data
            self._over = self._unchunk() or not data

    def _unchunk(self) -> bool:
        """Takes whole chunks out of what was read; True at the last one."""
        while (end := self._raw.find(b"\r\n")) >= 0:
            size = int(self._raw[:end], 16)
            if len(self._raw) < end + size + 4:
                return False
            self._text += self._raw[end + 2 : end + 2 + size]
            del self._raw[: end + size + 4]
            if not size:
                return True
        return False


def _told(block: bytes) -> Told | None:
    found: dict[str, str] = {}
    for line in block.decode().split("\n"):
        name, _, value = line.partition(": ")
        if name:
            found[name] = value
    if "event" not in found:
        return None
    return Told(found.get("id", ""), found["event"], json.loads(found["data"]))
