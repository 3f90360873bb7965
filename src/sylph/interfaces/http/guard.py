"""Who comes in: what every request has to pass before any route sees it."""

from http.cookies import SimpleCookie
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from sylph.interfaces.http.keys import Keys
from sylph.interfaces.http.who import OWNER, Who

COOKIE = "sylph"


class Guard:
    """`own` is for the socket that only the owner of the files can open."""

    def __init__(self, app: ASGIApp, keys: Keys, *, own: bool = False) -> None:
        self._app, self._keys, self._own = app, keys, own

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
            scope.setdefault("state", {})["who"] = OWNER if self._own else self._who(headers)
        await self._app(scope, receive, send)

    def _who(self, headers: dict[str, Any]) -> Who | None:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self._keys.known(token.strip(), "token")
        cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        return self._keys.known(cookie.value, "cookie") if cookie else None
