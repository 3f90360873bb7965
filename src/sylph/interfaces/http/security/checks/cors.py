"""Other sites' pages: what the browser is told for those that were named, and before it dares to ask."""

from starlette.responses import Response

from sylph.interfaces.http.security.checks.request_head import RequestHead
from sylph.interfaces.http.security.checks.security_headers import HeaderPairs

METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE"
# What the client libraries of `/v1` tell of themselves.
STAINLESS_FIELDS = (
    "Arch",
    "Helper-Method",
    "Lang",
    "OS",
    "Package-Version",
    "Retry-Count",
    "Runtime",
    "Runtime-Version",
)
HEADERS = ", ".join(
    [
        "Authorization, Content-Type, If-Match, If-None-Match, Idempotency-Key, Last-Event-ID, X-Sylph",
        "X-Sylph-Session",
        *(f"X-Stainless-{name}" for name in STAINLESS_FIELDS),
    ]
)
EXPOSED_HEADERS = b"ETag, Location, Retry-After, Content-Disposition, X-Sylph-Session"
MAX_AGE = "600"


def cors_headers(asked: RequestHead) -> HeaderPairs:
    """Headers of an answer for the page of a named site. Cookies are not for it."""
    return [
        (b"access-control-allow-origin", asked.header(b"origin").encode("latin-1")),
        (b"access-control-expose-headers", EXPOSED_HEADERS),
    ]


def is_preflight(asked: RequestHead) -> bool:
    return asked.method == "OPTIONS" and b"access-control-request-method" in asked.headers


def answer_preflight(asked: RequestHead) -> Response:
    told = {
        "Access-Control-Allow-Methods": METHODS,
        "Access-Control-Allow-Headers": HEADERS,
        "Access-Control-Max-Age": MAX_AGE,
    }
    if asked.header(b"access-control-request-private-network") == "true":
        told["Access-Control-Allow-Private-Network"] = "true"
    return Response(status_code=204, headers=told)
