"""Following turns to their end: shown as it happens, its questions answered by the person or by nobody."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager, suppress

from msgspec import Struct

from sylph.core.commands import Answer
from sylph.core.errors import NotFound, StoreError
from sylph.core.events import Event
from sylph.core.facts.tool_call import Answered, Asked
from sylph.core.facts.turn import TurnEnded
from sylph.core.signals import SessionFailed
from sylph.engine.folds.session_state import SESSION_FOLD, SessionState
from sylph.engine.runtime.runtime import Runtime
from sylph.interfaces.cli.turn.question_prompt import unattended_answer

Asker = Callable[[Asked], Awaitable[Answer]]


class OpenQuestions:
    """The open questions of a session, each asked once, and not any more when somebody else has answered."""

    def __init__(self, runtime: Runtime, session: str, ask: Asker) -> None:
        self._runtime, self._session, self._ask = runtime, session, ask
        self._asking: dict[str, asyncio.Task[None]] = {}

    def handle_event(self, event: Event) -> None:
        match event.body:
            case Asked() as asked:
                self._start_asking(asked)
            case Answered(id=id) if id in self._asking:
                self._asking.pop(id).cancel()
            case TurnEnded():
                self.cancel_all()
            case _:
                pass

    def ask_pending(self, summary: SessionState) -> None:
        """Asks what was asked before, where the turn runs on already; one that is gone on with asks again."""
        if summary.pid == self._runtime.pid:
            for asked in summary.asked.values():
                self._start_asking(asked)

    def cancel_all(self) -> None:
        """Asks no more."""
        for task in self._asking.values():
            task.cancel()
        self._asking.clear()

    def _start_asking(self, asked: Asked) -> None:
        self._asking[asked.id] = asyncio.create_task(self._answer_question(asked))

    async def _answer_question(self, asked: Asked) -> None:
        try:
            answer = await self._ask(asked)
        except OSError:
            # The terminal went away while the question stood there.
            answer = unattended_answer(asked)
        # Answered through another door meanwhile: the first answer counts.
        with suppress(NotFound):
            await self._runtime.send(self._session, answer)


class TurnProgress(Struct):
    """The turns that are followed: how each ended, what nobody could answer, and where the session stands."""

    now: SessionState
    ended: list[TurnEnded] = []
    kinds: dict[str, str] = {}
    refused: int = 0
    unanswered: int = 0

    def apply_event(self, event: Event) -> None:
        if event.seq:
            SESSION_FOLD.step(self.now, event)
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
    def is_settled(self) -> bool:
        """Whether a turn has ended and none waits behind it."""
        return bool(self.ended) and not self.now.open_turn and not self.now.queue


async def follow_turns(
    events: AsyncGenerator[Event], course: TurnProgress, over: Callable[[], bool], *watchers: Callable[[Event], None]
) -> None:
    """Hands every event to the watchers until a turn has ended and it is `over`."""
    async with aclosing(events):
        async for event in events:
            course.apply_event(event)
            for watcher in watchers:
                watcher(event)
            if isinstance(event.body, TurnEnded) and over():
                return
    raise StoreError("The session's events stopped before the turn had ended.")


@asynccontextmanager
async def run_in_background(work: Coroutine[None, None, None]) -> AsyncGenerator[None]:
    """Runs `work` next to the body, for as long as the body takes."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
