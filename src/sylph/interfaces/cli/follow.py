"""Following one turn to its end: shown as it happens, its questions answered by the person or by nobody."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager, suppress

from msgspec import Struct

from sylph.core.commands import Answer
from sylph.core.errors import NotFound, StoreError
from sylph.core.events import Event
from sylph.core.facts import Answered, Asked, TurnEnded, TurnStarted
from sylph.core.signals import SessionFailed
from sylph.engine.runtime import Runtime
from sylph.interfaces.cli.asking import refusal

Asker = Callable[[Asked], Awaitable[Answer]]


class Questions:
    """The open questions of a session, each asked once, and not any more when somebody else has answered."""

    def __init__(self, runtime: Runtime, session: str, ask: Asker) -> None:
        self._runtime, self._session, self._ask = runtime, session, ask
        self._asking: dict[str, asyncio.Task[None]] = {}

    def see(self, event: Event) -> None:
        match event.body:
            case Asked() as asked:
                self._start(asked)
            case Answered(id=id) if id in self._asking:
                self._asking.pop(id).cancel()
            case TurnEnded():
                self.drop()
            case _:
                pass

    def drop(self) -> None:
        """Asks no more."""
        for task in self._asking.values():
            task.cancel()
        self._asking.clear()

    def _start(self, asked: Asked) -> None:
        self._asking[asked.id] = asyncio.create_task(self._answer(asked))

    async def _answer(self, asked: Asked) -> None:
        try:
            answer = await self._ask(asked)
        except OSError:
            # The terminal went away while the question stood there.
            answer = refusal(asked)
        # Answered through another door meanwhile: the first answer counts.
        with suppress(NotFound):
            await self._runtime.send(self._session, answer)


class Turn(Struct):
    """What is known of the followed turn: begun by `input`, or already called `id`."""

    input: str = ""
    id: str = ""
    ended: TurnEnded | None = None
    refused: int = 0

    def see(self, event: Event) -> None:
        match event.body:
            case TurnStarted(input=input) if input == self.input and not self.id:
                self.id = event.turn
            case TurnEnded() as body if event.turn == self.id:
                self.ended = body
            case Answered(by="nobody"):
                self.refused += 1
            case SessionFailed(trouble=trouble):
                raise StoreError(trouble.message, kind=trouble.kind, details=trouble.details, next=trouble.next)
            case _:
                pass


async def follow(events: AsyncGenerator[Event], turn: Turn, *watchers: Callable[[Event], None]) -> TurnEnded:
    """Hands every event to the watchers until the turn has ended."""
    async with aclosing(events):
        async for event in events:
            turn.see(event)
            for watcher in watchers:
                watcher(event)
            if turn.ended:
                return turn.ended
    raise StoreError("The session's events stopped before the turn had ended.")


@asynccontextmanager
async def beside(work: Coroutine[None, None, None]) -> AsyncGenerator[None]:
    """Runs `work` next to the body, for as long as the body takes."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
