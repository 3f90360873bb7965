"""Other sites' pages: what the browser is told for those that were named, and before it dares to ask."""

from starlette.responses import Response

from sylph.interfaces.http.access.asked import Asked
from sylph.interfaces.http.access.headers import Pairs

METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE"
# What the client libraries of `/v1` tell of themselves.
TOLD = ("Arch", "Helper-Method", "Lang", "OS", "Package-Version", "Retry-Count", "Runtime", "Runtime-Version")
HEADERS = ", ".join(
    [
        "Authorization, Content-Type, If-Match, If-None-Match, Idempotency-Key, Last-Event-ID, X-Sylph",
        "X-Sylph-Session",
        *(f"X-Stainless-{name}" for name in TOLD),
    ]
)
SHOWN = b"ETag, Location, Retry-After, Content-Disposition, X-Sylph-Session"
SECONDS = "600"


def allowing(asked: Asked) -> Pairs:
    """Headers of an answer for the page of a named site. Cookies are not for it."""
    return [
        (b"access-control-allow-origin", asked.head(b"origin").encode("latin-1")),
        (b"access-control-expose-headers", SHOWN),
    ]


def is_preflight(asked: Asked) -> bool:
    return asked.method == "OPTIONS" and b"access-control-request-method" in asked.heads


def preflight(asked: Asked) -> Response:
    told = {
        "Access-Control-Allow-Methods": METHODS,
        "Access-Control-Allow-Headers": HEADERS,
        "Access-Control-Max-Age": SECONDS,
    }
    if asked.head(b"access-control-request-private-network") == "true":
        told["Access-Control-Allow-Private-Network"] = "true"
    return Response(status_code=204, headers=told)
