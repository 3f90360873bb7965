"""One question to a search service, and its answer in words."""

import asyncio
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from sylph.core.errors import ProviderError, ToolError
from sylph.core.text import sentence
from sylph.net.http import Client, Timeouts
from sylph.net.inflate import OFFERED
from sylph.net.visit import drawn
from sylph.tools.web.charset import decode
from sylph.tools.web.engines import ENGINES, Asked, Barred, Hit, Wanted
from sylph.tools.web.origin import marked, one_line
from sylph.tools.web.setup import Service

AGENT = "Mozilla/5.0 (compatible; Sylph)"
BYTES = 3_000_000
SNIPPET = 400
OTHERS = "Other services: sylph config set web.search.provider tavily (or brave, searxng) with web.search.api_key_env."


async def answer(service: Service, client: Client, wanted: Wanted, seconds: float) -> str:
    """The results as text. Raises ToolError where the service is not set up, fails or declines."""
    wanted = replace(wanted, site=_host(wanted.site))
    found = await _found(service, client, wanted, seconds)
    return _told(found[: wanted.limit], wanted, service)


async def _found(service: Service, client: Client, wanted: Wanted, seconds: float) -> list[Hit]:
    engine = ENGINES[service.name]
    _set_up(service, keyed=engine.keyed)
    asked = engine.ask(service.place, service.api_key, wanted)
    try:
        async with asyncio.timeout(seconds):
            status, body = await _exchange(client, asked, seconds)
    except TimeoutError:
        raise _failed(service, f"did not answer within {seconds:g} s") from None
    except ProviderError as error:
        raise _failed(service, f"cannot be reached: {error}") from error
    if status >= 400:
        raise _declined(service, status, body)
    try:
        return engine.read(body)
    except Barred as error:
        raise _failed(service, f"did not answer: {error}") from None
    except (msgspec.DecodeError, UnicodeError):
        raise _failed(service, "answered with something that is not a list of results") from None


async def _exchange(client: Client, asked: Asked, seconds: float) -> tuple[int, bytes]:
    headers = {"User-Agent": AGENT, "Accept-Encoding": OFFERED, **asked.headers}
    limits = Timeouts(connect=min(10.0, seconds), headers=seconds)
    if asked.body is None:
        request = client.get(asked.url, headers=headers, timeouts=limits)
    else:
        request = client.post(asked.url, asked.body, headers=headers, timeouts=limits)
    async with request as response:
        body, _ = await drawn(response, BYTES)
        return response.status, body


def _set_up(service: Service, *, keyed: bool) -> None:
    if not service.place:
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


def _failed(service: Service, said: str) -> ToolError:
    return ToolError(
        sentence(f"{service.name} {said}"),
        kind="search_failed",
        details={"service": service.place},
        next=["Fetch a page that you know of instead, or try again later.", f"The user can choose. {OTHERS}"],
    )


def _declined(service: Service, status: int, body: bytes) -> ToolError:
    reasons = {
        401: "does not accept the key",
        403: "does not let us in" + (" (is the JSON format on in its settings?)" if service.name == "searxng" else ""),
        422: "did not understand the request",
        429: "asks for a pause: too many searches",
        432: "has no searches left in its plan",
    }
    said = one_line(decode(body[:2000]), 200)
    return _failed(service, f"{reasons.get(status, 'failed')} (status {status}{f': {said}' if said else ''})")


def _host(site: str) -> str:
    """A host from what a model may write: a whole address, or one with spaces around."""
    site = site.strip().lower()
    host = urlsplit(site if "://" in site else f"//{site}").hostname or ""
    if site and (not host or " " in host):
        raise ToolError(f"{site!r} is not a host.", kind="bad_site", next=["Give it like docs.python.org."])
    return host


def _told(found: list[Hit], wanted: Wanted, service: Service) -> str:
    head = f"{service.name}: {len(found)} results for {wanted.words}"
    if not found:
        return f"[{one_line(head)}]\nNothing was found. Use other or fewer words."
    return marked(head, "\n".join(_line(number, hit) for number, hit in enumerate(found, 1)))


def _line(number: int, hit: Hit) -> str:
    title = one_line(hit.title, 200) or "(no title)"
    return f"{number}. {title}\n   {one_line(hit.url, 500)}\n   {one_line(hit.snippet, SNIPPET)}".rstrip()
