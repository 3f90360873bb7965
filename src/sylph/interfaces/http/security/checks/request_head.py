"""What a request says of itself in its head, read once."""

from collections.abc import MutableMapping
from typing import Any, Literal

from msgspec import Struct

READ_HEADERS = frozenset(
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
SINGLE_HEADERS = frozenset(
    {b"host", b"origin", b"authorization", b"content-length", b"content-type", b"sec-fetch-site"}
)
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class RequestHead(Struct, frozen=True, kw_only=True):
    kind: Literal["http", "websocket"]
    method: str
    path: str
    query: bytes
    headers: dict[bytes, str]
    local_address: str
    """The address of ours that was connected to."""
    client_address: str
    repeated_header: str = ""
    """A header that was said twice, and must not be."""

    def header(self, name: bytes) -> str:
        return self.headers.get(name, "")

    @property
    def is_safe(self) -> bool:
        return self.kind == "http" and self.method in SAFE_METHODS

    @property
    def is_page(self) -> bool:
        """Whether it is for people to look at, not for programs."""
        return not self.path.startswith(("/api/", "/v1/", "/ws"))


def read_head(scope: MutableMapping[str, Any]) -> RequestHead:
    heads: dict[bytes, str] = {}
    twice = ""
    for name, value in scope["headers"]:
        if name in READ_HEADERS:
            if name in heads and name in SINGLE_HEADERS:
                twice = name.decode()
            heads[name] = value.decode("latin-1") if name not in heads else f"{heads[name]}; {value.decode('latin-1')}"
    server, client = scope.get("server"), scope.get("client")
    return RequestHead(
        kind=scope["type"],
        method=scope.get("method", "GET"),
        path=scope["path"],
        query=scope["query_string"],
        headers=heads,
        local_address=server[0] if server else "",
        client_address=client[0] if client else "",
        repeated_header=twice,
    )
