"""The ways in which search services are asked, and how they answer: one pair of pure functions for each."""

from collections.abc import Callable, Mapping
from urllib.parse import parse_qs, urlencode, urlsplit

import msgspec
from msgspec import Struct, field

from sylph.tools.web.readability.html_parser import HtmlNode, parse_html
from sylph.tools.web.settings import SearchServiceName


class WebQuery(Struct, frozen=True, kw_only=True):
    query: str
    limit: int = 8
    site: str = ""
    freshness: str = "any"

    @property
    def full_query(self) -> str:
        """The query with the site in it, as most services want it."""
        return f"{self.query} site:{self.site}" if self.site else self.query


class WebHit(Struct, frozen=True):
    title: str
    url: str
    snippet: str = ""


class EngineRequest(Struct, frozen=True, kw_only=True):
    """An HTTP request: a POST if there is a body."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes | None = None


class SearchBlocked(Exception):
    """The service answers, but not with results; its text says why."""


class SearchEngine(Struct, frozen=True, kw_only=True):
    ask: Callable[[str, str, WebQuery], EngineRequest]
    read: Callable[[bytes], list[WebHit]]
    keyed: bool = False


class _Tavily(msgspec.Struct):
    class TavilyItem(msgspec.Struct):
        url: str
        title: str | None = ""
        content: str | None = ""

    results: list[TavilyItem]


class _Brave(msgspec.Struct):
    class BraveResults(msgspec.Struct):
        class BraveItem(msgspec.Struct):
            url: str
            title: str = ""
            description: str = ""
            age: str | None = ""

        results: list[BraveItem] = []

    web: BraveResults | None = None


class _SearXNG(msgspec.Struct):
    class SearxngItem(msgspec.Struct):
        url: str
        title: str | None = ""
        content: str | None = ""

    results: list[SearxngItem]


def _ask_tavily(base: str, key: str, wanted: WebQuery) -> EngineRequest:
    body: dict[str, object] = {"query": wanted.query, "max_results": wanted.limit, "search_depth": "basic"}
    if wanted.site:
        body["include_domains"] = [wanted.site]
    if wanted.freshness != "any":
        body["time_range"] = wanted.freshness
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    return EngineRequest(url=f"{base}/search", headers=headers, body=msgspec.json.encode(body))


def _read_tavily(body: bytes) -> list[WebHit]:
    found = msgspec.json.decode(body, type=_Tavily)
    return [WebHit(item.title or "", item.url, item.content or "") for item in found.results]


def _ask_brave(base: str, key: str, wanted: WebQuery) -> EngineRequest:
    asked: dict[str, object] = {"q": wanted.full_query, "count": wanted.limit, "text_decorations": "false"}
    if wanted.freshness != "any":
        asked["freshness"] = f"p{wanted.freshness[0]}"
    headers = {"X-Subscription-Token": key, "Accept": "application/json"}
    return EngineRequest(url=f"{base}/res/v1/web/search?{urlencode(asked)}", headers=headers)


def _read_brave(body: bytes) -> list[WebHit]:
    found = msgspec.json.decode(body, type=_Brave)
    items = found.web.results if found.web else []
    said = ((item, f"{item.age}: {item.description}" if item.age else item.description) for item in items)
    return [WebHit(_strip_markup(item.title), item.url, _strip_markup(text)) for item, text in said]


def _ask_searxng(base: str, key: str, wanted: WebQuery) -> EngineRequest:
    asked = {"q": wanted.full_query, "format": "json"}
    if wanted.freshness != "any":
        asked["time_range"] = wanted.freshness
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return EngineRequest(url=f"{base}/search?{urlencode(asked)}", headers={**headers, "Accept": "application/json"})


def _read_searxng(body: bytes) -> list[WebHit]:
    found = msgspec.json.decode(body, type=_SearXNG)
    return [WebHit(item.title or "", item.url, item.content or "") for item in found.results]


def _ask_duckduckgo(base: str, key: str, wanted: WebQuery) -> EngineRequest:  # noqa: ARG001 - it has no keys
    asked = {"q": wanted.full_query}
    if wanted.freshness != "any":
        asked["df"] = wanted.freshness[0]
    return EngineRequest(url=f"{base}/html/?{urlencode(asked)}", headers={"Accept": "text/html"})


def _read_duckduckgo(body: bytes) -> list[WebHit]:
    """The results of its plain page, or of the even plainer one."""
    root = parse_html(body.decode("utf-8", "replace"))
    hits: list[WebHit] = []
    robots = False
    for node in root.walk():
        names = node.attrs.get("class", "").split()
        robots |= any(name.startswith("anomaly-modal") for name in names)
        if {"result__a", "result-link"} & set(names):
            url = _result_url(node.attrs.get("href", ""))
            if url:
                hits.append(WebHit(_node_words(node), url))
        elif {"result__snippet", "result-snippet"} & set(names) and hits and not hits[-1].snippet:
            hits[-1] = WebHit(hits[-1].title, hits[-1].url, _node_words(node))
    if robots and not hits:
        raise SearchBlocked("DuckDuckGo wants to see that a person is asking")
    return hits


def _result_url(href: str) -> str:
    """Where a result leads: DuckDuckGo's own links carry it inside. An advertisement leads nowhere."""
    parts = urlsplit(href)
    if parts.path == "/l/" and (inner := parse_qs(parts.query).get("uddg")):
        return inner[0]
    if (parts.hostname or "").endswith("duckduckgo.com"):
        return ""
    return href if parts.scheme in ("http", "https") else ""


def _strip_markup(text: str) -> str:
    return _node_words(parse_html(text)) if "<" in text or "&" in text else text


def _node_words(node: HtmlNode) -> str:
    return " ".join(node.text().split())


ENGINES: Mapping[SearchServiceName, SearchEngine] = {
    "duckduckgo": SearchEngine(ask=_ask_duckduckgo, read=_read_duckduckgo),
    "tavily": SearchEngine(ask=_ask_tavily, read=_read_tavily, keyed=True),
    "brave": SearchEngine(ask=_ask_brave, read=_read_brave, keyed=True),
    "searxng": SearchEngine(ask=_ask_searxng, read=_read_searxng),
}
