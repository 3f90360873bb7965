"""The door: every request and every WebSocket passes it before any route sees it."""

import asyncio
import ipaddress

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sylph.config import Server
from sylph.core.errors import SylphError
from sylph.interfaces.http.access import asked as heads
from sylph.interfaces.http.access import cors, headers, urls
from sylph.interfaces.http.access.asked import Asked
from sylph.interfaces.http.access.bodies import Meter
from sylph.interfaces.http.access.hosts import LOOPBACK, Hosts, name_of
from sylph.interfaces.http.access.identity import Identity
from sylph.interfaces.http.access.live import Live, Stream
from sylph.interfaces.http.access.origins import Origins
from sylph.interfaces.http.access.rates import Rate, address_of
from sylph.interfaces.http.address import Address
from sylph.interfaces.http.keys import Keys
from sylph.interfaces.http.problems import Denied, answer_error, say
from sylph.interfaces.http.who import OWNER, Who

EVENTS = b"text/event-stream"
# What browsers and proxies say, and the command line never does.
PASSED_ON = frozenset({b"origin", b"sec-fetch-site", b"x-forwarded-for", b"forwarded", b"via"})
# So many seconds' worth of requests may come at once.
BURST = 4
# A WebSocket is closed with it when its credential ends.
POLICY = 1008


class Own:
    """For the socket that only the owner of the files can open: no browser gets there, and no credential is needed."""

    def __init__(self, app: ASGIApp, server: Server) -> None:
        self._app, self._server = app, server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        state = scope.setdefault("state", {})
        state["who"] = OWNER
        if scope["type"] == "http":
            state["body"] = meter = metered(heads.read(scope), receive, self._server)
            receive = meter.receive
        await self._app(scope, receive, send)


class Private:
    """In front of the owner's socket: what a browser or a proxy passes on does not come from the owner."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if any(name in PASSED_ON for name, _ in scope["headers"]):
            error = Denied("This socket is for the command line only.", next=["let the proxy ask the server's port"])
            return await answer_error(error)(scope, receive, send)
        return await self._app(scope, receive, send)


class Visit:
    """One request on its way: what is added to its answer, and the stream that it may become."""

    __slots__ = ("_asked", "_extra", "_live", "_send", "_task", "meter", "stream", "who")

    def __init__(self, asked: Asked, send: Send, meter: Meter, extra: headers.Pairs, live: Live) -> None:
        self._asked, self._send, self._extra, self._live = asked, send, extra, live
        self._task = asyncio.current_task()
        self.meter = meter
        self.who: Who | None = None
        self.stream: Stream | None = None

    async def tell(self, message: Message) -> None:
        type = message["type"]
        if type.endswith("response.start"):
            self.meter.answering = True
            kind = headers.added(message, page=self._asked.page, extra=self._extra)
            if self.who and kind.startswith(EVENTS):
                self.stream = self._live.open(self.who.id, self._task)
        elif type == "websocket.accept":
            self.stream = self._live.open(self.who.id, self._task) if self.who else None
        elif type == "websocket.close" and self.stream is None:
            return await self._unopened(message)
        return await self._send(message)

    async def _unopened(self, message: Message) -> None:
        """A WebSocket that is closed before it was opened: an answer like any other, which says why."""
        missing = message.get("code", 1000) == 1000
        kind, status = ("not_found", 404) if missing else ("forbidden", 403)
        said = message.get("reason") or ("There is no WebSocket here." if missing else "This is not for you.")
        await say(kind, said, status, ["/docs tells the way"])({"type": "websocket"}, _nothing, self.tell)

    async def end(self) -> None:
        """Ends a stream whose credential is gone in good order: the client comes again and is told why."""
        if self.stream and self.stream.task:
            self.stream.task.uncancel()
        if self._asked.kind == "http":
            await self._send({"type": "http.response.body", "body": b""})
        else:
            await self._send({"type": "websocket.close", "code": POLICY, "reason": "The credential is good no more."})


class Guard:
    def __init__(self, app: ASGIApp, keys: Keys, server: Server, address: Address) -> None:
        self._app, self._server, self._secure = app, server, address.secure
        self._hosts = Hosts((address.host, *address.names))
        self._origins = Origins(server.origins, secure=address.secure)
        self._identity = Identity(keys, secure=address.secure)
        # Whoever has no credential needs few requests: a page, a login.
        self._strangers = Rate(50.0, 200)
        self._rate = Rate(server.requests, server.requests * BURST)
        self.live = Live(keys)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = heads.read(scope)
        visit = Visit(asked, send, metered(asked, receive, self._server), self._extra(asked), self.live)
        try:
            visit.who = self._admit(asked)
        except SylphError as error:
            return await answer_error(error)(scope, receive, visit.tell)
        if cors.is_preflight(asked) and self._origins.names(asked):
            return await cors.preflight(asked)(scope, receive, visit.tell)
        scope.setdefault("state", {}).update(who=visit.who, body=visit.meter)
        try:
            await self._app(scope, visit.meter.receive if asked.kind == "http" else receive, visit.tell)
        except asyncio.CancelledError:
            if visit.stream is None or not visit.stream.cut:
                raise
            await visit.end()
        finally:
            if visit.stream:
                self.live.close(visit.stream)
        return None

    def _admit(self, asked: Asked) -> Who | None:
        """Who asks; None for a stranger. Raises Denied for what may not even be asked."""
        if asked.twice:
            raise Denied(f"`{asked.twice}` is said twice.", kind="bad_request", next=["say it once"])
        if not self._hosts.know(asked.head(b"host"), asked.local):
            raise Denied(
                "This server has another name.",
                kind="bad_host",
                next=["server.names in the config file adds a name that leads here"],
            )
        urls.check(asked.query)
        self._origins.check(asked)
        who = self._identity.who(asked)
        if who is None:
            self._strangers.check(address_of(asked.client))
            if asked.kind == "websocket":
                raise Denied("This needs a credential.", kind="unauthorized", next=["log in", "or send a token"])
            return None
        self._rate.check(who.id)
        if who.way == "cookie":
            self._origins.check_cookie(asked)
        return who

    def _extra(self, asked: Asked) -> headers.Pairs:
        extra: headers.Pairs = []
        if self._origins.named:
            extra.append((b"vary", b"Origin"))
        if self._origins.names(asked):
            extra += cors.allowing(asked)
        if self._secure and not _shared(name_of(asked.head(b"host"))):
            extra.append(headers.STRICT)
        return extra


async def _nothing() -> Message:
    return {"type": "websocket.disconnect"}


def metered(asked: Asked, receive: Receive, server: Server) -> Meter:
    length, coding = asked.head(b"content-length"), asked.head(b"content-encoding")
    return Meter(receive, length, int(server.body_mb * 1_000_000), server.body_seconds, coding)


def _shared(name: str) -> bool:
    """Names that others on this machine are reached by as well: TLS must not be demanded of them."""
    if name in LOOPBACK:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
