"""Getting one page of the web: redirects followed, packed bodies unpacked, size and time bounded."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from urllib.parse import quote, urljoin, urlsplit, urlunsplit

from msgspec import Struct

from sylph.core.errors import ProviderError
from sylph.net.address_guard import canonical_host
from sylph.net.decompress import ACCEPT_ENCODING, BodyDecompressor
from sylph.net.http_client import HttpClient, HttpTimeouts
from sylph.net.http_connection import HttpResponse

REDIRECT_STATUSES = (301, 302, 303, 307, 308)
NO_HEADERS: Mapping[str, str] = {}
RedirectHook = Callable[[str, str], None]
"""Called before a redirect is followed, with where it comes from and leads to; raises to stop there."""


class FetchLimits(Struct, frozen=True, kw_only=True):
    bytes: int = 10_000_000
    seconds: float = 30.0
    hops: int = 10


class FetchedPage(Struct, frozen=True, kw_only=True):
    """What a server gave in the end. `cut` if there was more than the bound allows."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    cut: bool = False
    hops: tuple[str, ...] = ()
    """The addresses that sent us on."""


async def fetch_page(
    client: HttpClient,
    url: str,
    *,
    headers: Mapping[str, str] = NO_HEADERS,
    bounds: FetchLimits,
    onward: RedirectHook | None = None,
) -> FetchedPage:
    """The page at `url`, whatever its status. Every hop goes through the client's own check of addresses."""
    url = normalize_url(url)
    try:
        async with asyncio.timeout(bounds.seconds):
            return await _follow_redirects(client, url, headers, bounds, onward)
    except TimeoutError:
        raise ProviderError("timeout", f"{url} was not read within {bounds.seconds:g} s.") from None


async def _follow_redirects(
    client: HttpClient, url: str, headers: Mapping[str, str], bounds: FetchLimits, onward: RedirectHook | None
) -> FetchedPage:
    hops: list[str] = []
    while True:
        page = await _fetch_once(client, url, headers, bounds)
        place = page.headers.get("location", "")
        if page.status not in REDIRECT_STATUSES or not place:
            return FetchedPage(
                url=url, status=page.status, headers=page.headers, body=page.body, cut=page.cut, hops=tuple(hops)
            )
        hops.append(url)
        goal = _redirect_target(url, place)
        if goal in hops:
            raise ProviderError("bad_request", f"{hops[0]} leads in a circle: {goal} comes twice.")
        if len(hops) > bounds.hops:
            raise ProviderError("bad_request", f"{hops[0]} sends us on more than {bounds.hops} times.")
        if onward:
            onward(url, goal)
        url = goal


async def _fetch_once(client: HttpClient, url: str, headers: Mapping[str, str], bounds: FetchLimits) -> FetchedPage:
    # One page of a host is seldom followed by another at once, and an idle connection is a burden to both sides.
    asked = {"Accept-Encoding": ACCEPT_ENCODING, "Connection": "close", **headers}
    limits = HttpTimeouts(connect=min(10.0, bounds.seconds), headers=bounds.seconds)
    async with client.get(url, headers=asked, timeouts=limits, redirects=True) as response:
        leads = response.status in REDIRECT_STATUSES and "location" in response.headers
        body, cut = (b"", False) if leads else await read_body(response, bounds.bytes)
        return FetchedPage(url=url, status=response.status, headers=response.headers, body=body, cut=cut)


async def read_body(response: HttpResponse, limit: int) -> tuple[bytes, bool]:
    """At most `limit` bytes of the body, unpacked, and whether there was more."""
    inflate = BodyDecompressor(response.headers.get("content-encoding", ""))
    parts: list[bytes] = []
    size = 0
    async for piece in response:
        part = inflate.feed(piece, limit + 1 - size)
        parts.append(part)
        size += len(part)
        if size > limit:
            return b"".join(parts)[:limit], True
    if not inflate.complete:
        raise ProviderError("cut", "The packed answer breaks off before its end.")
    return b"".join(parts), False


def normalize_url(url: str) -> str:
    """A URL as it can be sent: the host in ASCII, other characters escaped, no fragment. Raises where it is none."""
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise ProviderError("bad_request", f"{url!r} is not a URL: {error}.") from None
    if parts.scheme not in ("http", "https") or not host:
        raise ProviderError("bad_request", f"{url!r} is not a URL: it must begin with http:// or https:// and a host.")
    if parts.username is not None or "\\" in parts.netloc:
        raise ProviderError("bad_request", f"{url!r} carries a user name; such addresses are not opened.")
    host = canonical_host(host)
    place = f"[{host}]" if ":" in host else host
    escaped = quote(parts.path, safe="/%:@!$&'()*+,;=~-._"), quote(parts.query, safe="/%:@!$&'()*+,;=~-._?[]|")
    return urlunsplit((parts.scheme, place if port is None else f"{place}:{port}", escaped[0] or "/", escaped[1], ""))


def _redirect_target(url: str, place: str) -> str:
    # Headers are read as Latin-1, and many servers write UTF-8 there.
    with suppress(UnicodeError):
        place = place.encode("latin-1").decode("utf-8")
    try:
        return normalize_url(urljoin(url, place))
    except (ProviderError, ValueError):
        raise ProviderError("bad_request", f"{url} sends us on to {place[:200]!r}, which cannot be opened.") from None
