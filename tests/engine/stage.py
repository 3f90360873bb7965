"""The stage of the engine's stories: tools that can be held, a model that falls silent, and questions to a log."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from typing import TypeVar

from sylph.core import commands, facts
from sylph.core.errors import ToolError
from sylph.core.events import Event, EventBody
from sylph.core.plugin import ContextNote, Plugin, PrepareContext
from sylph.core.provider import Chunk, ModelRequest, TextChunk
from sylph.core.tool import CallAssessment, Tool, ToolArgs, ToolContext, ToolResult, UserQuestion
from sylph.engine.runtime.runtime import Runtime
from sylph.testing import ScriptedProvider, ScriptLine, say

B = TypeVar("B", bound=EventBody)


class Put(ToolArgs, frozen=True):
    path: str
    text: str = ""


class Look(ToolArgs, frozen=True):
    path: str


class Say(ToolArgs, frozen=True):
    text: str = ""
    times: int = 1


async def put(args: Put, context: ToolContext) -> ToolResult:
    (context.workspace / args.path).write_text(args.text)
    return ToolResult(text="written")


async def look(args: Look, context: ToolContext) -> ToolResult:
    path = context.workspace / args.path
    if not path.exists():
        raise ToolError("no such file", kind="not_found")
    return ToolResult(text=path.read_text())


async def would_put(args: Put, context: ToolContext) -> str:
    return f"would write {args.path}"


async def much(args: Say, context: ToolContext) -> ToolResult:
    return ToolResult(text=args.text * args.times)


async def boom(args: Say, context: ToolContext) -> ToolResult:
    raise RuntimeError("a bug in a tool")


async def late(args: Say, context: ToolContext) -> ToolResult:
    raise TimeoutError("the socket timed out")


async def inquire(args: Say, context: ToolContext) -> ToolResult:
    return ToolResult(text=" ".join(await context.ask([UserQuestion(text=args.text)])))


class Props:
    """Tools that tell when they began and wait until they may go on."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.began, self.go = asyncio.Event(), asyncio.Event()
        self.side_by_side = asyncio.Barrier(2)

    async def hold(self, args: Say, _: ToolContext) -> ToolResult:
        self.ran.append(args.text)
        self.began.set()
        await self.go.wait()
        return ToolResult(text=f"did {args.text}")

    async def meet(self, _args: Say, _: ToolContext) -> ToolResult:
        await self.side_by_side.wait()
        return ToolResult(text="met")

    async def act(self, args: Say, _: ToolContext) -> ToolResult:
        self.ran.append(args.text)
        return ToolResult(text=f"did {args.text}")

    def judge(self, args: Say, _: ToolContext) -> CallAssessment:
        return CallAssessment("external", "caution", f"it reaches {args.text}")

    @property
    def tools(self) -> tuple[Tool, ...]:
        return (
            Tool(name="hold", description="", args=Say, run=self.hold, effect="write"),
            Tool(name="peek", description="", args=Say, run=self.hold, effect="read", recourse="pure"),
            Tool(name="meet", description="", args=Say, run=self.meet, effect="read", recourse="pure"),
            Tool(name="act", description="", args=Say, run=self.act, effect="write"),
            Tool(name="fetch", description="", args=Say, run=self.act, effect="read", judge=self.judge),
            *TOOLS,
        )


TOOLS = (
    Tool(name="put", description="", args=Put, run=put, effect="write", recourse="by_content", preview=would_put),
    Tool(name="look", description="", args=Look, run=look, effect="read", recourse="pure"),
    Tool(name="much", description="", args=Say, run=much, effect="read", recourse="pure"),
    Tool(name="boom", description="", args=Say, run=boom, effect="write"),
    Tool(name="late", description="", args=Say, run=late, effect="read", seconds=None),
    Tool(name="ask", description="", args=Say, run=inquire, effect="read", seconds=None),
)


class Stuck(ScriptedProvider):
    """Says its lines; where a line is empty it says `words`, then nothing, and never ends."""

    def __init__(self, lines: Iterable[ScriptLine], *, words: str = "", window: int | None = None) -> None:
        super().__init__(lines, window=window)
        self._words = words
        self.silent = asyncio.Event()

    async def stream(self, request: ModelRequest, body: bytes) -> AsyncGenerator[Chunk, None]:
        if self._lines and self._lines[0] == SILENCE:
            self.requests.append(request)
            self._lines.pop(0)
            if self._words:
                yield TextChunk(self._words)
            self.silent.set()
            await asyncio.Event().wait()
        async for chunk in super().stream(request, body):
            yield chunk


SILENCE = say("")


def noting(*texts: str, topic: str = "weather") -> Plugin:
    """A plugin that has another thing to say each time it is asked; the last one stays."""
    left = list(texts)

    async def prepare(_: PrepareContext) -> list[ContextNote]:
        return [ContextNote(topic, left.pop(0) if len(left) > 1 else left[0])]

    return Plugin(name="noting", prepare=(prepare,))


def bodies(events: Iterable[Event], kind: type[B]) -> list[B]:
    return [event.body for event in events if isinstance(event.body, kind)]


def results(events: Iterable[Event]) -> list[facts.ToolFinished]:
    return bodies(events, facts.ToolFinished)


def outcomes(events: Iterable[Event]) -> list[str]:
    return [fact.outcome for fact in bodies(events, facts.TurnEnded)]


def ended(events: Iterable[Event]) -> facts.TurnEnded:
    (end,) = bodies(events, facts.TurnEnded)
    return end


async def seen(engine: Runtime, session: str, kind: type[B], *, after: int = 0) -> B:
    """Waits for an event of one kind."""
    async for event in engine.watch(session, after=after):
        if isinstance(event.body, kind):
            return event.body
    raise AssertionError("a watch does not end by itself")


async def state(engine: Runtime, session: str, wanted: str) -> None:
    """Waits until the session is in a state."""
    async for event in engine.watch(session):
        if isinstance(event.body, facts.StateChanged) and event.body.to == wanted:
            return


async def said(engine: Runtime, session: str, text: str) -> list[Event]:
    """Sends a message and returns all facts of the session when nothing runs any more."""
    await engine.send(session, commands.Send(text=text))
    await engine.wait_until_idle(session)
    return await engine.read_events(session, limit=100_000)


async def story(engine: Runtime, session: str) -> list[Event]:
    await engine.wait_until_idle(session)
    return await engine.read_events(session, limit=100_000)
