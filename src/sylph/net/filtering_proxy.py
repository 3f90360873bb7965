"""A proxy on this machine that lets programs out only to addresses which a check permits."""

import asyncio
import logging
import os
import socket as socketlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from sylph.core.errors import ProviderError, SylphError
from sylph.net.address_guard import AddressCheck, ProxyScreen, canonical_host
from sylph.net.connect import connect_first
from sylph.net.url import ParsedUrl, Proxies, basic_auth, choose_proxy, parse_url

HEAD_LIMIT = 1 << 16
HEAD_SECONDS = 30.0
CONNECT_SECONDS = 15.0
PARTING_SECONDS = 1.0
# A program that opens more connections than this at a time would take ours away.
MAX_CONNECTIONS = 256
CHUNK_BYTES = 1 << 16
# Tells an answer of ours from one of the server's (RFC 9209).
STATUS_HEADER = "Proxy-Status"
HEAD_END = b"\r\n\r\n"
# What concerns only one stretch of the way, and is not passed on.
HOP_HEADERS = (
    *("connection", "proxy-connection", "keep-alive", "proxy-authorization", "proxy-authenticate", "upgrade"),
    STATUS_HEADER.lower(),
)

logger = logging.getLogger(__name__)
StreamPair = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class ProxyRefusal(Exception):
    """What the program that asked is told: a status and a sentence."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status = status


class FilteringProxy:
    """Speaks HTTP proxying (`CONNECT` and `GET http://…`) on a loopback port or a unix socket.

    Every request asks `check(host, port)` for the addresses to connect to, and no other is connected to: the name is
    looked up once, so that it cannot mean something else a moment later. Where `proxies` name a proxy for the host,
    the way leads through that one, if `screen` permits.
    """

    def __init__(
        self, check: AddressCheck, *, proxies: Proxies | None = None, screen: ProxyScreen | None = None
    ) -> None:
        self._check, self._screen = check, screen or check
        self._proxies = proxies or Proxies()
        self._server: asyncio.Server | None = None
        self._running: set[asyncio.Task[None]] = set()
        self.refused: list[str] = []
        """The latest refusals, for whoever wonders why a page is empty."""

    async def listen(self, socket: Path | None = None) -> str:
        """Starts; gives the URL to set as a proxy, or the path of the unix socket, which only its owner can use."""
        if socket is None:
            self._server = await asyncio.start_server(self._accept_client, "127.0.0.1", 0, limit=HEAD_LIMIT)
            return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        self._server = await asyncio.start_unix_server(
            self._accept_client, sock=_private_socket(socket), limit=HEAD_LIMIT
        )
        return str(socket)

    async def close(self) -> None:
        """Stops listening and breaks off what is under way."""
        if self._server is None:
            return
        self._server.close()
        running = tuple(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        self._server = None

    async def _accept_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._running.add(task)
        try:
            if len(self._running) > MAX_CONNECTIONS:
                await _decline_request((reader, writer), 503, f"More than {MAX_CONNECTIONS} connections at a time.")
            else:
                await self._serve_request(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # One of the two sides has gone, or we are closing: there is nobody left to tell.
        finally:
            self._running.discard(task)
            writer.close()

    async def _serve_request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(HEAD_SECONDS):
                head = await reader.readuntil(HEAD_END)
            asked = _ProxyRequest(head)
            there = await self._open_upstream(asked)
        except ProxyRefusal as refusal:
            self._note_refusal(str(refusal))
            await _decline_request((reader, writer), refusal.status, str(refusal))
            return
        except (asyncio.LimitOverrunError, TimeoutError):
            await _decline_request((reader, writer), 400, "The head of the request is too long, or does not end.")
            return
        try:
            await self._relay_streams(asked, (reader, writer), there)
        finally:
            there[1].close()

    async def _open_upstream(self, asked: "_ProxyRequest") -> StreamPair:
        hop = choose_proxy(asked.address, self._proxies)
        try:
            if hop is None:
                places: Sequence[str] = await self._check(asked.address.host, asked.address.port)
            else:
                await self._screen(asked.address.host, asked.address.port)
                places = (hop.host,)
        except ProviderError as error:
            raise ProxyRefusal(502 if error.failure == "network" else 403, str(error)) from None
        except SylphError as error:
            raise ProxyRefusal(403, str(error)) from None
        port = (hop or asked.address).port
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                there = await connect_first(
                    places, lambda place: asyncio.open_connection(place, port, limit=HEAD_LIMIT)
                )
        except OSError:
            raise ProxyRefusal(502, f"No connection to {asked.address.host}:{asked.address.port}.") from None
        await self._forward_request(asked, hop, there)
        return there

    async def _forward_request(self, asked: "_ProxyRequest", hop: ParsedUrl | None, there: StreamPair) -> None:
        """Says what is wanted to whoever is next on the way."""
        login = f"Proxy-Authorization: {basic_auth(hop.login)}\r\n" if hop and hop.login else ""
        if not asked.tunnel:
            there[1].write(asked.forward_head(whole=hop is not None, extra=login))
        elif hop:
            where = f"{asked.address.host}:{asked.address.port}"
            there[1].write(f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n{login}\r\n".encode())
            answer = await there[0].readuntil(HEAD_END)
            if answer.split(b" ", 2)[1:2] != [b"200"]:
                there[1].close()
                raise ProxyRefusal(502, f"The proxy {hop.origin} does not let us through to {where}.")

    async def _relay_streams(self, asked: "_ProxyRequest", here: StreamPair, there: StreamPair) -> None:
        if asked.tunnel:
            here[1].write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        sending = asyncio.create_task(_pump_bytes(here[0], there[1]))
        try:
            if not asked.tunnel:
                await _relay_response_head(there[0], here[1])
            await _pump_bytes(there[0], here[1])
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)

    def _note_refusal(self, said: str) -> None:
        logger.info("refused: %s", said)
        self.refused = [*self.refused[-19:], said]


class _ProxyRequest:
    """The head of a request to a proxy, taken apart. Raises Refusal where it is none."""

    def __init__(self, head: bytes) -> None:
        lines = head[: -len(HEAD_END)].decode("latin-1").split("\r\n")
        self.method, _, rest = lines[0].partition(" ")
        target, _, version = rest.rpartition(" ")
        self._fields = lines[1:]
        self.tunnel = self.method == "CONNECT"
        if not version.startswith("HTTP/1.") or not target:
            raise ProxyRefusal(400, "That is not HTTP.")
        if not self.tunnel and not target.startswith("http://"):
            raise ProxyRefusal(400, "This is a proxy: ask it for a whole URL, or to CONNECT.")
        try:
            self.address = parse_url(f"https://{target}" if self.tunnel else target)
            self.address = self.address._replace(host=canonical_host(self.address.host))
        except ProviderError as error:
            raise ProxyRefusal(400, str(error)) from None

    def forward_head(self, *, whole: bool, extra: str) -> bytes:
        """The head as the next on the way should see it."""
        target = self.address.origin + self.address.target if whole else self.address.target
        kept = [line for line in self._fields if line.partition(":")[0].strip().lower() not in (*HOP_HEADERS, "host")]
        lines = [f"{self.method} {target} HTTP/1.1", f"Host: {self.address.authority}", *kept, "Connection: close"]
        return ("\r\n".join(lines) + "\r\n" + extra + "\r\n").encode("latin-1")


def _private_socket(path: Path) -> socketlib.socket:
    """A socket that nobody but its owner can connect to, from the first moment on."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.unlink(missing_ok=True)
    made = socketlib.socket(socketlib.AF_UNIX)
    try:
        os.fchmod(made.fileno(), 0o600)
        made.bind(str(path))
    except BaseException:
        made.close()
        raise
    return made


