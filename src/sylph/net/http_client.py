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
from sylph.net.address_guard import AddressCheck, ProxyScreen
from sylph.net.connect import connect_first
from sylph.net.http_connection import HttpConnection, HttpResponse, NoHttpResponse
from sylph.net.url import ParsedUrl, Proxies, basic_auth, choose_proxy, parse_url

# Routers forget silent connections after a while, and a forgotten one swallows a request.
IDLE_SECONDS = 30.0
IDLE_PER_ORIGIN = 64
NO_HEADERS: Mapping[str, str] = {}


class HttpTimeouts(Struct, frozen=True, kw_only=True):
    """Seconds until a connection must stand, and until a response must have begun. A body may take its time."""

    connect: float = 10.0
    headers: float = 600.0


DEFAULT_TIMEOUTS = HttpTimeouts()


class HttpClient:
    """One for many servers, in one event loop. It never follows a redirect and never asks for compression by itself.

    With a `check` it connects to no address but those that the check gives for a host: a name is looked up once.
    Where a proxy looks names up, `screen` has a word before.
    """

    def __init__(
        self,
        *,
        proxies: Proxies | None = None,
        tls: Callable[[], ssl.SSLContext] = ssl.create_default_context,
        check: AddressCheck | None = None,
        screen: ProxyScreen | None = None,
    ) -> None:
        self._proxies = proxies or Proxies()
        self._check, self._screen = check, screen or check
        self._make_tls = tls
        self._tls: ssl.SSLContext | None = None
        self._idle: dict[str, list[HttpConnection]] = {}

    @asynccontextmanager
    async def get(
        self,
        url: str,
        *,
        headers: Mapping[str, str] = NO_HEADERS,
        timeouts: HttpTimeouts = DEFAULT_TIMEOUTS,
        redirects: bool = False,
    ) -> AsyncGenerator[HttpResponse, None]:
        """The response. A redirect is an error, unless the caller wants to see `redirects`, and to follow them."""
        address = parse_url(url)
        async with self._exchange_request(address, self._request_head("GET", address, headers), timeouts) as response:
            if not redirects:
                _refuse_redirect(address, response)
            yield response

    @asynccontextmanager
    async def post(
        self,
        url: str,
        body: bytes,
        *,
        headers: Mapping[str, str] = NO_HEADERS,
        timeouts: HttpTimeouts = DEFAULT_TIMEOUTS,
    ) -> AsyncGenerator[HttpResponse, None]:
        address = parse_url(url)
        head = self._request_head("POST", address, {**headers, "Content-Length": str(len(body))})
        async with self._exchange_request(address, head + body, timeouts) as response:
            _refuse_redirect(address, response)
            yield response

    async def open_transport(
        self, url: str, headers: Mapping[str, str], timeouts: HttpTimeouts = DEFAULT_TIMEOUTS
    ) -> tuple[str, asyncio.Transport, bytes]:
        """A connection of its own to where `url` is, for another protocol, and the request that asks for that one.

        It is the caller's to close. A proxy on the way only passes bytes through.
        """
        address = parse_url(url)
        connection = await self._connect_timed(address, timeouts, through=True)
        connection.transport.pause_reading()
        fields = {"Host": address.authority, "User-Agent": "sylph", **headers}
        return address.origin, connection.transport, _encode_head(f"GET {address.target} HTTP/1.1", fields)

    async def close(self) -> None:
        for connections in self._idle.values():
            for connection in connections:
                connection.close()
        self._idle.clear()
        await asyncio.sleep(0)  # The transports close in the next round of the loop.

    def _request_head(self, method: str, address: ParsedUrl, headers: Mapping[str, str]) -> bytes:
        fields = {"Host": address.authority, "User-Agent": "sylph", "Accept-Encoding": "identity", **headers}
        target, proxy = address.target, choose_proxy(address, self._proxies)
        if proxy is not None and address.scheme == "http":
            target = address.origin + target
            fields |= _proxy_auth(proxy)
        return _encode_head(f"{method} {target} HTTP/1.1", fields)

    @asynccontextmanager
    async def _exchange_request(
        self, address: ParsedUrl, data: bytes, timeouts: HttpTimeouts
    ) -> AsyncGenerator[HttpResponse, None]:
        connection, response = await self._send_reusing(address, data, timeouts)
        try:
            yield response
        finally:
            self._release_connection(address, connection, response)

    async def _send_reusing(
        self, address: ParsedUrl, data: bytes, timeouts: HttpTimeouts
    ) -> tuple[HttpConnection, HttpResponse]:
        kept = self._take_idle(address)
        if kept is not None:
            # The server may have closed it just as we wrote; nothing was answered, so a new one may ask again.
            with suppress(NoHttpResponse):
                return kept, await _await_response(kept, data, timeouts)
        connection = await self._connect_timed(address, timeouts)
        return connection, await _await_response(connection, data, timeouts)

    def _take_idle(self, address: ParsedUrl) -> HttpConnection | None:
        """The connection that was used last, if one still stands."""
        kept = self._idle.get(address.origin, [])
        oldest = asyncio.get_running_loop().time() - IDLE_SECONDS
        while kept:
            connection = kept.pop()
            if connection.alive and connection.since > oldest:
                return connection
            connection.close()
        return None

    def _release_connection(self, address: ParsedUrl, connection: HttpConnection, response: HttpResponse) -> None:
        kept = self._idle.setdefault(address.origin, [])
        if not (connection.alive and response.lasting) or len(kept) >= IDLE_PER_ORIGIN:
            connection.close()
            return
        now = connection.since = asyncio.get_running_loop().time()
        # The oldest come first; after a rush they would otherwise stay for ever.
        while kept and kept[0].since < now - IDLE_SECONDS:
            kept.pop(0).close()
        kept.append(connection)

    async def _connect_timed(
        self, address: ParsedUrl, timeouts: HttpTimeouts, *, through: bool = False
    ) -> HttpConnection:
        proxy = choose_proxy(address, self._proxies)
        try:
            async with asyncio.timeout(timeouts.connect):
                return await self._open_connection(address, proxy, through=through)
        except TimeoutError:
            where = (proxy or address).origin
            message = f"{where} did not accept a connection within {timeouts.connect:g} s."
            raise _mark_unsent(ProviderError("timeout", message)) from None
        except OSError as error:
            raise _mark_unsent(_unreachable_error(proxy or address, error)) from error

    async def _open_connection(self, address: ParsedUrl, proxy: ParsedUrl | None, *, through: bool) -> HttpConnection:
        hop = proxy or address
        loop = asyncio.get_running_loop()
        secure = self._tls_context() if hop.scheme == "https" else None

        async def connect(where: str) -> HttpConnection:
            name = hop.host if secure else None
            make = partial(HttpConnection, address.origin)
            _, made = await loop.create_connection(make, where, hop.port, ssl=secure, server_hostname=name)
            return made

        connection = await connect_first(await self._connect_targets(address, proxy), connect)
        if proxy is None or (address.scheme == "http" and not through):
            return connection
        try:
            await self._open_tunnel(connection, address, proxy)
        except BaseException:
            connection.close()
            raise
        return connection

    async def _connect_targets(self, address: ParsedUrl, proxy: ParsedUrl | None) -> Sequence[str]:
        """Where to connect to: the names or addresses to try."""
        if proxy is None:
            return await self._check(address.host, address.port) if self._check else (address.host,)
        if self._screen:
            await self._screen(address.host, address.port)
        return (proxy.host,)

    async def _open_tunnel(self, connection: HttpConnection, address: ParsedUrl, proxy: ParsedUrl) -> None:
        """Has the proxy pass bytes through to `address`, and speaks TLS with that end where it is wanted."""
        host = f"[{address.host}]" if ":" in address.host else address.host
        line = f"CONNECT {host}:{address.port} HTTP/1.1"
        response = connection.send(_encode_head(line, {"Host": f"{host}:{address.port}", **_proxy_auth(proxy)}))
        await response.wait_head()
        if response.status != 200:
            raise ProviderError(
                "network", f"The proxy {proxy.origin} does not let us through to {address.origin} ({response.status})."
            )
        if address.scheme == "http":
            return
        transport = await asyncio.get_running_loop().start_tls(
            connection.transport, connection, self._tls_context(), server_hostname=address.host
        )
        if transport is None:
            raise ConnectionResetError
        connection.connection_made(transport)

    def _tls_context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = self._make_tls()
        return self._tls


