"""What every answer tells the browser: run nothing, frame nothing, keep nothing, tell nobody."""

from collections.abc import Iterable

from starlette.types import Message

HeaderPairs = list[tuple[bytes, bytes]]

SECURITY_HEADERS: HeaderPairs = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()"),
]
DATA_POLICY = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'; sandbox")
PAGE_POLICY = (
    b"content-security-policy",
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    b"media-src 'self' blob:; connect-src 'self'; manifest-src 'self'; worker-src 'self'; form-action 'self'; "
    b"base-uri 'none'; frame-ancestors 'none'",
)
# The app turns text into markup in one place only, through its sanitiser: nothing else may, whatever slips in.
TRUSTED_TYPES = "require-trusted-types-for 'script'; trusted-types dompurify svelte-trusted-html sylph-worker"
APP_POLICY = f"{PAGE_POLICY[1].decode()}; {TRUSTED_TYPES}"
# A worker obeys the policy it comes with: this one fetches parts of the app, and nothing else.
WORKER_POLICY = "default-src 'none'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'"
NO_STORE = (b"cache-control", b"no-store")
STRICT_TRANSPORT = (b"strict-transport-security", b"max-age=31536000")
# A route may say these itself.
OVERRIDABLE = frozenset({DATA_POLICY[0], NO_STORE[0]})


def add_security_headers(message: Message, *, page: bool, extra: Iterable[tuple[bytes, bytes]] = ()) -> bytes:
    """Adds what belongs into each answer to its start; tells the type of its content."""
    given: HeaderPairs = message.setdefault("headers", [])
    kind, said = b"", set[bytes]()
    for name, value in given:
        low = name.lower()
        if low == b"content-type":
            kind = value
        elif low in OVERRIDABLE:
            said.add(low)
    policy = PAGE_POLICY if page and kind.startswith(b"text/html") else DATA_POLICY
    own = [policy] if page else [policy, NO_STORE]
    message["headers"] = [*given, *SECURITY_HEADERS, *(each for each in own if each[0] not in said), *extra]
    return kind