async def _relay_response_head(there: asyncio.StreamReader, here: asyncio.StreamWriter) -> None:
    """Passes the head of an answer on, and says that the connection ends with it: the next request may go elsewhere."""
    while True:
        try:
            head = await there.readuntil(HEAD_END)
        except (asyncio.LimitOverrunError, asyncio.IncompleteReadError):
            await _write_error(here, 502, "The server does not speak HTTP.")
            return
        first, *fields = head[: -len(HEAD_END)].split(b"\r\n")
        if first.split(b" ", 2)[1:2] and first.split(b" ", 2)[1][:1] == b"1":
            here.write(head)
            continue
        kept = [line for line in fields if line.partition(b":")[0].strip().lower().decode("latin-1") not in HOP_HEADERS]
        here.write(b"\r\n".join([first, *kept, b"Connection: close"]) + HEAD_END)
        return


async def _pump_bytes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(CHUNK_BYTES):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


async def _decline_request(here: StreamPair, status: int, said: str) -> None:
    """Says no, and hears out what was still to be said: a connection closed on unread words loses the answer."""
    await _write_error(here[1], status, said)
    with suppress(OSError):  # A TimeoutError is one too.
        here[1].write_eof()
        async with asyncio.timeout(PARTING_SECONDS):
            while await here[0].read(CHUNK_BYTES):
                pass


async def _write_error(writer: asyncio.StreamWriter, status: int, said: str) -> None:
    reason = {400: "Bad Request", 403: "Forbidden", 502: "Bad Gateway", 503: "Too Busy"}[status]
    body = f"Sylph: {said}\n".encode()
    head = f"HTTP/1.1 {status} {reason}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}"
    writer.write(f"{head}\r\n{STATUS_HEADER}: sylph\r\nConnection: close\r\n\r\n".encode() + body)
    with suppress(OSError):
        await writer.drain()
