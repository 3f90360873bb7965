"""Small servers that misbehave below the level of HTTP, for the tests of the client."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(
    handler: Handler, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None
) -> AsyncGenerator[int, None]:
    """Runs `handler` for every connection; gives the port."""

    running: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        running.add(task)
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await handler(reader, writer)
        writer.close()
        running.discard(task)

    server = await asyncio.start_server(handle, host, 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tuple(running):
            task.cancel()
        await asyncio.gather(*running)


def saying(*parts: bytes, wait: float = 0.0) -> Handler:
    """Answers one request with these bytes, then closes."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(wait)

    return handler


def keeping(*answers: bytes, last: bytes = b"") -> Handler:
    """Answers one request after the other on one connection, then closes with a last word or none."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(last)

    return handler


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
