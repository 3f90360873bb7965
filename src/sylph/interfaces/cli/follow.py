"""Following turns to their end: shown as it happens, its questions answered by the person or by nobody."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager, suppress

from msgspec import Struct

from sylph.core.commands import Answer
from sylph.core.errors import NotFound, StoreError
from sylph.core.events import Event
from sylph.core.facts import Answered, Asked, TurnEnded
from sylph.core.signals import SessionFailed
from sylph.engine.runtime import Runtime
from sylph.engine.summary import SUMMARY, Summary
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

    def take_up(self, summary: Summary) -> None:
        """Asks what was asked before, where the turn runs on already; one that is gone on with asks again."""
        if summary.pid == self._runtime.pid:
            for asked in summary.asked.values():
                self._start(asked)

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


class Course(Struct):
    """The turns that are followed: how each ended, what nobody could answer, and where the session stands."""

    now: Summary
    ended: list[TurnEnded] = []
    kinds: dict[str, str] = {}
    refused: int = 0
    unanswered: int = 0

    def see(self, event: Event) -> None:
        if event.seq:
            SUMMARY.step(self.now, event)
        match event.body:
            case TurnEnded() as body:
                self.ended.append(body)
            case Asked(id=id, kind=kind):
                self.kinds[id] = kind
            case Answered(id=id, by="nobody"):
                approval = self.kinds.get(id) == "approval"
                self.refused += approval
                self.unanswered += not approval
            case SessionFailed(trouble=trouble):
                raise StoreError(trouble.message, kind=trouble.kind, details=trouble.details, next=trouble.next)
            case _:
                pass

    @property
    def settled(self) -> bool:
        """Whether a turn has ended and none waits behind it."""
        return bool(self.ended) and not self.now.open_turn and not self.now.queue


async def follow(
    events: AsyncGenerator[Event], course: Course, over: Callable[[], bool], *watchers: Callable[[Event], None]
) -> None:
    """Hands every event to the watchers until a turn has ended and it is `over`."""
    async with aclosing(events):
        async for event in events:
            course.see(event)
            for watcher in watchers:
                watcher(event)
            if isinstance(event.body, TurnEnded) and over():
                return
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
