"""The HTTP client: requests over connections that are kept and used again."""

import asyncio
import errno
import socket
import ssl
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial

from msgspec import Struct

from sylph.core.errors import ProviderError
from sylph.net.address import Address, Proxies, basic, parse, route
from sylph.net.dial import first_of
from sylph.net.reach import Check, Screen
from sylph.net.wire import Connection, Response, Unanswered

# Routers forget silent connections after a while, and a forgotten one swallows a request.
IDLE_SECONDS = 30.0
IDLE_PER_ORIGIN = 64
NOTHING: Mapping[str, str] = {}


class Timeouts(Struct, frozen=True, kw_only=True):
    """Seconds until a connection must stand, and until a response must have begun. A body may take its time."""

    connect: float = 10.0
    headers: float = 600.0


PATIENT = Timeouts()


class Client:
    """One for many servers, in one event loop. It never follows a redirect and never asks for compression by itself.

    With a `check` it connects to no address but those that the check gives for a host: a name is looked up once.
    Where a proxy looks names up, `screen` has a word before.
    """

    def __init__(
        self,
        *,
        proxies: Proxies | None = None,
        tls: Callable[[], ssl.SSLContext] = ssl.create_default_context,
        check: Check | None = None,
        screen: Screen | None = None,
    ) -> None:
        self._proxies = proxies or Proxies()
        self._check, self._screen = check, screen or check
        self._make_tls = tls
        self._tls: ssl.SSLContext | None = None
        self._idle: dict[str, list[Connection]] = {}

    @asynccontextmanager
    async def get(
        self,
        url: str,
        *,
        headers: Mapping[str, str] = NOTHING,
        timeouts: Timeouts = PATIENT,
        redirects: bool = False,
    ) -> AsyncGenerator[Response, None]:
        """The response. A redirect is an error, unless the caller wants to see `redirects`, and to follow them."""
        address = parse(url)
        async with self._exchange(address, self._head("GET", address, headers), timeouts) as response:
            if not redirects:
                _refuse_redirect(address, response)
            yield response

    @asynccontextmanager
    async def post(
        self, url: str, body: bytes, *, headers: Mapping[str, str] = NOTHING, timeouts: Timeouts = PATIENT
    ) -> AsyncGenerator[Response, None]:
        address = parse(url)
        head = self._head("POST", address, {**headers, "Content-Length": str(len(body))})
        async with self._exchange(address, head + body, timeouts) as response:
            _refuse_redirect(address, response)
            yield response

    async def dial(
        self, url: str, headers: Mapping[str, str], timeouts: Timeouts = PATIENT
    ) -> tuple[str, asyncio.Transport, bytes]:
        """A connection of its own to where `url` is, for another protocol, and the request that asks for that one.

        It is the caller's to close. A proxy on the way only passes bytes through.
        """
        address = parse(url)
        connection = await self._connect(address, timeouts, through=True)
        connection.transport.pause_reading()
        fields = {"Host": address.authority, "User-Agent": "sylph", **headers}
        return address.origin, connection.transport, _encode(f"GET {address.target} HTTP/1.1", fields)

    async def close(self) -> None:
        for connections in self._idle.values():
            for connection in connections:
                connection.close()
        self._idle.clear()
        await asyncio.sleep(0)  # The transports close in the next round of the loop.

    def _head(self, method: str, address: Address, headers: Mapping[str, str]) -> bytes:
        fields = {"Host": address.authority, "User-Agent": "sylph", "Accept-Encoding": "identity", **headers}
        target, proxy = address.target, route(address, self._proxies)
        if proxy is not None and address.scheme == "http":
            target = address.origin + target
            fields |= _login(proxy)
        return _encode(f"{method} {target} HTTP/1.1", fields)

    @asynccontextmanager
    async def _exchange(self, address: Address, data: bytes, timeouts: Timeouts) -> AsyncGenerator[Response, None]:
        connection, response = await self._ask(address, data, timeouts)
        try:
            yield response
        finally:
            self._release(address, connection, response)

    async def _ask(self, address: Address, data: bytes, timeouts: Timeouts) -> tuple[Connection, Response]:
        kept = self._take(address)
        if kept is not None:
            # The server may have closed it just as we wrote; nothing was answered, so a new one may ask again.
            with suppress(Unanswered):
                return kept, await _first(kept, data, timeouts)
        connection = await self._connect(address, timeouts)
        return connection, await _first(connection, data, timeouts)

    def _take(self, address: Address) -> Connection | None:
        """The connection that was used last, if one still stands."""
        kept = self._idle.get(address.origin, [])
        oldest = asyncio.get_running_loop().time() - IDLE_SECONDS
        while kept:
            connection = kept.pop()
            if connection.alive and connection.since > oldest:
                return connection
            connection.close()
        return None

    def _release(self, address: Address, connection: Connection, response: Response) -> None:
        kept = self._idle.setdefault(address.origin, [])
        if not (connection.alive and response.lasting) or len(kept) >= IDLE_PER_ORIGIN:
            connection.close()
            return
        now = connection.since = asyncio.get_running_loop().time()
        # The oldest come first; after a rush they would otherwise stay for ever.
        while kept and kept[0].since < now - IDLE_SECONDS:
            kept.pop(0).close()
        kept.append(connection)

    async def _connect(self, address: Address, timeouts: Timeouts, *, through: bool = False) -> Connection:
        proxy = route(address, self._proxies)
        try:
            async with asyncio.timeout(timeouts.connect):
                return await self._open(address, proxy, through=through)
        except TimeoutError:
            where = (proxy or address).origin
            message = f"{where} did not accept a connection within {timeouts.connect:g} s."
            raise _unsent(ProviderError("timeout", message)) from None
        except OSError as error:
            raise _unsent(_unreachable(proxy or address, error)) from error

    async def _open(self, address: Address, proxy: Address | None, *, through: bool) -> Connection:
        hop = proxy or address
        loop = asyncio.get_running_loop()
        secure = self._context() if hop.scheme == "https" else None

        async def connect(where: str) -> Connection:
            name = hop.host if secure else None
            make = partial(Connection, address.origin)
            _, made = await loop.create_connection(make, where, hop.port, ssl=secure, server_hostname=name)
            return made

        connection = await first_of(await self._places(address, proxy), connect)
        if proxy is None or (address.scheme == "http" and not through):
            return connection
        try:
            await self._tunnel(connection, address, proxy)
        except BaseException:
            connection.close()
            raise
        return connection

    async def _places(self, address: Address, proxy: Address | None) -> Sequence[str]:
        """Where to connect to: the names or addresses to try."""
        if proxy is None:
            return await self._check(address.host, address.port) if self._check else (address.host,)
        if self._screen:
            await self._screen(address.host, address.port)
        return (proxy.host,)

    async def _tunnel(self, connection: Connection, address: Address, proxy: Address) -> None:
        """Has the proxy pass bytes through to `address`, and speaks TLS with that end where it is wanted."""
        host = f"[{address.host}]" if ":" in address.host else address.host
        line = f"CONNECT {host}:{address.port} HTTP/1.1"
        response = connection.send(_encode(line, {"Host": f"{host}:{address.port}", **_login(proxy)}))
        await response.head()
        if response.status != 200:
            raise ProviderError(
                "network", f"The proxy {proxy.origin} does not let us through to {address.origin} ({response.status})."
            )
        if address.scheme == "http":
            return
        transport = await asyncio.get_running_loop().start_tls(
            connection.transport, connection, self._context(), server_hostname=address.host
        )
        if transport is None:
            raise ConnectionResetError
        connection.connection_made(transport)

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = self._make_tls()
        return self._tls


