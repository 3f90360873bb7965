"""Where a turn stands: the session's book, and the places where a turn waits for a person."""

import asyncio
from collections.abc import Callable

from sylph.core import facts
from sylph.core.events import Event
from sylph.core.facts import Answered, Asked
from sylph.core.ids import question_id
from sylph.engine.book import Book, Shelf
from sylph.engine.summary import question_key


class Floor(Book):
    def __init__(self, id: str, shelf: Shelf) -> None:
        super().__init__(id, shelf)
        self._answers: dict[str, asyncio.Future[Answered]] = {}
        self._unpaused = asyncio.Event()
        self._asking = asyncio.Lock()

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

    async def ask(self, build: Callable[[str], Asked]) -> Answered:
        """Waits for a person, as long as it takes. Whichever door answers first is heard."""
        # One question at a time, also when calls run side by side.
        async with self._asking:
            asked = build(question_id(self.summary.open_turn, self.summary.questions + 1))
            if known := self.summary.answers.get(question_key(asked)):
                # Answered before the process died: an answer that was acknowledged is an answer kept.
                return known
            answer = self._answers[asked.id] = asyncio.get_running_loop().create_future()
            await self.hold()
            await self.enter("ask", asked)
            answered = await answer
            await self.enter("answer")
            return answered

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
