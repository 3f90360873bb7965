"""A service outside of Sylph: it counts what is done to it, and can have its caller killed before it answers."""

import asyncio
import http.client
import json
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer

from sylph.core.plugin import Plugin
from sylph.core.tool import Tool, ToolArgs, ToolContext, ToolResult


class FakeService:
    """Served by whoever watches the process under test, in its own loop: no thread, nothing to leave behind."""

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()
        self.repeated = 0
        self.crossed = 0
        self.kept: dict[str, str] = {}
        self.kill_at = 0
        self.kill: Callable[[], None] = lambda: None
        self._server = HTTPServer(("127.0.0.1", 0), _handler_class(self))
        self._server.timeout = 0.004

    @property
    def port(self) -> int:
        return self._server.server_port

    def serve_request(self) -> None:
        """Answers one request, or waits a moment for it."""
        self._server.handle_request()

    def close(self) -> None:
        self._server.server_close()

    def perform_effect(self, what: str, key: str) -> str:
        """A charge with a key that is known was done before; a booking is done each time it is asked for."""
        if key and self.kept.get(key):
            self.repeated += 1
            return self.kept[key]
        self.done[what] += 1
        self.kept[key or what] = f"receipt for {what}"
        self.cross_boundary()
        return self.kept[key or what]

    def cross_boundary(self) -> None:
        """It is done, and the caller does not know it yet."""
        self.crossed += 1
        if self.crossed == self.kill_at:
            self.kill()


def _handler_class(sink: FakeService) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 2.0

        def do_GET(self) -> None:
            self._answer(sink.kept.get(self.path.removeprefix("/"), ""))

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            what = asked["title"] if self.path == "/told" else asked["what"]
            self._answer(sink.perform_effect(what, self.headers.get("Idempotency-Key", "")))

        def _answer(self, text: str) -> None:
            data = json.dumps(text).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:  # noqa: ARG002 - it says nothing
            return

        def handle(self) -> None:
            try:
                super().handle()
            except (OSError, ValueError):
                # The caller was killed in the middle of its request: that is what this is all about.
                self.close_connection = True

    return Handler


class EffectArgs(ToolArgs, frozen=True, kw_only=True):
    what: str


def build_plugin(port: int) -> Plugin:
    """The two tools that reach it: one that is safe to repeat by its key, one that can ask what became of it."""

    async def charge(args: EffectArgs, context: ToolContext) -> ToolResult:
        return ToolResult(
            text=await asyncio.to_thread(_post_effect, port, args.what, {"Idempotency-Key": context.idempotency_key})
        )

    async def book(args: EffectArgs, _: ToolContext) -> ToolResult:
        return ToolResult(text=await asyncio.to_thread(_post_effect, port, args.what, {}))

    async def booked(args: EffectArgs, _: ToolContext) -> ToolResult | None:
        known = await asyncio.to_thread(_get_receipt, port, args.what)
        return ToolResult(text=known) if known else None

    return Plugin(
        name="outside",
        tools=(
            Tool(name="charge", description="", args=EffectArgs, run=charge, effect="external", recourse="by_key"),
            Tool(
                name="book",
                description="",
                args=EffectArgs,
                run=book,
                effect="external",
                recourse="by_probe",
                recover=booked,
            ),
        ),
    )


def _post_effect(port: int, what: str, headers: dict[str, str]) -> str:
    return _send_http(port, "POST", f"/{what}", json.dumps({"what": what}), headers)


def _get_receipt(port: int, what: str) -> str:
    return _send_http(port, "GET", f"/{what}", None, {})


def _send_http(port: int, method: str, path: str, body: str | None, headers: dict[str, str]) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10.0)
    try:
        connection.request(method, path, body, headers)
        return str(json.loads(connection.getresponse().read()))
    finally:
        connection.close()
