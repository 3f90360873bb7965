"""The ways in which search services are asked, and how they answer: one pair of pure functions for each."""

from collections.abc import Callable, Mapping
from urllib.parse import parse_qs, urlencode, urlsplit

import msgspec
from msgspec import Struct, field

from sylph.tools.web.markup import Node, parse
from sylph.tools.web.setup import Name


class Wanted(Struct, frozen=True, kw_only=True):
    query: str
    limit: int = 8
    site: str = ""
    freshness: str = "any"

    @property
    def words(self) -> str:
        """The query with the site in it, as most services want it."""
        return f"{self.query} site:{self.site}" if self.site else self.query


class Hit(Struct, frozen=True):
    title: str
    url: str
    snippet: str = ""


class Asked(Struct, frozen=True, kw_only=True):
    """An HTTP request: a POST if there is a body."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes | None = None


class Barred(Exception):
    """The service answers, but not with results; its text says why."""


class Engine(Struct, frozen=True, kw_only=True):
    ask: Callable[[str, str, Wanted], Asked]
    read: Callable[[bytes], list[Hit]]
    keyed: bool = False


class _Tavily(msgspec.Struct):
    class Item(msgspec.Struct):
        url: str
        title: str | None = ""
        content: str | None = ""

    results: list[Item]


class _Brave(msgspec.Struct):
    class Web(msgspec.Struct):
        class Item(msgspec.Struct):
            url: str
            title: str = ""
            description: str = ""
            age: str | None = ""

        results: list[Item] = []

    web: Web | None = None


class _SearXNG(msgspec.Struct):
    class Item(msgspec.Struct):
        url: str
        title: str | None = ""
        content: str | None = ""

    results: list[Item]


def _ask_tavily(base: str, key: str, wanted: Wanted) -> Asked:
    body: dict[str, object] = {"query": wanted.query, "max_results": wanted.limit, "search_depth": "basic"}
    if wanted.site:
        body["include_domains"] = [wanted.site]
    if wanted.freshness != "any":
        body["time_range"] = wanted.freshness
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    return Asked(url=f"{base}/search", headers=headers, body=msgspec.json.encode(body))


def _read_tavily(body: bytes) -> list[Hit]:
    found = msgspec.json.decode(body, type=_Tavily)
    return [Hit(item.title or "", item.url, item.content or "") for item in found.results]


def _ask_brave(base: str, key: str, wanted: Wanted) -> Asked:
    asked: dict[str, object] = {"q": wanted.words, "count": wanted.limit, "text_decorations": "false"}
    if wanted.freshness != "any":
        asked["freshness"] = f"p{wanted.freshness[0]}"
    headers = {"X-Subscription-Token": key, "Accept": "application/json"}
    return Asked(url=f"{base}/res/v1/web/search?{urlencode(asked)}", headers=headers)


def _read_brave(body: bytes) -> list[Hit]:
    found = msgspec.json.decode(body, type=_Brave)
    items = found.web.results if found.web else []
    said = ((item, f"{item.age}: {item.description}" if item.age else item.description) for item in items)
    return [Hit(_plain(item.title), item.url, _plain(text)) for item, text in said]


def _ask_searxng(base: str, key: str, wanted: Wanted) -> Asked:
    asked = {"q": wanted.words, "format": "json"}
    if wanted.freshness != "any":
        asked["time_range"] = wanted.freshness
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return Asked(url=f"{base}/search?{urlencode(asked)}", headers={**headers, "Accept": "application/json"})


def _read_searxng(body: bytes) -> list[Hit]:
    found = msgspec.json.decode(body, type=_SearXNG)
    return [Hit(item.title or "", item.url, item.content or "") for item in found.results]


def _ask_duckduckgo(base: str, key: str, wanted: Wanted) -> Asked:  # noqa: ARG001 - it has no keys
    asked = {"q": wanted.words}
    if wanted.freshness != "any":
        asked["df"] = wanted.freshness[0]
    return Asked(url=f"{base}/html/?{urlencode(asked)}", headers={"Accept": "text/html"})


def _read_duckduckgo(body: bytes) -> list[Hit]:
    """The results of its plain page, or of the even plainer one."""
    root = parse(body.decode("utf-8", "replace"))
    hits: list[Hit] = []
    robots = False
    for node in root.walk():
        names = node.attrs.get("class", "").split()
        robots |= any(name.startswith("anomaly-modal") for name in names)
        if {"result__a", "result-link"} & set(names):
            url = _goal(node.attrs.get("href", ""))
            if url:
                hits.append(Hit(_words(node), url))
        elif {"result__snippet", "result-snippet"} & set(names) and hits and not hits[-1].snippet:
            hits[-1] = Hit(hits[-1].title, hits[-1].url, _words(node))
    if robots and not hits:
        raise Barred("DuckDuckGo wants to see that a person is asking")
    return hits


def _goal(href: str) -> str:
    """Where a result leads: DuckDuckGo's own links carry it inside. An advertisement leads nowhere."""
    parts = urlsplit(href)
    if parts.path == "/l/" and (inner := parse_qs(parts.query).get("uddg")):
        return inner[0]
    if (parts.hostname or "").endswith("duckduckgo.com"):
        return ""
    return href if parts.scheme in ("http", "https") else ""


def _plain(text: str) -> str:
    return _words(parse(text)) if "<" in text or "&" in text else text


def _words(node: Node) -> str:
    return " ".join(node.text().split())


ENGINES: Mapping[Name, Engine] = {
    "duckduckgo": Engine(ask=_ask_duckduckgo, read=_read_duckduckgo),
    "tavily": Engine(ask=_ask_tavily, read=_read_tavily, keyed=True),
    "brave": Engine(ask=_ask_brave, read=_read_brave, keyed=True),
    "searxng": Engine(ask=_ask_searxng, read=_read_searxng),
}
