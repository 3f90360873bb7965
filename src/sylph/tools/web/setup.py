"""What the user set up for the web: who searches, and which browser."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from msgspec import Struct, field

Name = Literal["duckduckgo", "tavily", "brave", "searxng"]
Format = Literal["auto", "markdown", "text", "html", "json"]
PLACES: Mapping[Name, str] = {
    "duckduckgo": "https://html.duckduckgo.com",
    "tavily": "https://api.tavily.com",
    "brave": "https://api.search.brave.com",
    "searxng": "",
}


class Wish(NamedTuple):
    """In which form a page is wanted, and which part of it."""

    format: Format
    whole: bool
    offset: int
    limit: int


class Service(Struct, frozen=True, kw_only=True):
    """Which search service to ask, where, and with which key."""

    name: Name = "duckduckgo"
    base_url: str = ""
    api_key: str = ""
    seconds: float = 30.0

    def __repr__(self) -> str:
        """Names it, and keeps its key to itself."""
        return f"Service({self.name!r}, {self.place!r})"

    @property
    def place(self) -> str:
        return (self.base_url or PLACES[self.name]).rstrip("/")


class Chromium(Struct, frozen=True, kw_only=True):
    """Which browser, how long it is kept unused, how long a page may take, and the environment it is found in."""

    program: str = ""
    idle_seconds: float = 300.0
    page_seconds: float = 30.0
    environ: Mapping[str, str] = field(default_factory=dict[str, str])