async def _await_response(connection: HttpConnection, data: bytes, timeouts: HttpTimeouts) -> HttpResponse:
    """Sends a request and waits until its response begins."""
    response = connection.send(data)
    try:
        async with asyncio.timeout(timeouts.headers):
            await response.wait_head()
    except TimeoutError:
        connection.close()
        message = f"{connection.where} did not begin to answer within {timeouts.headers:g} s."
        raise ProviderError("timeout", message) from None
    except BaseException:
        connection.close()
        raise
    return response


def _encode_head(line: str, fields: Mapping[str, str]) -> bytes:
    for name, value in fields.items():
        if not value.isprintable() or not value.isascii():
            raise ProviderError("bad_request", f"The header {name} holds characters that cannot be sent.")
    lines = [line, *(f"{name}: {value}" for name, value in fields.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")


def _proxy_auth(proxy: ParsedUrl) -> dict[str, str]:
    return {"Proxy-Authorization": basic_auth(proxy.login)} if proxy.login else {}


def _refuse_redirect(address: ParsedUrl, response: HttpResponse) -> None:
    if response.status in (301, 302, 303, 307, 308):
        place = response.headers.get("location", "somewhere else")
        raise ProviderError(
            "bad_request",
            f"{address.origin} sends us on to {place}, and redirects are not followed.",
            status=response.status,
            next=("Set the base URL to the address that answers itself.",),
        )


def _mark_unsent(error: ProviderError) -> ProviderError:
    error.sent = False
    return error


def _unreachable_error(address: ParsedUrl, error: OSError) -> ProviderError:
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
