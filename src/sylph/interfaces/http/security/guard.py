"""The door: every request and every WebSocket passes it before any route sees it."""

import asyncio
import ipaddress

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sylph.config import ServerSettings
from sylph.core.errors import SylphError
from sylph.interfaces.http.kit.principal import OWNER, Principal
from sylph.interfaces.http.kit.problem_details import AccessDenied, error_response, plain_problem_response
from sylph.interfaces.http.security.authentication import Authenticator
from sylph.interfaces.http.security.checks import cors, security_headers, url_secrets
from sylph.interfaces.http.security.checks import request_head as heads
from sylph.interfaces.http.security.checks.allowed_hosts import LOOPBACK, AllowedHosts, host_name
from sylph.interfaces.http.security.checks.body_limit import BodyMeter
from sylph.interfaces.http.security.checks.origin_policy import OriginPolicy
from sylph.interfaces.http.security.checks.request_head import RequestHead
from sylph.interfaces.http.security.open_streams import OpenStream, OpenStreamRegistry
from sylph.interfaces.http.security.rate_limit import RequestRateLimiter, client_network
from sylph.interfaces.http.security.server_address import ServerAddress
from sylph.interfaces.http.security.token_store import ServerTokenStore

EVENT_STREAM = b"text/event-stream"
# What browsers and proxies say, and the command line never does.
FORWARDED_HEADERS = frozenset({b"origin", b"sec-fetch-site", b"x-forwarded-for", b"forwarded", b"via"})
# So many seconds' worth of requests may come at once.
BURST_SECONDS = 4
# A WebSocket is closed with it when its credential ends.
POLICY_VIOLATION = 1008


class LocalOwnerGuard:
    """For the socket that only the owner of the files can open: no browser gets there, and no credential is needed."""

    def __init__(self, app: ASGIApp, server: ServerSettings) -> None:
        self._app, self._server = app, server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        state = scope.setdefault("state", {})
        state["principal"] = OWNER
        if scope["type"] == "http":
            state["body"] = meter = meter_body(heads.read_head(scope), receive, self._server)
            receive = meter.receive
        await self._app(scope, receive, send)


