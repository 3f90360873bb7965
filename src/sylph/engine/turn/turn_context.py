"""Where a turn stands: the session's book, and the places where a turn waits for a person."""

import asyncio
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from sylph.core import facts
from sylph.core.events import Event, Fact
from sylph.core.facts.budget import BudgetStopped, BudgetWarned, describe_scope, format_share
from sylph.core.facts.delivery import (
    DOOR_CHANNEL,
    DeliveryConfirmed,
    DeliveryRecorded,
    Notification,
    NotificationOccasion,
)
from sylph.core.facts.tool_call import Answered, Asked
from sylph.core.ids import question_id
from sylph.core.text.formatting import first_line
from sylph.engine.folds.session_state import approval_key, question_keys
from sylph.engine.turn.session_log import SessionLog, SessionServices

OUTBOX_WAKING_FACTS = (DeliveryRecorded, facts.TurnStarted, facts.TurnResumed)


class TurnContext(SessionLog):
    def __init__(self, id: str, services: SessionServices) -> None:
        super().__init__(id, services)
        self._answers: dict[str, asyncio.Future[Answered]] = {}
        self._unpaused = asyncio.Event()
        self._absent, self._left = 0, 0.0
        self.timer: asyncio.Timeout | None = None
        """What bounds the turn. It stands still while a person is waited for."""
        self.stirred: Callable[[], None] = lambda: None
        """Told when there may be something to deliver: it was recorded, or a process before this one left it."""

    async def wait_while_paused(self) -> None:
        """The safe point between steps: a requested pause takes hold here."""
        if self.state == "pause_requested":
            self._unpaused.clear()
            await self.apply_trigger("hold")
            with self._suspend_timer():
                await self._unpaused.wait()

    async def unpause(self) -> None:
        await self.apply_trigger("unpause")
        self._unpaused.set()

    async def deliver_steering(self) -> None:
        """Delivers what was said while the turn ran."""
        waiting = [id for id in self.summary.queue if id not in self.summary.follows]
        if waiting:
            await self.emit(*(facts.InputDelivered(id=id) for id in waiting))

    def earlier_answer(self, call: str) -> Answered | None:
        """An answer that was acknowledged is an answer kept, also when the process died since."""
        return self.summary.answers.get(approval_key(call))

    async def ask_user(self, build: Callable[[str], Asked], wait: float | None = None) -> Answered:
        """Waits for a person, for `wait` seconds at most. Whichever door answers first is heard.

        Several may wait at the same time; the turn goes on when all of them have their answer.
        """
        await self.wait_while_paused()
        # Hidden before anything is cut out of it: half a secret is not known for one.
        asked = self.redactor.redact_fact(build(question_id(self.summary.open_turn, self.summary.questions + 1)))
        for key in question_keys(asked):
            if known := self.summary.answers.get(key):
                return known
        answer = self._answers[asked.id] = asyncio.get_running_loop().create_future()
        calling = self.build_deliveries(_question_notice(asked), "asked", asked.id)
        if self.state == "awaiting_user":
            await self.emit(asked, *calling)
        else:
            await self.apply_trigger("ask", asked, *calling)
        with self._suspend_timer():
            answered = await self._await_answer(asked, answer, wait)
        if self.state == "awaiting_user" and not self.summary.asked:
            await self.apply_trigger("answer")
        return answered

    async def _await_answer(self, asked: Asked, answer: "asyncio.Future[Answered]", wait: float | None) -> Answered:
        try:
            async with asyncio.timeout(wait):
                return await asyncio.shield(answer)
        except TimeoutError:
            if answer.done():
                return answer.result()
        silence = Answered(id=asked.id, answer="no", reason="the question was open too long", by="nobody")
        await self.emit(silence, actor="nobody")
        return silence

    async def record_notice(self, notice: Notification, call: str) -> Sequence[str]:
        """Records a message to the person, once for each call; returns on which ways they are told."""
        known = self._services.log.find_facts(self.id, DeliveryRecorded, f'"call":"{call}"')
        if told := [fact.channel for _, _, fact in reversed(known) if fact.call == call]:
            return told
        parcels = self.build_deliveries(notice, "notify", call, call=call)
        await self.emit(*parcels)
        return [parcel.channel for parcel in parcels if isinstance(parcel, DeliveryRecorded)]

    def build_deliveries(
        self, notice: Notification, why: NotificationOccasion, name: str, *, call: str = ""
    ) -> list[Fact]:
        """What is recorded so that a person is told. What is only shown is confirmed with it: the log is shown."""
        channels = self._services.courier.channels(why, name)
        found: list[Fact] = []
        for channel in channels if not self.summary.dry_run else [DOOR_CHANNEL] if DOOR_CHANNEL in channels else []:
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
            found += [DeliveryConfirmed(id=id)] if channel == DOOR_CHANNEL else []
        return found

    def turn_end_deliveries(self, ended: facts.TurnEnded) -> list[Fact]:
        """The message to a person who wants to know when a turn is over; whoever stopped it knows."""
        if ended.outcome == "cancelled":
            return []
        said = next((each.message.text for each in reversed(self.history.entries) if each.kind == "answer"), "")
        text = ended.trouble.message if ended.trouble else said
        title = f"Sylph {ended.outcome}: {self.summary.title}"
        notice = Notification(
            title=title, text=text[:1000], urgency="normal" if ended.outcome == "finished" else "high"
        )
        return self.build_deliveries(notice, "ended", self.summary.open_turn)

    async def record_call_fact(self, fact: Fact) -> None:
        """Writes what a model call reports; of a budget that runs out a person is told as well."""
        about: list[Fact] = []
        if isinstance(fact, BudgetWarned | BudgetStopped):
            about = self.build_deliveries(
                _budget_notice(fact), "budget", _budget_notice_id(fact, self.summary.open_turn)
            )
        await self.emit(fact, *about)

    @contextmanager
    def _suspend_timer(self) -> Generator[None]:
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

    def _on_committed(self, events: list[Event], done: "asyncio.Future[None]") -> None:
        """An answer is heard when it is in the log, whatever becomes of whoever brought it."""
        super()._on_committed(events, done)
        for event in events:
            if isinstance(event.body, Answered) and not done.exception():
                waiting = self._answers.pop(event.body.id, None)
                if waiting and not waiting.done():
                    waiting.set_result(event.body)

    def _on_appended(self, new: Sequence[Fact]) -> None:
        if self.summary.outbox and any(isinstance(fact, OUTBOX_WAKING_FACTS) for fact in new):
            asyncio.get_running_loop().call_soon(self.stirred)

    def forget_waiters(self) -> None:
        self._answers.clear()


def _budget_notice(fact: BudgetWarned | BudgetStopped) -> Notification:
    stopped = isinstance(fact, BudgetStopped)
    title = f"Sylph {'has stopped: the budget' if stopped else 'has used 80 % of the budget'} of "
    ends = " is used up" if fact.used >= fact.cap else " has no room for the next call"
    title += f"{describe_scope(fact.scope, fact.name)}{ends if stopped else ''}"
    text = f"{format_share(fact.what, fact.used, fact.cap)}."
    return Notification(title=title, text=text, urgency="high" if stopped else "normal")


def _budget_notice_id(fact: BudgetWarned | BudgetStopped, turn: str) -> str:
    """What the message is known by: each warning comes once in a session, each stop once in a turn."""
    name = f"budget_{fact.scope}_{fact.name.replace(' ', '_').replace('.', '_')}_{fact.what}_{fact.cap}"
    return f"{turn}_{name}" if isinstance(fact, BudgetStopped) else name


def _question_notice(asked: Asked) -> Notification:
    return Notification(
        title=f"Sylph asks: {first_line(asked.question, 100)}", text=asked.detail[:1000], urgency="high"
    )
