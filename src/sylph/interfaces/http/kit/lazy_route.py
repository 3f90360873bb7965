"""Routes that are made when they are first asked for: reading all signatures would take a good part of the start."""

from collections.abc import Callable
from functools import cached_property

from starlette._utils import get_route_path
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, compile_path
from starlette.types import Message, Receive, Scope, Send


class LazyRoute(BaseRoute):
    """Knows its path and its method, and the rest in time."""

    def __init__(self, path: str, method: str, make: Callable[[], BaseRoute]) -> None:
        self.path, self.method, self._make = path, method, make
        self._pattern = compile_path(path)[0]

    @cached_property
    def route(self) -> BaseRoute:
        return self._make()

    def covers_path(self, scope: Scope) -> bool:
        return self._pattern.match(get_route_path(scope)) is not None

    @property
    def methods(self) -> tuple[str, ...]:
        return ("GET", "HEAD") if self.method == "GET" else (self.method,)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] != "http" or not self.covers_path(scope):
            return Match.NONE, {}
        return (Match.FULL if scope["method"] in self.methods else Match.PARTIAL), {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] not in self.methods:
            scope["route"] = self
            await _answer_other_method(scope)(scope, receive, send)
        elif scope["method"] == self.method:
            scope.update(self.route.matches(scope)[1])
            await self.route.handle(scope, receive, send)
        else:
            asked = {**scope, "method": self.method}
            asked.update(self.route.matches(asked)[1])
            scope["route"] = self
            head = _HeadResponse(receive, send)
            await self.route.handle(asked, head.receive, head.send)


class _HeadResponse:
    """The answer to a `HEAD` is that to a `GET`, and ends where its body would begin: a stream does not begin."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive, self._send, self._told = receive, send, False

    async def receive(self) -> Message:
        return {"type": "http.disconnect"} if self._told else await self._receive()

    async def send(self, message: Message) -> None:
        if self._told:
            return
        self._told = message["type"] == "http.response.start"
        await self._send(message)
        if self._told:
            await self._send({"type": "http.response.body", "body": b""})


def _answer_other_method(scope: Scope) -> Response:
    """What a path answers to a method that it does not have."""
    here = [each for each in scope["app"].router.routes if isinstance(each, LazyRoute) and each.covers_path(scope)]
    methods = sorted({method for each in here for method in each.methods} | {"OPTIONS"})
    allow = {"Allow": ", ".join(methods)}
    if scope["method"] == "OPTIONS":
        return Response(status_code=204, headers=allow)
    raise HTTPException(405, f"This path takes {allow['Allow']}.", allow)
