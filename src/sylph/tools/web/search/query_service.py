"""One question to a search service, and its answer in words."""

import asyncio
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from sylph.core.errors import ProviderError, ToolError
from sylph.core.text.formatting import end_sentence
from sylph.net.decompress import ACCEPT_ENCODING
from sylph.net.http_client import HttpClient, HttpTimeouts
from sylph.net.page_fetch import read_body
from sylph.tools.web.charset import decode_body
from sylph.tools.web.search.engines import ENGINES, EngineRequest, SearchBlocked, WebHit, WebQuery
from sylph.tools.web.settings import SearchService
from sylph.tools.web.untrusted_text import mark_untrusted, one_line

AGENT = "Mozilla/5.0 (compatible; Sylph)"
BYTES = 3_000_000
SNIPPET = 400
OTHERS = "Other services: sylph config set web.search.provider tavily (or brave, searxng) with web.search.api_key_env."


async def search_web(service: SearchService, client: HttpClient, wanted: WebQuery, seconds: float) -> str:
    """The results as text. Raises ToolError where the service is not set up, fails or declines."""
    wanted = replace(wanted, site=_site_host(wanted.site))
    found = await _fetch_hits(service, client, wanted, seconds)
    return _render_hits(found[: wanted.limit], wanted, service)


async def _fetch_hits(service: SearchService, client: HttpClient, wanted: WebQuery, seconds: float) -> list[WebHit]:
    engine = ENGINES[service.name]
    _check_configured(service, keyed=engine.keyed)
    asked = engine.ask(service.service_url, service.api_key, wanted)
    try:
        async with asyncio.timeout(seconds):
            status, body = await _send_request(client, asked, seconds)
    except TimeoutError:
        raise _search_error(service, f"did not answer within {seconds:g} s") from None
    except ProviderError as error:
        raise _search_error(service, f"cannot be reached: {error}") from error
    if status >= 400:
        raise _status_error(service, status, body)
    try:
        return engine.read(body)
    except SearchBlocked as error:
        raise _search_error(service, f"did not answer: {error}") from None
    except (msgspec.DecodeError, UnicodeError):
        raise _search_error(service, "answered with something that is not a list of results") from None


async def _send_request(client: HttpClient, asked: EngineRequest, seconds: float) -> tuple[int, bytes]:
    headers = {"User-Agent": AGENT, "Accept-Encoding": ACCEPT_ENCODING, **asked.headers}
    limits = HttpTimeouts(connect=min(10.0, seconds), headers=seconds)
    if asked.body is None:
        request = client.get(asked.url, headers=headers, timeouts=limits)
    else:
        request = client.post(asked.url, asked.body, headers=headers, timeouts=limits)
    async with request as response:
        body, _ = await read_body(response, BYTES)
        return response.status, body


def _check_configured(service: SearchService, *, keyed: bool) -> None:
    if not service.service_url:
        raise ToolError(
            f"The search service {service.name} is not set up: its address is missing.",
            kind="not_configured",
            next=["Tell the user: sylph config set web.search.base_url https://your-searxng"],
        )
    if keyed and not service.api_key:
        raise ToolError(
            f"The search service {service.name} is not set up: its key is missing.",
            kind="not_configured",
            next=["Tell the user: sylph config set web.search.api_key_env NAME_OF_A_VARIABLE"],
        )


def _search_error(service: SearchService, said: str) -> ToolError:
    return ToolError(
        end_sentence(f"{service.name} {said}"),
        kind="search_failed",
        details={"service": service.service_url},
        next=["Fetch a page that you know of instead, or try again later.", f"The user can choose. {OTHERS}"],
    )


def _status_error(service: SearchService, status: int, body: bytes) -> ToolError:
    reasons = {
        401: "does not accept the key",
        403: "does not let us in" + (" (is the JSON format on in its settings?)" if service.name == "searxng" else ""),
        422: "did not understand the request",
        429: "asks for a pause: too many searches",
        432: "has no searches left in its plan",
    }
    said = one_line(decode_body(body[:2000]), 200)
    return _search_error(service, f"{reasons.get(status, 'failed')} (status {status}{f': {said}' if said else ''})")


def _site_host(site: str) -> str:
    """A host from what a model may write: a whole address, or one with spaces around."""
    site = site.strip().lower()
    host = urlsplit(site if "://" in site else f"//{site}").hostname or ""
    if site and (not host or " " in host):
        raise ToolError(f"{site!r} is not a host.", kind="bad_site", next=["Give it like docs.python.org."])
    return host


def _render_hits(found: list[WebHit], wanted: WebQuery, service: SearchService) -> str:
    head = f"{service.name}: {len(found)} results for {wanted.full_query}"
    if not found:
        return f"[{one_line(head)}]\nNothing was found. Use other or fewer words."
    return mark_untrusted(head, "\n".join(_render_hit(number, hit) for number, hit in enumerate(found, 1)))


def _render_hit(number: int, hit: WebHit) -> str:
    title = one_line(hit.title, 200) or "(no title)"
    return f"{number}. {title}\n   {one_line(hit.url, 500)}\n   {one_line(hit.snippet, SNIPPET)}".rstrip()
