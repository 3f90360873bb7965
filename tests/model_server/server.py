"""The server: real HTTP over loopback, one connection after the other or many at once."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.model_server import websocket
from tests.model_server.anthropic import AnthropicDialect
from tests.model_server.bedrock import BedrockDialect
from tests.model_server.chat import ChatDialect
from tests.model_server.gemini import GeminiDialect
from tests.model_server.ollama import OllamaDialect
from tests.model_server.responses import ResponsesDialect
from tests.model_server.script import Asked, Cue, Script, Step, fail, silence
from tests.model_server.wire import Answer, Dialect, answer
from tests.patience import PATIENCE

# Each brings its file; a server speaks those that it is told to.
DIALECTS: Mapping[str, Callable[[], Dialect]] = {
    "chat": ChatDialect,
    "anthropic": AnthropicDialect,
    "gemini": GeminiDialect,
    "bedrock": BedrockDialect,
    "responses": ResponsesDialect,
    "ollama": OllamaDialect,
}
CHAT = ChatDialect()


class ModelServer:
    """Serves a script. `requests` holds every completion that was asked for, `broken` how many were given up on."""

    def __init__(
        self,
        script: Script = (),
        *,
        loop: bool = False,
        models: Sequence[str | Mapping[str, Any]] = ("scripted",),
        dialects: Sequence[str] = ("chat",),
        websocket: bool = False,
        port: int = 0,
    ) -> None:
        self.requests: list[Asked] = []
        self.visits: list[Asked] = []
        self.websocket = websocket
        self.broken = 0
        self.connections = 0
        self._cue = Cue(script, loop=loop)
        self._dialects = [DIALECTS[name]() for name in dialects]
        self._pages = {path: page for each in self._dialects for path, page in each.pages(models).items()}
        self._port = port
        self._changed = asyncio.Event()
        self._released = asyncio.Semaphore(0)
        self._made: dict[tuple[int, int, bool], Answer] = {}

    @property
    def root(self) -> str:
        """What goes into the base URL of a dialect that brings its own version in the path."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def url(self) -> str:
        """What goes into OPENAI_BASE_URL."""
        return f"http://127.0.0.1:{self._port}/v1"

    async def __aenter__(self) -> "ModelServer":
        loop = asyncio.get_running_loop()
        self._lines: set[Line] = set()
        self._server = await loop.create_server(lambda: Line(self, self._lines), "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._server.close()
        for line in tuple(self._lines):
            line.transport.abort()
        await self._server.wait_closed()

    def follow(self, script: Script) -> None:
        """Another script from here on; what was asked before is forgotten."""
        self._cue = Cue(script)
        self.requests.clear()
        self._released = asyncio.Semaphore(0)

    def release(self) -> None:
        """Lets a held answer go on to the next place where it would be held."""
        self._released.release()

    async def hold(self) -> None:
        await self._released.acquire()

    async def until(self, true: Callable[[], bool]) -> None:
        """Waits for something to become true of this server."""
        async with asyncio.timeout(PATIENCE):
            while not true():
                self._changed.clear()
                await self._changed.wait()

    def hang_up(self) -> None:
        """Closes every connection, as a server does that has heard nothing for a while."""
        for line in tuple(self._lines):
            line.transport.close()

    def give_up(self) -> None:
        """A client went away in the middle of an answer."""
        self.broken += 1
        self._changed.set()

    def reply(self, asked: Asked) -> Answer:
        path = asked.path.partition("?")[0]
        if (page := self._pages.get(path)) is not None:
            self.visits.append(asked)
            return answer(Step(body=page), CHAT, stream=False)
        dialect = next((each for each in self._dialects if each.takes(path)), None)
        if dialect is not None and asked.method != "POST":
            return answer(fail(405, f"{asked.method} is not for {path}."), CHAT, stream=False)
        if dialect is None:
            return answer(fail(404, f"There is nothing at {path}."), CHAT, stream=False)
        return self.made(self.heard(asked), dialect, stream=dialect.streams(asked))

    def heard(self, asked: Asked) -> Step:
        """What the script says to a request, which is noted."""
        self.requests.append(asked)
        self._changed.set()
        return self._cue.step(asked)

    def made(self, step: Step, dialect: Dialect, *, stream: bool) -> Answer:
        key = (id(step), id(dialect), stream)
        made = self._made.get(key)
        if made is None or made.step is not step:
            made = self._made[key] = answer(step, dialect, stream=stream)
        return made


class Line(asyncio.Protocol):
    """One connection of one client."""

    transport: asyncio.Transport

    def __init__(self, server: ModelServer, lines: "set[Line]") -> None:
        self._server = server
        self._lines = lines
        self._heard = bytearray()
        self._task: asyncio.Task[None] | None = None
        self._conversation: websocket.Conversation | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._lines.add(self)
        self._server.connections += 1

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 -- the base class says so
        self._lines.discard(self)
        if self._task is not None and not self._task.done():
            self._task.cancel()
            self._server.give_up()

    def data_received(self, data: bytes) -> None:
        if self._conversation is not None:
            self._converse(self._conversation, data)
            return
        self._heard += data
        while (asked := self._request()) is not None:
            if self._server.websocket and websocket.wants(asked):
                self.transport.write(websocket.welcome(asked))
                self._conversation = websocket.Conversation(asked, self.transport.write, self._server.heard)
                self._converse(self._conversation, bytes(self._heard))
                return
            made = self._server.reply(asked)
            if made.calm:
                self.transport.write(made.head + b"".join(made.frames))
            else:
                self._task = asyncio.get_running_loop().create_task(self._play(made))

    def _converse(self, conversation: websocket.Conversation, data: bytes) -> None:
        for step, id in conversation.feed(data):
            self._task = asyncio.get_running_loop().create_task(self._answer(conversation, step, id))

    async def _answer(self, conversation: websocket.Conversation, step: Step, id: str) -> None:
        if await conversation.play(step, id):
            self._task = None
            self.transport.close()

    def _request(self) -> Asked | None:
        end = self._heard.find(b"\r\n\r\n")
        if end < 0:
            return None
        first, *lines = self._heard[:end].decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        size = end + 4 + int(headers.get("content-length", "0"))
        if len(self._heard) < size:
            return None
        body = bytes(self._heard[end + 4 : size])
        del self._heard[:size]
        method, path, _ = first.split(" ", 2)
        return Asked(method, path, headers, body)

    async def _play(self, made: Answer) -> None:
        """Writes an answer that takes its time or ends badly."""
        step = made.step
        if step.held:
            await self._server.hold()
        if step.at == "head" and await self._trouble(step):
            return
        self.transport.write(made.head)
        for at, frame in enumerate(made.frames):
            if at == made.middle and step.held:
                await self._server.hold()
            if at == made.middle and step.at == "stream" and await self._trouble(step):
                return
            if step.delay or step.split:
                await asyncio.sleep(step.delay)
            self.transport.write(frame)

    async def _trouble(self, step: Step) -> bool:
        """Stalls or breaks off; True if that was the end."""
        await silence(step)
        if step.drop:
            self._task = None
            self.transport.close()
        return step.drop
