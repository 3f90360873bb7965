"""What a request says of itself in its head, read once."""

from collections.abc import MutableMapping
from typing import Any, Literal

from msgspec import Struct

WANTED = frozenset(
    {
        b"host",
        b"origin",
        b"authorization",
        b"cookie",
        b"content-type",
        b"content-length",
        b"content-encoding",
        b"sec-fetch-site",
        b"sec-fetch-mode",
        b"x-sylph",
        b"access-control-request-method",
        b"access-control-request-private-network",
    }
)
# Two of these would be read differently by different programs.
ONCE = frozenset({b"host", b"origin", b"authorization", b"content-length", b"content-type", b"sec-fetch-site"})
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


class Asked(Struct, frozen=True, kw_only=True):
    kind: Literal["http", "websocket"]
    method: str
    path: str
    query: bytes
    heads: dict[bytes, str]
    local: str
    """The address of ours that was connected to."""
    client: str
    twice: str = ""
    """A header that was said twice, and must not be."""

    def head(self, name: bytes) -> str:
        return self.heads.get(name, "")

    @property
    def safe(self) -> bool:
        return self.kind == "http" and self.method in SAFE

    @property
    def page(self) -> bool:
        """Whether it is for people to look at, not for programs."""
        return not self.path.startswith(("/api/", "/v1/", "/ws"))


def read(scope: MutableMapping[str, Any]) -> Asked:
    heads: dict[bytes, str] = {}
    twice = ""
    for name, value in scope["headers"]:
        if name in WANTED:
            if name in heads and name in ONCE:
                twice = name.decode()
            heads[name] = value.decode("latin-1") if name not in heads else f"{heads[name]}; {value.decode('latin-1')}"
    server, client = scope.get("server"), scope.get("client")
    return Asked(
        kind=scope["type"],
        method=scope.get("method", "GET"),
        path=scope["path"],
        query=scope["query_string"],
        heads=heads,
        local=server[0] if server else "",
        client=client[0] if client else "",
        twice=twice,
    )
