"""One HTTP/1.1 connection: a request goes out, its response comes in."""

import asyncio
from contextlib import suppress
from typing import cast

import httptools

from sylph.core.errors import ProviderError

# What may wait for a slow reader before the server is held back.
HIGH_WATER = 1 << 20
# No honest server sends more than this before its body.
HEAD_LIMIT = 1 << 17


class NoHttpResponse(ProviderError):
    """The connection ended before the first byte of the response."""


class HttpResponse:
    """What a server answers, as it arrives: iterate over it for the bytes of the body."""

    def __init__(self, where: str, transport: asyncio.Transport) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.ended = False
        self.lasting = False  # whether the connection can carry another request
        self._where = where
        self._transport = transport
        self._parser = httptools.HttpResponseParser(self)
        self._pieces: list[bytes] = []
        self._size = 0
        self._error: ProviderError | None = None
        self._waiter: asyncio.Future[None] | None = None

    async def wait_head(self) -> None:
        """Waits for the status and the headers."""
        while not self.status:
            await self._wait_change()

    def __aiter__(self) -> "HttpResponse":
        return self

    async def __anext__(self) -> bytes:
        while not self._pieces:
            if self.ended:
                raise StopAsyncIteration
            await self._wait_change()
        piece = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        if self._size > HIGH_WATER:
            self._transport.resume_reading()
        self._size = 0
        return piece

    async def read(self, limit: int = 1 << 24) -> bytes:
        """The whole rest of the body, if it is no longer than `limit`."""
        parts: list[bytes] = []
        size = 0
        async for piece in self:
            parts.append(piece)
            size += len(piece)
            if size > limit:
                raise ProviderError("format", f"The answer of {self._where} is longer than {limit:,} bytes.")
        return b"".join(parts)

    async def drain(self, seconds: float) -> None:
        """Gives the server a moment to end a body that has said all, so that the connection can be used again."""
        if self.ended:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                async for _ in self:
                    pass

    def feed(self, data: bytes) -> None:
        if not self.status:
            self._size += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._error = ProviderError("format", f"What answers at {self._where} does not speak HTTP/1.1.")
        if not self.status and self._size > HEAD_LIMIT:
            self._error = ProviderError("format", f"The headers from {self._where} do not end.")
        self._wake_reader()

    def mark_lost(self, why: Exception | None) -> None:
        """The connection is gone: the end of the body where that is how it ends, else a failure."""
        if self.ended or self._error is not None:
            return
        if not self.status:
            kind = ProviderError if self._size else NoHttpResponse
            self._error = kind("network", f"{self._where} closed the connection without an answer.")
        elif why is not None or "content-length" in self.headers or "transfer-encoding" in self.headers:
            self._error = ProviderError("cut", f"The connection to {self._where} broke off in mid-answer.")
        else:
            self.ended = True
        self._wake_reader()

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status >= 200:
            self.status, self._size = status, 0

    def on_body(self, body: bytes) -> None:
        self._pieces.append(body)
        self._size += len(body)
        if self._size > HIGH_WATER:
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        if self.status:
            self.ended = True
            self.lasting = self._parser.should_keep_alive()
        else:  # That was "100 Continue" or its like; the response is still to come.
            self.headers.clear()

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


class HttpConnection(asyncio.Protocol):
    """A connection to one server, for one request at a time. `since` is when it last fell idle."""

    transport: asyncio.Transport

    def __init__(self, where: str) -> None:
        self.where = where
        self.alive = True
        self.since = 0.0
        self._response: HttpResponse | None = None

    def send(self, data: bytes) -> HttpResponse:
        self._response = HttpResponse(self.where, self.transport)
        self.transport.write(data)
        return self._response

    def close(self) -> None:
        """At once: what is still on its way is dropped."""
        self.alive = False
        self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._response is None or self._response.ended:
            self.close()  # Nobody asked for this; who knows what else is wrong.
            return
        self._response.feed(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.alive = False
        if self._response is not None:
            self._response.mark_lost(exc)
