"""What the user set up for the web: who searches, and which browser."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from msgspec import Struct, field

SearchServiceName = Literal["duckduckgo", "tavily", "brave", "searxng"]
FetchFormat = Literal["auto", "markdown", "text", "html", "json"]
PLACES: Mapping[SearchServiceName, str] = {
    "duckduckgo": "https://html.duckduckgo.com",
    "tavily": "https://api.tavily.com",
    "brave": "https://api.search.brave.com",
    "searxng": "",
}


class FetchOptions(NamedTuple):
    """In which form a page is wanted, and which part of it."""

    format: FetchFormat
    whole: bool
    offset: int
    limit: int


class SearchService(Struct, frozen=True, kw_only=True):
    """Which search service to ask, where, and with which key."""

    name: SearchServiceName = "duckduckgo"
    base_url: str = ""
    api_key: str = ""
    seconds: float = 30.0

    def __repr__(self) -> str:
        """Names it, and keeps its key to itself."""
        return f"SearchService({self.name!r}, {self.service_url!r})"

    @property
    def service_url(self) -> str:
        return (self.base_url or PLACES[self.name]).rstrip("/")


class ChromiumSettings(Struct, frozen=True, kw_only=True):
    """Which browser, how long it is kept unused, how long a page may take, and the environment it is found in."""

    program: str = ""
    idle_seconds: float = 300.0
    page_seconds: float = 30.0
    environ: Mapping[str, str] = field(default_factory=dict[str, str])
