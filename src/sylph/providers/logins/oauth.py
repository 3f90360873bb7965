"""Asking an OAuth server for tokens, and what its refusals mean."""

import asyncio
from collections.abc import Mapping
from typing import Any, TypeVar, cast
from urllib.parse import urlencode, urlsplit

import msgspec
from msgspec import Struct, field

from sylph.core.errors import FailureKind, ProviderError, UserError
from sylph.core.text.formatting import first_line
from sylph.net.http_client import HttpClient, HttpTimeouts
from sylph.net.url import is_loopback
from sylph.providers.logins.tokens import OAuthTokenResponse

Found = TypeVar("Found")
SECONDS = 30.0
TIMEOUTS = HttpTimeouts(connect=10.0, headers=SECONDS)
LIMIT = 1 << 20
CONFIDENTIAL = frozenset({"client_secret", "code", "code_verifier", "device_auth_id", "device_code", "refresh_token"})
BY_STATUS: Mapping[int, FailureKind] = {408: "timeout", 429: "rate_limited", 503: "overloaded", 504: "timeout"}


class OAuthService(Struct, frozen=True, kw_only=True):
    """Where and how one logs in to a service. Without a client id it is off."""

    name: str
    title: str
    terms: str
    """What a person has to know, and agree to, before anything happens."""
    client_id: str = ""
    client_secret: str = ""
    authorize_url: str
    token_url: str
    device_url: str
    exchange_url: str = ""
    scope: str
    redirect: str = "http://127.0.0.1:0/callback"
    """Where the browser is sent back to, on this machine. Port 0 is any that is free."""
    more: Mapping[str, str] = field(default_factory=dict[str, str])
    """More that the login page wants to know."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """What the service wants with every request."""

    def __repr__(self) -> str:
        return f"OAuthService({self.name!r})"


class OAuthRefusal(UserError):
    """The server said no. `code` is its word for why, as RFC 6749 and RFC 8628 list them."""

    kind = "login_refused"

    def __init__(self, code: str, message: str, *, status: int = 0, next: tuple[str, ...] = ()) -> None:
        super().__init__(message, details={"error": code}, next=next)
        self.code, self.status = code, status


class OAuthReply(Struct, frozen=True):
    """Whatever an endpoint answers, before it is known to be good."""

    error: Any = None
    error_description: Any = None
    message: Any = None


async def request_token(service: OAuthService, client: HttpClient, fields: Mapping[str, str]) -> OAuthTokenResponse:
    """Asks the token endpoint. Raises Refusal where it says no, ProviderError where it says nothing of use."""
    who = {"client_id": service.client_id}
    if service.client_secret:
        who["client_secret"] = service.client_secret
    body = await post_form(service, client, service.token_url, {**who, **fields})
    found = decode_response(service, body, OAuthTokenResponse)
    if not found.access_token:
        raise ProviderError("format", f"{service.title} sent no token: its answer has none.")
    return found


async def post_form(
    service: OAuthService, client: HttpClient, url: str, fields: Mapping[str, str], *, json: bool = False
) -> bytes:
    """The body of a good answer."""
    headers = {
        "Accept": "application/json",
        "Content-Type": "application/json" if json else "application/x-www-form-urlencoded",
    }
    data = msgspec.json.encode(fields) if json else urlencode(fields).encode()
    try:
        async with (
            asyncio.timeout(SECONDS),
            client.post(require_https(url), data, headers=headers, timeouts=TIMEOUTS) as response,
        ):
            said = await response.read(LIMIT)
    except TimeoutError:
        raise ProviderError("timeout", f"{service.title} did not answer within {SECONDS:.0f} s.") from None
    hidden = tuple(value for name, value in fields.items() if name in CONFIDENTIAL)
    return check_response(service, response.status, said, hidden=hidden)


def check_response(service: OAuthService, status: int, said: bytes, *, hidden: tuple[str, ...] = ()) -> bytes:
    """The body, unless it or the status tells of a failure. Of `hidden` nothing is ever repeated."""
    try:
        told = msgspec.json.decode(said, type=OAuthReply)
    except (msgspec.DecodeError, UnicodeDecodeError):
        told = None
    if told and told.error and status < 500:
        # GitHub sends errors with the status 200, OpenAI wraps them into an object.
        raise _build_refusal(service, told, status, hidden)
    if 200 <= status < 300:
        if told is None:
            raise ProviderError("format", f"{service.title} answered with something that is not JSON.", status=status)
        return said
    kind = BY_STATUS.get(status, "server_error" if status >= 500 else "bad_request")
    words = f": {_redact_words(told.message, hidden)}" if told and isinstance(told.message, str) else ""
    raise ProviderError(kind, f"{service.title} answered with the status {status}{words}.", status=status)


def decode_response(service: OAuthService, said: bytes, kind: type[Found]) -> Found:
    try:
        return msgspec.json.decode(said, type=kind, strict=False)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        message = f"{service.title} sent an answer that cannot be read ({error})."
        raise ProviderError("format", message) from None


def require_https(url: str) -> str:
    """The address, if secrets may be sent there: over TLS, or to this machine."""
    parts = urlsplit(url)
    if parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or "")):
        return url
    raise UserError(
        f"{url!r} is no address that a login may be sent to: it must begin with https://.",
        kind="config",
        next=["sylph config"],
    )


def _build_refusal(service: OAuthService, said: OAuthReply, status: int, hidden: tuple[str, ...]) -> OAuthRefusal:
    code, why = said.error, said.error_description or said.message
    if isinstance(code, dict):
        inner = cast("dict[str, Any]", code)
        code, why = inner.get("code") or inner.get("type") or "an error", inner.get("message")
    code = _redact_words(str(code), hidden)
    more = f": {_redact_words(why, hidden)}" if isinstance(why, str) else ""
    return OAuthRefusal(code, f"{service.title} says {code}{more}", status=status)


def _redact_words(text: str, hidden: tuple[str, ...]) -> str:
    """A server's words, without what was sent to it in confidence."""
    for secret in hidden:
        text = text.replace(secret, "[…]") if len(secret) >= 8 else text
    return first_line(text, 200)
