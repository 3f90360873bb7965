"""A service that gets notifications: it answers as it is told, and keeps what reached it."""

import asyncio
import json
import socket
from typing import Any, Self

from tests.patience import PATIENCE

STALL = 0


class Sink:
    """Answers one request after the other with the given status; `STALL` is silence. The last one stays.

    It has its address from the beginning; nothing answers there before it is entered.
    """

    def __init__(self, *answers: int) -> None:
        self.answers = list(answers) or [200]
        self.got: list[tuple[str, dict[str, Any]]] = []
        self._grown = asyncio.Event()
        self._open = set[asyncio.StreamWriter]()
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, sock=self._socket)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for writer in self._open:
            writer.close()
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    @property
    def keys(self) -> list[str]:
        return [key for key, _ in self.got]

    async def until(self, count: int) -> None:
        async with asyncio.timeout(PATIENCE):
            while len(self.got) < count:
                self._grown.clear()
                await self._grown.wait()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                fields = dict(line.lower().split(": ", 1) for line in head.decode().split("\r\n")[1:] if line)
                body = json.loads(await reader.readexactly(int(fields["content-length"])))
                self.got.append((fields["idempotency-key"], body))
                self._grown.set()
                status = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
                if status == STALL:
                    await asyncio.Event().wait()
                writer.write(f"HTTP/1.1 {status} x\r\nContent-Length: 2\r\n\r\nno".encode())
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            self._open.discard(writer)
