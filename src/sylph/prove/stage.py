"""Where canaries are let loose: a runtime in a scratch folder, with a person, a model and a web site of its own."""

import asyncio
import io
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from sylph.core import facts, signals
from sylph.core.errors import SylphError
from sylph.core.events import Event
from sylph.core.places import Places
from sylph.core.plugin import Plugin
from sylph.core.provider import Chunk, Request, Text
from sylph.core.tool import Args, Context, Result, Tool
from sylph.engine.gateway import Gateway, Patience
from sylph.engine.log import Log
from sylph.engine.redact.stream import Revealed
from sylph.engine.redact.terms import Terms
from sylph.engine.redact.veil import Redactor
from sylph.engine.runtime import Parts, Runtime
from sylph.engine.turn import Limits
from sylph.engine.undo.view import Rules
from sylph.faculties import courier, scout
from sylph.net.http import Client
from sylph.net.reach import Reach
from sylph.net.visit import Bounds
from sylph.testing import Line, ScriptedProvider, play
from sylph.tools.all import workspace_tools
from sylph.tools.web import Chromium, Service, Web

PIECE = 3
WAIT = 20.0


class Model(ScriptedProvider):
    """Says its lines in pieces of a few letters, and keeps every byte it is sent."""

    def __init__(self) -> None:
        super().__init__([])
        self.sent: list[bytes] = []

    async def stream(self, request: Request, body: bytes) -> AsyncGenerator[Chunk, None]:
        self.sent.append(body)
        async for chunk in super().stream(request, body):
            if isinstance(chunk, Text):
                for at in range(0, len(chunk.text), PIECE):
                    yield Text(chunk.text[at : at + PIECE])
            else:
                yield chunk


class Nothing(Args, frozen=True, kw_only=True):
    pass


class Stage:
    def __init__(self, root: Path, path: str, terms: Terms) -> None:
        self.root, self.work, self.data, self.terms, self._path = root, root / "work", root / "data", terms, path
        self.model, self.log = Model(), io.StringIO()
        self.posted, self.events = list[bytes](), list[Event]()
        self.page = self.crash = ""
        self.port = 0
        self._client = Client()
        self.work.mkdir(parents=True)

    @asynccontextmanager
    async def runtime(self) -> AsyncGenerator[Runtime, None]:
        environ = {"PATH": self._path, "HOME": str(self.root)}
        web = Web(
            reach=Reach((f"127.0.0.1:{self.port}",)),
            client=self._client,
            bounds=Bounds(),
            service=Service(),
            chromium=Chromium(program="none"),
        )
        crash = Tool(name="crash", description="Fails.", args=Nothing, run=self._crash, effect="read", recourse="pure")
        tools = (*workspace_tools(environ, Places(home=self.root)), *web.tools, crash)
        parts = Parts(
            gateway=Gateway({"scripted": self.model}, Patience(base=0.001)),
            plugins=(Plugin(name="tools", tools=tools), scout.plugin()),
            limits=Limits(rounds=20),
            courier=courier.SetUp(post=self._client.post, webhook=self.url("told"), on=("asked", "ended")),
            undo=Rules(),
            veil=Redactor(self.terms, self.data / "vault"),
        )
        async with Runtime(Log.open(self.data / "events.db"), parts) as engine:
            yield engine
        await web.close()

    async def close(self) -> None:
        await self._client.close()

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.port}/{name}"

    async def _crash(self, _: Nothing, __: Context) -> Result:
        raise RuntimeError(self.crash)

    @asynccontextmanager
    async def site(self) -> AsyncGenerator[None, None]:
        """A web site with one page, which also takes notifications."""
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            head = await reader.readuntil(b"\r\n\r\n")
            sizes = [row[15:] for row in head.split(b"\r\n") if row.lower().startswith(b"content-length:")]
            self.posted.append(head + await reader.readexactly(int(sizes[0]) if sizes else 0))
            body = self.page.encode()
            told = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close"
            writer.write(f"{told}\r\n\r\n".encode() + body)
            await writer.drain()
        writer.close()

    async def play(
        self, engine: Runtime, session: str, *lines: Line, said: str = "Go.", answer: str | None = None
    ) -> str:
        """One turn; returns the answer as the person reads it, put together from its pieces."""
        self.model.say(*lines)
        events = await play(engine, session, said, answer=answer)
        await engine.tried(WAIT)
        self.events += events
        ended = next(event.body for event in events if isinstance(event.body, facts.TurnEnded))
        if ended.outcome != "finished":
            raise SylphError(f"The turn {ended.outcome}: {ended.trouble}")
        answered = Revealed(engine.veil)
        pieces = [answered.add(event.body.text) for event in events if isinstance(event.body, signals.TextDelta)]
        return "".join(pieces) + answered.rest()
