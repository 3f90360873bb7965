"""Routes that are made when they are first asked for: reading all signatures would take a good part of the start."""

from collections.abc import Callable
from functools import cached_property

from starlette._utils import get_route_path
from starlette.routing import BaseRoute, Match, compile_path
from starlette.types import Receive, Scope, Send


class Late(BaseRoute):
    """Knows its path and its method, and the rest in time."""

    def __init__(self, path: str, method: str, make: Callable[[], BaseRoute]) -> None:
        self.path, self.method, self._make = path, method, make
        self._pattern = compile_path(path)[0]

    @cached_property
    def route(self) -> BaseRoute:
        return self._make()

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] != "http" or not self._pattern.match(get_route_path(scope)):
            return Match.NONE, {}
        return (Match.FULL if scope["method"] == self.method else Match.PARTIAL), {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope.update(self.route.matches(scope)[1])
        await self.route.handle(scope, receive, send)
