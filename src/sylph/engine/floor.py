"""Where a turn stands: the session's book, and the places where a turn waits for a person."""

import asyncio
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from sylph.core import facts
from sylph.core.budget import BudgetStopped, BudgetWarned, owner, share
from sylph.core.deliveries import DOOR, DeliveryConfirmed, DeliveryRecorded, Notice, Occasion
from sylph.core.events import Event, Fact
from sylph.core.facts import Answered, Asked
from sylph.core.ids import question_id
from sylph.core.text import first_line
from sylph.engine.book import Book, Shelf
from sylph.engine.summary import approval_key, question_keys

STIRRING = (DeliveryRecorded, facts.TurnStarted, facts.TurnResumed)


class Floor(Book):
    def __init__(self, id: str, shelf: Shelf) -> None:
        super().__init__(id, shelf)
        self._answers: dict[str, asyncio.Future[Answered]] = {}
        self._unpaused = asyncio.Event()
        self._absent, self._left = 0, 0.0
        self.timer: asyncio.Timeout | None = None
        """What bounds the turn. It stands still while a person is waited for."""
        self.stirred: Callable[[], None] = lambda: None
        """Told when there may be something to deliver: it was recorded, or a process before this one left it."""

    async def hold(self) -> None:
        """The safe point between steps: a requested pause takes hold here."""
        if self.state == "pause_requested":
            self._unpaused.clear()
            await self.enter("hold")
            with self._untimed():
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
        # Hidden before anything is cut out of it: half a secret is not known for one.
        asked = self.veil.fact(build(question_id(self.summary.open_turn, self.summary.questions + 1)))
        for key in question_keys(asked):
            if known := self.summary.answers.get(key):
                return known
        answer = self._answers[asked.id] = asyncio.get_running_loop().create_future()
        calling = self.parcels(_question(asked), "asked", asked.id)
        if self.state == "awaiting_user":
            await self.emit(asked, *calling)
        else:
            await self.enter("ask", asked, *calling)
        with self._untimed():
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

    async def post(self, notice: Notice, call: str) -> Sequence[str]:
        """Records a message to the person, once for each call; returns on which ways they are told."""
        known = self._shelf.log.find(self.id, DeliveryRecorded, f'"call":"{call}"')
        if told := [fact.channel for _, _, fact in reversed(known) if fact.call == call]:
            return told
        parcels = self.parcels(notice, "notify", call, call=call)
        await self.emit(*parcels)
        return [parcel.channel for parcel in parcels if isinstance(parcel, DeliveryRecorded)]

    def parcels(self, notice: Notice, why: Occasion, name: str, *, call: str = "") -> list[Fact]:
        """What is recorded so that a person is told. What is only shown is confirmed with it: the log is shown."""
        channels = self._shelf.courier.channels(why, name)
        found: list[Fact] = []
        for channel in channels if not self.summary.dry_run else [DOOR] if DOOR in channels else []:
            id = f"{name}.{channel}"
            found.append(
                DeliveryRecorded(
                    id=id,
                    channel=channel,
                    title=notice.title,
                    text=notice.text,
                    urgency=notice.urgency,
                    why=why,
                    call=call,
                )
            )
            found += [DeliveryConfirmed(id=id)] if channel == DOOR else []
        return found

    def calling(self, ended: facts.TurnEnded) -> list[Fact]:
        """The message to a person who wants to know when a turn is over; whoever stopped it knows."""
        if ended.outcome == "cancelled":
            return []
        said = next((each.message.text for each in reversed(self.history.entries) if each.kind == "answer"), "")
        text = ended.trouble.message if ended.trouble else said
        title = f"Sylph {ended.outcome}: {self.summary.title}"
        notice = Notice(title=title, text=text[:1000], urgency="normal" if ended.outcome == "finished" else "high")
        return self.parcels(notice, "ended", self.summary.open_turn)

    async def tell(self, fact: Fact) -> None:
        """Writes what a model call reports; of a budget that runs out a person is told as well."""
        about: list[Fact] = []
        if isinstance(fact, BudgetWarned | BudgetStopped):
            about = self.parcels(_budget(fact), "budget", _budget_name(fact, self.summary.open_turn))
        await self.emit(fact, *about)

    @contextmanager
    def _untimed(self) -> Generator[None]:
        """Stops the clock of the turn for as long as a person takes; they may be asked several things at once."""
        timer, loop = self.timer, asyncio.get_running_loop()
        when = timer.when() if timer else None
        if timer and when is not None and not timer.expired():
            self._left = when - loop.time()
            timer.reschedule(None)
        self._absent += 1
        try:
            yield
        finally:
            self._absent -= 1
            if timer and self._left and not self._absent and not timer.expired():
                timer.reschedule(loop.time() + self._left)
                self._left = 0.0

    def _committed(self, events: list[Event], done: "asyncio.Future[None]") -> None:
        """An answer is heard when it is in the log, whatever becomes of whoever brought it."""
        super()._committed(events, done)
        for event in events:
            if isinstance(event.body, Answered) and not done.exception():
                waiting = self._answers.pop(event.body.id, None)
                if waiting and not waiting.done():
                    waiting.set_result(event.body)

    def _placed(self, new: Sequence[Fact]) -> None:
        if self.summary.outbox and any(isinstance(fact, STIRRING) for fact in new):
            asyncio.get_running_loop().call_soon(self.stirred)

    def nobody_waits(self) -> None:
        self._answers.clear()


def _budget(fact: BudgetWarned | BudgetStopped) -> Notice:
    stopped = isinstance(fact, BudgetStopped)
    title = f"Sylph {'has stopped: the budget' if stopped else 'has used 80 % of the budget'} of "
    ends = " is used up" if fact.used >= fact.cap else " has no room for the next call"
    title += f"{owner(fact.scope, fact.name)}{ends if stopped else ''}"
    text = f"{share(fact.what, fact.used, fact.cap)}."
    return Notice(title=title, text=text, urgency="high" if stopped else "normal")


def _budget_name(fact: BudgetWarned | BudgetStopped, turn: str) -> str:
    """What the message is known by: each warning comes once in a session, each stop once in a turn."""
    name = f"budget_{fact.scope}_{fact.name.replace(' ', '_').replace('.', '_')}_{fact.what}_{fact.cap}"
    return f"{turn}_{name}" if isinstance(fact, BudgetStopped) else name


def _question(asked: Asked) -> Notice:
    return Notice(title=f"Sylph asks: {first_line(asked.question, 100)}", text=asked.detail[:1000], urgency="high")
