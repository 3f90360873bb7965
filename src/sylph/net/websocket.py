"""A WebSocket, as a client has it: over the connections, proxies and checks of the HTTP client."""

import asyncio
import base64
import hashlib
import os
from collections import deque
from collections.abc import Mapping
from typing import cast

from sylph.core.errors import ProviderError
from sylph.net.http_client import HttpClient, HttpTimeouts
from sylph.net.websocket_frame import (
    BINARY,
    CLOSE,
    PING,
    PONG,
    TEXT,
    WebSocketDecoder,
    WebSocketMessage,
    encode_frame,
    protocol_error,
)

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
HEAD_LIMIT = 1 << 16
BODY_LIMIT = 1 << 16
# What may wait for a slow reader before the server is held back.
HIGH_WATER = 1 << 20
MESSAGE_LIMIT = 64 << 20
NORMAL_CLOSE = 1000
PARTING_SECONDS = 0.5


class WebSocketDeclined(ProviderError):
    """The server answered the handshake with something else; here is what."""

    def __init__(self, where: str, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__("bad_request", f"{where} opens no WebSocket ({status}).", status=status)
        self.headers, self.body = headers, body


class WebSocketClosed(ProviderError):
    """The other side has closed; `code` is its reason, 1006 where it just went away."""

    def __init__(self, where: str, code: int, reason: str) -> None:
        said = f": {reason}" if reason else ""
        super().__init__("cut", f"{where} closed the connection ({code}){said}.")
        self.code = code


class WebSocket(asyncio.Protocol):
    """One open connection. `send` writes a message, `receive` waits for one."""

    transport: asyncio.Transport

    def __init__(self, where: str, limit: int = MESSAGE_LIMIT) -> None:
        self.where = where
        self.alive = True
        self._frames = WebSocketDecoder(limit)
        self._head: bytearray | None = bytearray()
        self._got: deque[bytes] = deque()
        self._size = 0
        self._error: ProviderError | None = None
        self._waiter: asyncio.Future[None] | None = None

    @classmethod
    async def open(
        cls,
        client: HttpClient,
        url: str,
        *,
        headers: Mapping[str, str],
        timeouts: HttpTimeouts,
        limit: int = MESSAGE_LIMIT,
    ) -> "WebSocket":
        """An open WebSocket at an http(s) URL. Raises Declined where the server does not want one."""
        key = base64.b64encode(os.urandom(16))
        fields = {
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Key": key.decode(),
            "Sec-WebSocket-Version": "13",
            **headers,
        }
        where, transport, head = await client.open_transport(url, fields, timeouts)
        made = cls(where, limit)
        made.transport = transport
        transport.set_protocol(made)
        transport.resume_reading()
        transport.write(head)
        try:
            async with asyncio.timeout(timeouts.headers):
                await made._finish_handshake(key)
        except TimeoutError:
            made.abort()
            raise ProviderError("timeout", f"{where} did not answer within {timeouts.headers:g} s.") from None
        except BaseException:
            made.abort()
            raise
        return made

    def send(self, data: bytes) -> None:
        self._write_frame(TEXT, data)

    async def receive(self) -> bytes:
        """The next message. Raises Closed when there will be none."""
        while not self._got:
            await self._wait_change()
        data = self._got.popleft()
        self._size -= len(data)
        if self._size <= HIGH_WATER:
            self.transport.resume_reading()
        return data

    async def close(self, code: int = NORMAL_CLOSE) -> None:
        """Says goodbye and gives the other side a moment to do the same."""
        if self.alive:
            self._write_frame(CLOSE, code.to_bytes(2, "big"))
            try:
                async with asyncio.timeout(PARTING_SECONDS):
                    while self.alive and self._error is None:
                        self._got.clear()
                        await self._wait_change()
            except (ProviderError, TimeoutError):
                pass  # Gone is gone.
        self.abort()

    def abort(self) -> None:
        self.alive = False
        self.transport.abort()

    async def _finish_handshake(self, key: bytes) -> None:
        """Waits for the answer to the handshake, and checks it."""
        while self._head is not None and b"\r\n\r\n" not in self._head:
            if len(self._head) > HEAD_LIMIT:
                raise protocol_error("its headers do not end")
            await self._wait_change()
        assert self._head is not None
        head, _, rest = bytes(self._head).partition(b"\r\n\r\n")
        status, headers = _parse_head(head)
        if status != 101:
            raise WebSocketDeclined(self.where, status, headers, await self._refusal_body(headers, len(head) + 4))
        digest = base64.b64encode(hashlib.sha1(key + GUID, usedforsecurity=False).digest()).decode()
        if headers.get("upgrade", "").lower() != "websocket" or headers.get("sec-websocket-accept") != digest:
            raise protocol_error("its answer does not fit our question")
        self._head = None
        self._feed_frames(rest)

    async def _refusal_body(self, headers: Mapping[str, str], at: int) -> bytes:
        """The body of a refusal, as far as it comes soon."""
        size = headers.get("content-length", "")
        wanted = min(int(size), BODY_LIMIT) if size.isdecimal() else BODY_LIMIT
        assert self._head is not None
        try:
            async with asyncio.timeout(PARTING_SECONDS):
                while len(self._head) - at < wanted:
                    await self._wait_change()
        except (ProviderError, TimeoutError):
            pass  # What has come must do.
        return bytes(self._head[at:])

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._head is None:
            self._feed_frames(data)
        else:
            self._head += data
        self._wake_reader()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 -- the base class says so
        self.alive = False
        self._error = self._error or WebSocketClosed(self.where, 1006, "")
        self._wake_reader()

    def _feed_frames(self, data: bytes) -> None:
        try:
            for message in self._frames.feed(data):
                self._handle_message(message)
        except ProviderError as error:
            self._error = error
            self.abort()

    def _handle_message(self, message: WebSocketMessage) -> None:
        if message.kind == PING:
            self._write_frame(PONG, message.data)
        elif message.kind == CLOSE:
            code = int.from_bytes(message.data[:2], "big") or 1005
            self._error = WebSocketClosed(self.where, code, message.data[2:].decode("utf-8", "replace"))
            if self.alive:
                self._write_frame(CLOSE, message.data[:2])
            self.alive = False
            self.transport.close()
        elif message.kind in (TEXT, BINARY):
            self._got.append(message.data)
            self._size += len(message.data)
            if self._size > HIGH_WATER:
                self.transport.pause_reading()

    def _write_frame(self, kind: int, data: bytes) -> None:
        if self.transport.is_closing():
            raise self._error or WebSocketClosed(self.where, 1006, "")
        self.transport.write(encode_frame(kind, data, os.urandom(4)))

    def _wake_reader(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _wait_change(self) -> None:
        if self._error is not None:
            raise self._error
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None


def _parse_head(head: bytes) -> tuple[int, dict[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    parts = first.split(" ", 2)
    if len(parts) < 2 or not parts[0].startswith("HTTP/1.") or not parts[1].isdecimal():
        raise protocol_error("it does not speak HTTP")
    fields = (line.partition(":") for line in lines)
    return int(parts[1]), {name.strip().lower(): value.strip() for name, _, value in fields}
