"""Small web sites on loopback for the tests of the web tools."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.net.servers import serving


@dataclass
class Site:
    """Pages by their path; what was asked for, head and body."""

    pages: Mapping[str, bytes]
    port: int = 0
    heard: list[bytes] = field(default_factory=list[bytes])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        size = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        body = await reader.readexactly(int(size[0].split(b":")[1])) if size else b""
        self.heard.append(head + body)
        path = head.split(b" ")[1].decode().partition("?")[0]
        writer.write(self.pages.get(path, page(b"not here", "text/plain", "404 Not Found")))
        await writer.drain()


def page(body: bytes | str, media: str = "text/html; charset=utf-8", status: str = "200 OK", *headers: str) -> bytes:
    body = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", f"Content-Type: {media}", *headers]
    return ("\r\n".join([*lines, "Connection: close"]) + "\r\n\r\n").encode() + body


def moved(place: str) -> bytes:
    return page(b"", "text/plain", "302 Found", f"Location: {place}")


@asynccontextmanager
async def site(**pages: bytes) -> AsyncGenerator[Site, None]:
    """A site whose pages are named as keywords; `index` is at the root."""
    place = Site({"/" if name == "index" else f"/{name}": page for name, page in pages.items()})
    async with serving(place.serve) as port:
        place.port = port
        yield place