async def _first(connection: Connection, data: bytes, timeouts: Timeouts) -> Response:
    """Sends a request and waits until its response begins."""
    response = connection.send(data)
    try:
        async with asyncio.timeout(timeouts.headers):
            await response.head()
    except TimeoutError:
        connection.close()
        message = f"{connection.where} did not begin to answer within {timeouts.headers:g} s."
        raise ProviderError("timeout", message) from None
    except BaseException:
        connection.close()
        raise
    return response


def _encode(line: str, fields: Mapping[str, str]) -> bytes:
    for name, value in fields.items():
        if not value.isprintable() or not value.isascii():
            raise ProviderError("bad_request", f"The header {name} holds characters that cannot be sent.")
    lines = [line, *(f"{name}: {value}" for name, value in fields.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")


def _login(proxy: Address) -> dict[str, str]:
    return {"Proxy-Authorization": basic(proxy.login)} if proxy.login else {}


def _refuse_redirect(address: Address, response: Response) -> None:
    if response.status in (301, 302, 303, 307, 308):
        place = response.headers.get("location", "somewhere else")
        raise ProviderError(
            "bad_request",
            f"{address.origin} sends us on to {place}, and redirects are not followed.",
            status=response.status,
            next=("Set the base URL to the address that answers itself.",),
        )


def _unsent(error: ProviderError) -> ProviderError:
    error.sent = False
    return error


def _unreachable(address: Address, error: OSError) -> ProviderError:
    where = address.origin
    # With several addresses behind a name asyncio joins the errors into one without a number.
    if isinstance(error, ConnectionRefusedError) or f"[Errno {errno.ECONNREFUSED}]" in str(error):
        return ProviderError("network", f"Nothing answers at {where}; is the server running?")
    if isinstance(error, socket.gaierror):
        return ProviderError("network", f"No address is known for the host {address.host!r}; is it spelt right?")
    if isinstance(error, ssl.SSLCertVerificationError):
        return ProviderError("network", f"The certificate of {where} is not trusted: {error.verify_message}.")
    if isinstance(error, ssl.SSLError):
        return ProviderError("network", f"No secure connection to {where} ({error.reason}); should it be http://?")
    return ProviderError("network", f"No connection to {where}: {error.strerror or error}.")