class ForwardedRequestFilter:
    """In front of the owner's socket: what a browser or a proxy passes on does not come from the owner."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if any(name in FORWARDED_HEADERS for name, _ in scope["headers"]):
            error = AccessDenied(
                "This socket is for the command line only.", next=["let the proxy ask the server's port"]
            )
            return await error_response(error)(scope, receive, send)
        return await self._app(scope, receive, send)


class GuardedRequest:
    """One request on its way: what is added to its answer, and the stream that it may become."""

    __slots__ = ("_asked", "_extra", "_live", "_send", "_task", "meter", "principal", "stream")

    def __init__(
        self,
        asked: RequestHead,
        send: Send,
        meter: BodyMeter,
        extra: security_headers.HeaderPairs,
        live: OpenStreamRegistry,
    ) -> None:
        self._asked, self._send, self._extra, self._live = asked, send, extra, live
        self._task = asyncio.current_task()
        self.meter = meter
        self.principal: Principal | None = None
        self.stream: OpenStream | None = None

    async def send_message(self, message: Message) -> None:
        type = message["type"]
        if type.endswith("response.start"):
            self.meter.answering = True
            kind = security_headers.add_security_headers(message, page=self._asked.is_page, extra=self._extra)
            if self.principal and kind.startswith(EVENT_STREAM):
                self.stream = self._live.register_stream(self.principal.id, self._task)
        elif type == "websocket.accept":
            self.stream = self._live.register_stream(self.principal.id, self._task) if self.principal else None
        elif type == "websocket.close" and self.stream is None:
            return await self._deny_websocket(message)
        return await self._send(message)

    async def _deny_websocket(self, message: Message) -> None:
        """A WebSocket that is closed before it was opened: an answer like any other, which says why."""
        missing = message.get("code", 1000) == 1000
        kind, status = ("not_found", 404) if missing else ("forbidden", 403)
        said = message.get("reason") or ("There is no WebSocket here." if missing else "This is not for you.")
        await plain_problem_response(kind, said, status, ["/docs tells the way"])(
            {"type": "websocket"}, _receive_disconnect, self.send_message
        )

    async def end_stream(self) -> None:
        """Ends a stream whose credential is gone in good order: the client comes again and is told why."""
        if self.stream and self.stream.task:
            self.stream.task.uncancel()
        if self._asked.kind == "http":
            await self._send({"type": "http.response.body", "body": b""})
        else:
            await self._send(
                {"type": "websocket.close", "code": POLICY_VIOLATION, "reason": "The credential is good no more."}
            )


class RequestGuard:
    def __init__(self, app: ASGIApp, keys: ServerTokenStore, server: ServerSettings, address: ServerAddress) -> None:
        self._app, self._server, self._secure = app, server, address.secure
        self._hosts = AllowedHosts((address.host, *address.names))
        self._origins = OriginPolicy(server.origins, secure=address.secure)
        self._identity = Authenticator(keys, secure=address.secure)
        # Whoever has no credential needs few requests: a page, a login.
        self._strangers = RequestRateLimiter(50.0, 200)
        self._rate = RequestRateLimiter(server.requests, server.requests * BURST_SECONDS)
        self.live = OpenStreamRegistry(keys)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = heads.read_head(scope)
        visit = GuardedRequest(
            asked, send, meter_body(asked, receive, self._server), self._extra_headers(asked), self.live
        )
        try:
            visit.principal = self._admit_request(asked)
        except SylphError as error:
            return await error_response(error)(scope, receive, visit.send_message)
        if cors.is_preflight(asked) and self._origins.is_trusted_site(asked):
            return await cors.answer_preflight(asked)(scope, receive, visit.send_message)
        scope.setdefault("state", {}).update(principal=visit.principal, body=visit.meter)
        try:
            await self._app(scope, visit.meter.receive if asked.kind == "http" else receive, visit.send_message)
        except asyncio.CancelledError:
            if visit.stream is None or not visit.stream.revoked:
                raise
            await visit.end_stream()
        finally:
            if visit.stream:
                self.live.unregister_stream(visit.stream)
        return None

    def _admit_request(self, asked: RequestHead) -> Principal | None:
        """Who asks; None for a stranger. Raises Denied for what may not even be asked."""
        if asked.repeated_header:
            raise AccessDenied(f"`{asked.repeated_header}` is said twice.", kind="bad_request", next=["say it once"])
        if not self._hosts.allows_host(asked.header(b"host"), asked.local_address):
            raise AccessDenied(
                "This server has another name.",
                kind="bad_host",
                next=["server.names in the config file adds a name that leads here"],
            )
        url_secrets.reject_url_secrets(asked.query)
        self._origins.check_origin(asked)
        principal = self._identity.authenticate(asked)
        if principal is None:
            self._strangers.check(client_network(asked.client_address))
            if asked.kind == "websocket":
                raise AccessDenied("This needs a credential.", kind="unauthorized", next=["log in", "or send a token"])
            return None
        self._rate.check(principal.id)
        if principal.way == "cookie":
            self._origins.check_cookie(asked)
        return principal

    def _extra_headers(self, asked: RequestHead) -> security_headers.HeaderPairs:
        extra: security_headers.HeaderPairs = []
        if self._origins.named:
            extra.append((b"vary", b"Origin"))
        if self._origins.is_trusted_site(asked):
            extra += cors.cors_headers(asked)
        if self._secure and not _is_shared_name(host_name(asked.header(b"host"))):
            extra.append(security_headers.STRICT_TRANSPORT)
        return extra


async def _receive_disconnect() -> Message:
    return {"type": "websocket.disconnect"}


def meter_body(asked: RequestHead, receive: Receive, server: ServerSettings) -> BodyMeter:
    length, coding = asked.header(b"content-length"), asked.header(b"content-encoding")
    return BodyMeter(receive, length, int(server.body_mb * 1_000_000), server.body_seconds, coding)


def _is_shared_name(name: str) -> bool:
    """Names that others on this machine are reached by as well: TLS must not be demanded of them."""
    if name in LOOPBACK:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
