"""The doubles we ship: a scripted model, a clock that is turned by hand, and play(). Plugin authors use them too."""

from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from sylph.core import commands, facts, signals
from sylph.core.clock import Clock, SystemClock
from sylph.core.errors import ProviderError
from sylph.core.events import Event
from sylph.core.facts.budget import Budget
from sylph.core.messages import ToolCall, Usage
from sylph.core.permission.types import Mode
from sylph.core.plugin import Plugin
from sylph.core.provider import ArgumentsChunk, Chunk, ModelInfo, ModelReply, ModelRequest, TextChunk
from sylph.core.tool import Tool
from sylph.engine.budget.ledger import SharedBudgetLedger
from sylph.engine.log.store import EventLog
from sylph.engine.model.gateway import ModelGateway
from sylph.engine.model.retry import RetryPolicy
from sylph.engine.redact.redactor import NoRedaction
from sylph.engine.runtime.runtime import NewSession, Runtime, RuntimeParts
from sylph.engine.turn.agent_loop import TurnLimits
from sylph.engine.undo.workspace_scan import CheckpointPolicy

ScriptLine = ModelReply | ProviderError | Callable[[ModelRequest], ModelReply]


def say(text: str, *, usage: Usage | None = None) -> ModelReply:
    return ModelReply(text=text, finish="stop", usage=usage or Usage())


def call_tool(name: str, text: str = "", /, **arguments: object) -> ModelReply:
    return call_tools((name, arguments), text=text)


def call_tools(*wanted: tuple[str, dict[str, object]], text: str = "") -> ModelReply:
    made = tuple(
        ToolCall(f"x{number}", name, msgspec.json.encode(arguments).decode())
        for number, (name, arguments) in enumerate(wanted)
    )
    return ModelReply(text=text, finish="calls", calls=made)


class ScriptedProvider:
    """A model that says its lines in order. A line may be a function of the request, or an error to raise."""

    name = "scripted"

    def __init__(
        self, lines: Iterable[ScriptLine], *, window: int | None = None, prices: tuple[int, int] | None = None
    ) -> None:
        """`prices` of input and output are in micro-dollars per million tokens."""
        self._lines = list(lines)
        self._window = window
        self._prices = prices or (None, None)
        self.requests: list[ModelRequest] = []

    def add_lines(self, *lines: ScriptLine) -> None:
        """Adds lines to the script."""
        self._lines += lines

    def drop_lines(self) -> None:
        """Drops the lines that were not said."""
        self._lines.clear()

    def body(self, request: ModelRequest) -> bytes:
        limit = [] if request.max_tokens is None else [request.max_tokens]
        return msgspec.json.encode([request.system, request.tools, request.messages, *limit])

    async def stream(self, request: ModelRequest, body: bytes) -> AsyncGenerator[Chunk, None]:  # noqa: ARG002
        self.requests.append(request)
        if not self._lines:
            raise ProviderError("bad_request", "The script has no more lines.")
        line = self._lines.pop(0)
        if isinstance(line, ProviderError):
            raise line
        reply = line if isinstance(line, ModelReply) else line(request)
        for word in reply.text.splitlines(keepends=True):
            yield TextChunk(word)
        for index, wanted in enumerate(reply.calls):
            yield ArgumentsChunk(index, wanted.name, wanted.arguments)
        yield reply

    async def models(self) -> tuple[ModelInfo, ...]:
        return (self.info("model"),)

    def info(self, model: str) -> ModelInfo:
        return ModelInfo(name=model, window=self._window, price_in=self._prices[0], price_out=self._prices[1])

    async def close(self) -> None:
        pass


class FakeClock(SystemClock):
    """Stands still until it is told to move."""

    def __init__(self, now: int = 1_700_000_000_000) -> None:
        self._now = now

    def now(self) -> int:
        return self._now

    def ticks(self) -> float:
        return self._now / 1000

    def advance(self, seconds: float) -> None:
        self._now += round(seconds * 1000)


def scripted_runtime(  # noqa: PLR0913 - what a test may choose, all of it optional
    home: Path,
    lines: Iterable[ScriptLine] | ScriptedProvider,
    *,
    tools: Sequence[Tool] = (),
    plugins: Sequence[Plugin] = (),
    limits: TurnLimits | None = None,
    clock: Clock | None = None,
    undo: CheckpointPolicy | None = None,
    budget: Budget | None = None,
    redactor: NoRedaction | None = None,
) -> Runtime:
    """A real runtime on a real log in `home`, with a scripted model; with checkpoints, if it is told what to cover,
    and with a veil over secrets, if it is given one."""
    store = home / "data" / "sylph.db"
    provider = lines if isinstance(lines, ScriptedProvider) else ScriptedProvider(lines)
    parts = RuntimeParts(
        gateway=ModelGateway(
            {"scripted": provider},
            RetryPolicy(base=0.001),
            clock,
            ledger=SharedBudgetLedger(store.parent, store, budget, clock) if budget else None,
        ),
        plugins=(Plugin(name="tools", tools=tuple(tools)), *plugins),
        limits=limits or TurnLimits(),
        undo=undo,
        redactor=redactor or NoRedaction(),
    )
    return Runtime(EventLog.open(store), parts, clock)


async def begin_session(runtime: Runtime, workspace: Path, *, mode: Mode = "trust") -> str:
    return await runtime.create_session(NewSession(workspace=workspace, model="scripted/model", mode=mode))


async def play_turn(
    runtime: Runtime, session: str, command: commands.Command | str, *, answer: str | None = None
) -> list[Event]:
    """Sends a command and collects events until the turn ends; every question gets `answer`, or its first choice."""
    after = runtime.log.head(session).seq
    seen: list[Event] = []
    await runtime.send(session, commands.Send(text=command) if isinstance(command, str) else command)
    async for event in runtime.watch(session, after=after):
        seen.append(event)
        match event.body:
            case facts.Asked(id=id, choices=choices):
                said = answer or (choices[0] if choices else "yes")
                await runtime.send(session, commands.Answer(id=id, answer=said))
            case facts.TurnEnded() | signals.SessionFailed():
                break
            case _:
                pass
    await runtime.wait_until_idle(session)
    return seen


def fact_types(events: Iterable[Event]) -> list[str]:
    """The wire names of the facts among `events`."""
    return [event.type for event in events if event.seq]
