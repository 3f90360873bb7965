"""The outermost layer: every request gets a number, is counted, and is written down when it is over."""

import logging
import time
from typing import Any

import msgspec
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sylph.interfaces.http.kit.request_id import REQUEST_ID_HEADER, set_request_id
from sylph.interfaces.http.monitoring.server_log import FIELDS
from sylph.interfaces.http.state.request_counters import RequestCounters

logger = logging.getLogger("sylph.requests")
EVENT_STREAM = b"text/event-stream"
UNMATCHED = "unmatched"
SWITCHING_PROTOCOLS = 101


class RequestLogger:
    def __init__(self, app: ASGIApp, counts: RequestCounters) -> None:
        self._app, self._counts = app, counts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)
        began = time.perf_counter()
        given = next((value for name, value in scope["headers"] if name == REQUEST_ID_HEADER), b"")
        id, status, stream, reason = set_request_id(given), 0, False, ""

        async def tell(message: Message) -> None:
            nonlocal status, stream, reason
            if message["type"].endswith("response.start"):
                status = message["status"]
                headers = message.setdefault("headers", [])
                headers.append((REQUEST_ID_HEADER, id.encode()))
                stream = any(
                    name.lower() == b"content-type" and value.startswith(EVENT_STREAM) for name, value in headers
                )
                self._counts.streams += stream
            elif message["type"] == "websocket.accept":
                status, stream = SWITCHING_PROTOCOLS, True
                self._counts.streams += 1
            elif status >= 500 and not stream and not reason:
                reason = _problem_detail(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, tell)
        finally:
            self._counts.streams -= stream
            self._log_request(scope, id, status, time.perf_counter() - began, stream=stream, reason=reason)
        return None

    def _log_request(self, scope: Scope, id: str, status: int, seconds: float, *, stream: bool, reason: str) -> None:
        method = scope.get("method", "WEBSOCKET")
        # The template and not the path: ids are many, and may be anybody's business.
        route = getattr(scope.get("route"), "path", UNMATCHED)
        self._counts.record_request(method, route, status, seconds, stream=stream)
        if not logger.isEnabledFor(logging.INFO):
            return
        principal: Any = scope.get("state", {}).get("principal")
        fields = {
            "request": id,
            "method": method[:20],
            "route": route,
            "status": status,
            "ms": round(seconds * 1000, 1),
            "who": principal.name if principal else "",
        }
        if status >= 500 or not status:
            # On a terminal only the words are seen.
            said = f"{method[:20]} {route} was answered {status or 'nothing'}{reason and ': '}{reason}"
            logger.error("%s", said, extra={FIELDS: {**fields, "event": "request", "reason": reason}})
        else:
            logger.info("stream" if stream else "request", extra={FIELDS: fields})


class _Problem(msgspec.Struct):
    detail: str = ""


def _problem_detail(body: bytes) -> str:
    """What an answer says that went wrong."""
    try:
        return msgspec.json.decode(body, type=_Problem).detail[:500]
    except msgspec.DecodeError:
        return ""
