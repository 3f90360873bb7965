"""Where canaries are let loose: a runtime in a scratch folder, with a person, a model and a web site of its own."""

import asyncio
import io
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from sylph.core import facts, signals
from sylph.core.errors import SylphError
from sylph.core.events import Event
from sylph.core.permission.path_policy import PathPolicy
from sylph.core.plugin import Plugin
from sylph.core.provider import Chunk, ModelRequest, TextChunk
from sylph.core.tool import Tool, ToolArgs, ToolContext, ToolResult
from sylph.engine.log.store import EventLog
from sylph.engine.model.gateway import ModelGateway
from sylph.engine.model.retry import RetryPolicy
from sylph.engine.redact.policy import RedactionPolicy
from sylph.engine.redact.redactor import Redactor
from sylph.engine.redact.stream import StreamRestorer
from sylph.engine.runtime.runtime import Runtime, RuntimeParts
from sylph.engine.turn.agent_loop import TurnLimits
from sylph.engine.undo.workspace_scan import CheckpointPolicy
from sylph.features.notify import channels
from sylph.features.scout import workspace_notes
from sylph.net.address_guard import AddressGuard
from sylph.net.http_client import HttpClient
from sylph.net.page_fetch import FetchLimits
from sylph.testing import ScriptedProvider, ScriptLine, play_turn
from sylph.tools.toolset import build_workspace_tools
from sylph.tools.web import ChromiumSettings, SearchService, WebTools

PIECE_LENGTH = 3
DELIVERY_SECONDS = 20.0


class ChunkedModel(ScriptedProvider):
    """Says its lines in pieces of a few letters, and keeps every byte it is sent."""

    def __init__(self) -> None:
        super().__init__([])
        self.sent: list[bytes] = []

    async def stream(self, request: ModelRequest, body: bytes) -> AsyncGenerator[Chunk, None]:
        self.sent.append(body)
        async for chunk in super().stream(request, body):
            if isinstance(chunk, TextChunk):
                for at in range(0, len(chunk.text), PIECE_LENGTH):
                    yield TextChunk(chunk.text[at : at + PIECE_LENGTH])
            else:
                yield chunk


class CrashToolArgs(ToolArgs, frozen=True, kw_only=True):
    pass


class LeakHarness:
    def __init__(self, root: Path, path: str, terms: RedactionPolicy) -> None:
        self.root, self.work, self.data, self.terms, self._path = root, root / "work", root / "data", terms, path
        self.model, self.log = ChunkedModel(), io.StringIO()
        self.posted, self.events = list[bytes](), list[Event]()
        self.page = self.crash = ""
        self.port = 0
        self._client = HttpClient()
        self.work.mkdir(parents=True)

    @asynccontextmanager
    async def open_runtime(self) -> AsyncGenerator[Runtime, None]:
        environ = {"PATH": self._path, "HOME": str(self.root)}
        web = WebTools(
            reach=AddressGuard((f"127.0.0.1:{self.port}",)),
            client=self._client,
            bounds=FetchLimits(),
            service=SearchService(),
            chromium=ChromiumSettings(program="none"),
        )
        crash = Tool(
            name="crash", description="Fails.", args=CrashToolArgs, run=self._crash_tool, effect="read", recourse="pure"
        )
        tools = (*build_workspace_tools(environ, PathPolicy(home=self.root)), *web.tools, crash)
        parts = RuntimeParts(
            gateway=ModelGateway({"scripted": self.model}, RetryPolicy(base=0.001)),
            plugins=(Plugin(name="tools", tools=tools), workspace_notes.build_plugin()),
            limits=TurnLimits(rounds=20),
            courier=channels.ConfiguredCourier(
                post=self._client.post, webhook=self.site_url("told"), on=("asked", "ended")
            ),
            undo=CheckpointPolicy(),
            redactor=Redactor(self.terms, self.data / "vault"),
        )
        async with Runtime(EventLog.open(self.data / "events.db"), parts) as engine:
            yield engine
        await web.close()

    async def close(self) -> None:
        await self._client.close()

    def site_url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.port}/{name}"

    async def _crash_tool(self, _: CrashToolArgs, __: ToolContext) -> ToolResult:
        raise RuntimeError(self.crash)

    @asynccontextmanager
    async def serve_site(self) -> AsyncGenerator[None, None]:
        """A web site with one page, which also takes notifications."""
        server = await asyncio.start_server(self._answer_request, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield

    async def _answer_request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            head = await reader.readuntil(b"\r\n\r\n")
            sizes = [row[15:] for row in head.split(b"\r\n") if row.lower().startswith(b"content-length:")]
            self.posted.append(head + await reader.readexactly(int(sizes[0]) if sizes else 0))
            body = self.page.encode()
            told = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close"
            writer.write(f"{told}\r\n\r\n".encode() + body)
            await writer.drain()
        writer.close()

    async def play_turn(
        self, engine: Runtime, session: str, *lines: ScriptLine, said: str = "Go.", answer: str | None = None
    ) -> str:
        """One turn; returns the answer as the person reads it, put together from its pieces."""
        self.model.add_lines(*lines)
        events = await play_turn(engine, session, said, answer=answer)
        await engine.wait_for_deliveries(DELIVERY_SECONDS)
        self.events += events
        ended = next(event.body for event in events if isinstance(event.body, facts.TurnEnded))
        if ended.outcome != "finished":
            raise SylphError(f"The turn {ended.outcome}: {ended.trouble}")
        answered = StreamRestorer(engine.redactor)
        pieces = [
            answered.restore_piece(event.body.text) for event in events if isinstance(event.body, signals.TextDelta)
        ]
        return "".join(pieces) + answered.flush()
