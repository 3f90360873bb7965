"""The doubles we ship: a scripted model, a clock that is turned by hand, and play(). Plugin authors use them too."""

from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from sylph.core import commands, facts, signals
from sylph.core.budget import Budget
from sylph.core.clock import Clock, SystemClock
from sylph.core.errors import ProviderError
from sylph.core.events import Event
from sylph.core.messages import ToolCall, Usage
from sylph.core.plugin import Plugin
from sylph.core.provider import Arguments, Chunk, ModelInfo, Reply, Request, Text
from sylph.core.tool import Tool
from sylph.engine.budget.purse import FilePurse
from sylph.engine.gateway import Gateway, Patience
from sylph.engine.log import Log
from sylph.engine.redact.veil import Veil
from sylph.engine.runtime import NewSession, Parts, Runtime
from sylph.engine.turn import Limits
from sylph.engine.undo.view import Rules

Line = Reply | ProviderError | Callable[[Request], Reply]


def say(text: str, *, usage: Usage | None = None) -> Reply:
    return Reply(text=text, finish="stop", usage=usage or Usage())


def call(name: str, text: str = "", /, **arguments: object) -> Reply:
    return calls((name, arguments), text=text)


def calls(*wanted: tuple[str, dict[str, object]], text: str = "") -> Reply:
    made = tuple(
        ToolCall(f"x{number}", name, msgspec.json.encode(arguments).decode())
        for number, (name, arguments) in enumerate(wanted)
    )
    return Reply(text=text, finish="calls", calls=made)


class ScriptedProvider:
    """A model that says its lines in order. A line may be a function of the request, or an error to raise."""

    name = "scripted"

    def __init__(
        self, lines: Iterable[Line], *, window: int | None = None, prices: tuple[int, int] | None = None
    ) -> None:
        """`prices` of input and output are in micro-dollars per million tokens."""
        self._lines = list(lines)
        self._window = window
        self._prices = prices or (None, None)
        self.requests: list[Request] = []

    def say(self, *lines: Line) -> None:
        """Adds lines to the script."""
        self._lines += lines

    def forget(self) -> None:
        """Drops the lines that were not said."""
        self._lines.clear()

    def body(self, request: Request) -> bytes:
        limit = [] if request.max_tokens is None else [request.max_tokens]
        return msgspec.json.encode([request.system, request.tools, request.messages, *limit])

    async def stream(self, request: Request, body: bytes) -> AsyncGenerator[Chunk, None]:  # noqa: ARG002
        self.requests.append(request)
        if not self._lines:
            raise ProviderError("bad_request", "The script has no more lines.")
        line = self._lines.pop(0)
        if isinstance(line, ProviderError):
            raise line
        reply = line if isinstance(line, Reply) else line(request)
        for word in reply.text.splitlines(keepends=True):
            yield Text(word)
        for index, wanted in enumerate(reply.calls):
            yield Arguments(index, wanted.name, wanted.arguments)
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


def runtime(  # noqa: PLR0913 - what a test may choose, all of it optional
    home: Path,
    lines: Iterable[Line] | ScriptedProvider,
    *,
    tools: Sequence[Tool] = (),
    plugins: Sequence[Plugin] = (),
    limits: Limits | None = None,
    clock: Clock | None = None,
    undo: Rules | None = None,
    budget: Budget | None = None,
    veil: Veil | None = None,
) -> Runtime:
    """A real runtime on a real log in `home`, with a scripted model; with checkpoints, if it is told what to cover,
    and with a veil over secrets, if it is given one."""
    store = home / "data" / "sylph.db"
    provider = lines if isinstance(lines, ScriptedProvider) else ScriptedProvider(lines)
    parts = Parts(
        gateway=Gateway(
            {"scripted": provider},
            Patience(base=0.001),
            clock,
            purse=FilePurse(store.parent, store, budget, clock) if budget else None,
        ),
        plugins=(Plugin(name="tools", tools=tuple(tools)), *plugins),
        limits=limits or Limits(),
        undo=undo,
        veil=veil or Veil(),
    )
    return Runtime(Log.open(store), parts, clock)


async def begin(runtime: Runtime, workspace: Path, *, mode: facts.Mode = "trust") -> str:
    return await runtime.create(NewSession(workspace=workspace, model="scripted/model", mode=mode))


async def play(
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
    await runtime.settled(session)
    return seen


def kinds(events: Iterable[Event]) -> list[str]:
    """The wire names of the facts among `events`."""
    return [event.type for event in events if event.seq]
