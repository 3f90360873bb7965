"""A proxy that lets commands reach the hosts on a list and no others, and tells which they were refused.

It listens on a unix socket, which is all that leads out of a sandbox without a network. It lives in Sylph's process and
ends with it: a background job that outlives Sylph goes on without a network, until a Sylph works in its session again.
"""

import asyncio
import contextlib
import ipaddress
import os
import socket
from collections import deque
from collections.abc import Sequence
from pathlib import Path

SOCKET = "proxy"
HEAD = 65_536
SECONDS = 30.0
CHUNK = 65_536
KEPT = 100

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Refused(Exception):
    """What the command is told, with the number of HTTP for it."""

    def __init__(self, status: str, text: str) -> None:
        super().__init__(text)
        self.status = status


class Proxy:
    """The way out for the commands of one session."""

    def __init__(self, folder: Path, hosts: Sequence[str]) -> None:
        self.folder, self._hosts = folder, tuple(host.lower().rstrip(".") for host in hosts)
        self._server: asyncio.Server | None = None
        self._tasks = set[asyncio.Task[None]]()
        self.refused: deque[str] = deque(maxlen=KEPT)

    async def open(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        # The path of a socket must be short, and this one need not be: it is named by its open folder.
        folder = os.open(self.folder, os.O_PATH | os.O_CLOEXEC)
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(SOCKET, dir_fd=folder)
            self._server = await asyncio.start_unix_server(self._meet, f"/proc/self/fd/{folder}/{SOCKET}", limit=HEAD)
        finally:
            os.close(folder)

    async def close(self) -> None:
        if self._server:
            self._server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            (self.folder / SOCKET).unlink(missing_ok=True)

    def drain(self) -> list[str]:
        """The hosts that were refused since the last time this was asked."""
        found = list(dict.fromkeys(self.refused))
        self.refused.clear()
        return found

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._tasks.add(task)
        try:
            await self._serve(reader, writer)
        except _Refused as refused:
            text = f"{refused}\n"
            head = f"HTTP/1.1 {refused.status}\r\nContent-Type: text/plain\r\nContent-Length: {len(text)}\r\n"
            writer.write(f"{head}Connection: close\r\n\r\n{text}".encode())
            with contextlib.suppress(OSError):
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(SECONDS):
            head = await reader.readuntil(b"\r\n\r\n")
        method, target, first = _request(head)
        host, port, path = _target(method, target)
        there = await self._reach(host, port)
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            # One request for each connection: the next one on it could be for another host.
            there[1].write(_rewritten(head, f"{method} {path} {first}"))
        await _both((reader, writer), there)

    async def _reach(self, host: str, port: int) -> Streams:
        if not self._allows(host):
            self.refused.append(host)
            raise _Refused("403 Forbidden", f"{host} is not on the list: sandbox.hosts")
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise _Refused("502 Bad Gateway", f"{host}: {error.strerror}") from error
        # Whoever answers for a name must not lead to this machine or its neighbours.
        public = [
            address for *_, address in found if (host in self._hosts and _is_address(host)) or _is_public(address[0])
        ]
        if not public:
            self.refused.append(host)
            raise _Refused("403 Forbidden", f"{host} leads to a private address, which sandbox.hosts does not name")
        try:
            async with asyncio.timeout(SECONDS):
                return await asyncio.open_connection(str(public[0][0]), port)
        except (OSError, TimeoutError) as error:
            raise _Refused("502 Bad Gateway", f"{host}:{port} cannot be reached: {error}") from error

    def _allows(self, host: str) -> bool:
        name = host.lower().rstrip(".")
        return any(
            name == host or (host.startswith("*.") and name.endswith(host[1:])) or host == "*" for host in self._hosts
        )


def _request(head: bytes) -> tuple[str, str, str]:
    line = head.partition(b"\r\n")[0].decode("latin-1").split(" ")
    if len(line) != 3:
        raise _Refused("400 Bad Request", "this is a proxy for HTTP")
    return line[0], line[1], line[2]


def _target(method: str, target: str) -> tuple[str, int, str]:
    rest, path = target, ""
    if method != "CONNECT":
        scheme, _, rest = target.partition("://")
        if scheme.lower() != "http":
            raise _Refused("400 Bad Request", "only http:// and CONNECT are spoken here")
        rest, slash, path = rest.partition("/")
        path = f"{slash or '/'}{path}"
    host, colon, port = rest.rpartition("@")[2].rpartition(":")
    if not colon or not port.isdigit():
        host, port = rest.rpartition("@")[2], "443" if method == "CONNECT" else "80"
    if not 0 < int(port) < 65_536 or not host:
        raise _Refused("400 Bad Request", "there is no such host and port")
    return host.strip("[]"), int(port), path


def _rewritten(head: bytes, line: str) -> bytes:
    """The request as the host itself wants it."""
    kept = [
        each for each in head.split(b"\r\n")[1:-2]
        if not each.lower().startswith((b"proxy-", b"connection:", b"keep-alive:"))
    ]  # fmt: skip
    return b"\r\n".join([line.encode("latin-1"), *kept, b"Connection: close", b"", b""])


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    return True


def _is_public(address: str | int) -> bool:
    there = ipaddress.ip_address(str(address).partition("%")[0])
    inner = there.ipv4_mapped if isinstance(there, ipaddress.IPv6Address) else None
    return (inner or there).is_global and not (inner or there).is_multicast


async def _both(one: Streams, other: Streams) -> None:
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_copy(one[0], other[1]))
            tasks.create_task(_copy(other[0], one[1]))
    except* OSError:
        pass
    finally:
        other[1].close()


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while data := await source.read(CHUNK):
        sink.write(data)
        await sink.drain()
    if sink.can_write_eof():
        sink.write_eof()
