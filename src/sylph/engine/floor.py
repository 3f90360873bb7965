"""Where a turn stands: the session's book, and the places where a turn waits for a person."""

import asyncio
from collections.abc import Callable

from sylph.core import facts
from sylph.core.events import Event
from sylph.core.facts import Answered, Asked
from sylph.core.ids import question_id
from sylph.engine.book import Book, Shelf
from sylph.engine.summary import approval_key, question_keys


class Floor(Book):
    def __init__(self, id: str, shelf: Shelf) -> None:
        super().__init__(id, shelf)
        self._answers: dict[str, asyncio.Future[Answered]] = {}
        self._unpaused = asyncio.Event()

    async def hold(self) -> None:
        """The safe point between steps: a requested pause takes hold here."""
        if self.state == "pause_requested":
            self._unpaused.clear()
            await self.enter("hold")
            await self._unpaused.wait()

    async def unpause(self) -> None:
        await self.enter("unpause")
        self._unpaused.set()

    async def steer(self) -> None:
        """Delivers what was said while the turn ran."""
        waiting = [id for id in self.summary.queue if id not in self.summary.follows]
        if waiting:
            await self.emit(*(facts.InputDelivered(id=id) for id in waiting))

    def heard(self, call: str) -> Answered | None:
        """An answer that was acknowledged is an answer kept, also when the process died since."""
        return self.summary.answers.get(approval_key(call))

    async def ask(self, build: Callable[[str], Asked], wait: float | None = None) -> Answered:
        """Waits for a person, for `wait` seconds at most. Whichever door answers first is heard.

        Several may wait at the same time; the turn goes on when all of them have their answer.
        """
        await self.hold()
        asked = build(question_id(self.summary.open_turn, self.summary.questions + 1))
        for key in question_keys(asked):
            if known := self.summary.answers.get(key):
                return known
        answer = self._answers[asked.id] = asyncio.get_running_loop().create_future()
        if self.state == "awaiting_user":
            await self.emit(asked)
        else:
            await self.enter("ask", asked)
        answered = await self._patiently(asked, answer, wait)
        if self.state == "awaiting_user" and not self.summary.asked:
            await self.enter("answer")
        return answered

    async def _patiently(self, asked: Asked, answer: "asyncio.Future[Answered]", wait: float | None) -> Answered:
        try:
            async with asyncio.timeout(wait):
                return await asyncio.shield(answer)
        except TimeoutError:
            if answer.done():
                return answer.result()
        silence = Answered(id=asked.id, answer="no", reason="the question was open too long", by="nobody")
        await self.emit(silence, actor="nobody")
        return silence

    def _committed(self, events: list[Event], done: "asyncio.Future[None]") -> None:
        """An answer is heard when it is in the log, whatever becomes of whoever brought it."""
        super()._committed(events, done)
        for event in events:
            if isinstance(event.body, Answered) and not done.exception():
                waiting = self._answers.pop(event.body.id, None)
                if waiting and not waiting.done():
                    waiting.set_result(event.body)

    def nobody_waits(self) -> None:
        self._answers.clear()
