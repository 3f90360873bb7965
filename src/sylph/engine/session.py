"""One conversation: takes commands, runs one turn at a time, and is the only writer of its log."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from sylph.core import commands, facts, signals
from sylph.core.budget import SessionBudget
from sylph.core.deliveries import Courier, Nobody
from sylph.core.errors import BudgetSpent, NotFound, StoreError, SylphError, ToolError, Trouble, UserError
from sylph.core.events import Fact
from sylph.core.facts import Outcome
from sylph.core.ids import input_id, turn_id
from sylph.core.messages import Image
from sylph.engine import turn
from sylph.engine.floor import Floor
from sylph.engine.leftovers import DROPPED, gave_up
from sylph.engine.outbox import Outbox
from sylph.engine.outside import cut_short
from sylph.engine.permit import EDIT
from sylph.engine.policy import LOOSE
from sylph.engine.ready import parse
from sylph.engine.shape import output_digest
from sylph.engine.standing import must_live, must_rest
from sylph.engine.states import UNPAUSABLE, Trigger, step
from sylph.engine.summary import Summary
from sylph.engine.turn import MOST_RESUMES, Hands
from sylph.engine.undo import undo

QUEUE_LIMIT = 100

logger = logging.getLogger(__name__)


class Session:
    def __init__(self, floor: Floor, hands: Callable[[Summary], Hands], courier: Courier | None = None) -> None:
        self.floor, self._hands = floor, hands
        self.outbox = Outbox(floor, courier or Nobody(), self._deliver, self._let_go)
        floor.stirred = self.outbox.wake
        self._work: asyncio.Task[None] | None = None
        self._entry = asyncio.Lock()
        self._reason: str | None = None
        self._retries: dict[str, str] = {}
        self._closing = self._starting = False

    @property
    def busy(self) -> bool:
        return self._work is not None and not self._work.done()

    @property
    def rests(self) -> bool:
        """Whether nobody would miss it: nothing runs, nothing is about to, and all it knows is in the log."""
        return not (self.busy or self._entry.locked() or self.outbox.working)

    async def settled(self) -> None:
        """Returns when nothing runs and nothing waits to run."""
        while self._work and not self._work.done():
            await asyncio.wait([self._work])

    async def close(self) -> None:
        """Stops where it stands: an open turn stays open in the log, to be resumed; one that ends is let end."""
        self._closing = True
        await self.outbox.stop()
        if self._work and self.busy and self._can_stop(self._work):
            self._work.cancel()
        await self.settled()
        await self.floor.save()
        self.floor.release()

    async def handle(self, command: commands.Command) -> str:  # noqa: C901, PLR0912, PLR0915 - one flat table of commands
        """Does what is asked, or raises a UserError that says why not. For a message: the id it is kept under."""
        match command:
            case commands.Send():
                return await self._receive(command)
            case commands.Answer():
                await self._answer(command)
            case commands.Interrupt():
                await self._interrupt(command)
            case commands.Pause():
                await self._pause()
            case commands.Continue():
                await self._continue()
            case commands.Drop():
                await self._drop()
            case commands.Retry():
                return await self._retry(command)
            case commands.Withdraw(id=id):
                await self._withdraw(id)
            case commands.Compact():
                await self._compact()
            case commands.Rename(title=title):
                await self._note(facts.SessionRenamed(title=title))
            case commands.SetMode():
                await self._set_mode(command)
            case commands.SetSandbox(on=on):
                await self._switch(on=on, actor=command.actor)
            case commands.SetModel(model=model):
                await self._note(facts.SessionModel(model=model, was=self.floor.summary.model))
            case commands.SetBudget(money=money):
                await self._allow(money, command.actor)
            case commands.SetRole(role=role, model=model):
                await self._note(facts.SessionRole(role=role, model=model, was=self.floor.summary.roles.get(role, "")))
            case commands.Revoke(rule=rule):
                if rule not in self.floor.summary.grants:
                    raise NotFound("That is not allowed any more.", next=["the list of grants tells what is"])
                await self._note(facts.GrantRevoked(rule=rule))
            case commands.Delete():
                await self._delete()
            case commands.Restore():
                await self._note(facts.SessionRestored())
            case commands.Archive(on=on):
                await self._note(facts.SessionArchived(archived=on))
            case commands.Pin(on=on):
                await self._note(facts.SessionPinned(pinned=on))
            case commands.See(upto=upto):
                await self._see(upto)
            case commands.Undo():
                await self._undo(command)
        return ""

    async def _switch(self, *, on: bool, actor: str) -> None:
        if not on and actor != "user":
            raise UserError("Only a person can switch the sandbox off.", kind="not_permitted")
        if not on and self.floor.summary.mode == "sandbox":
            raise UserError("Mode `sandbox` cannot do without the sandbox.", next=["choose another mode first"])
        await self._note(facts.SessionSandbox(on=on))

    async def _allow(self, money: int | None, actor: str) -> None:
        if actor != "user":
            raise UserError("Only a person can set a budget.", kind="not_permitted")
        if money is not None and money <= 0:
            raise UserError("A budget must be more than nothing.", next=["--budget 0.50", "--budget none"])
        await self._note(SessionBudget(money=money))

    async def _receive(self, command: commands.Send) -> str:
        if not command.text.strip() and not command.files:
            raise UserError("There is nothing in that message.", kind="empty_message")
        async with self._entry:
            must_live(self.floor.summary, self.floor.id)
            summary = self.floor.summary
            if command.key and command.key in summary.keys:
                return summary.keys[command.key]
            if len(summary.queue) >= QUEUE_LIMIT:
                raise UserError(f"{QUEUE_LIMIT} messages wait already.", kind="queue_full", next=["Wait for the turn."])
            id = input_id(summary.inputs + 1)
            delivery = command.delivery if self.busy else "start"
            kept = {output_digest(file.data): file for file in command.files}
            images = (Image(name, file.media, len(file.data), file.name) for name, file in kept.items())
            received = facts.InputReceived(
                id=id,
                text=command.text,
                delivery=delivery,
                key=command.key,
                dry_run=command.dry_run,
                images=(*command.images, *images),
                form=command.form,
            )
            blobs = [(name, file.data) for name, file in kept.items()]
            await self._begin(received, actor=command.actor, blobs=blobs)
        return id

    async def _answer(self, command: commands.Answer) -> None:
        async with self._entry:
            asked = self.floor.summary.asked.get(command.id)
            if asked is None:
                raise NotFound(f"No question {command.id!r} waits for an answer; it may have been answered already.")
            if asked.choices and not asked.free and command.answer not in asked.choices and command.actor != "nobody":
                choices = ", ".join(asked.choices)
                raise UserError(f"{command.answer!r} is not one of the choices.", next=[f"Choose one of: {choices}."])
            arguments = self._edit(asked, command) if command.answer == EDIT and asked.kind == "approval" else ""
            answered = facts.Answered(
                id=command.id,
                answer=command.answer,
                reason=command.reason,
                by=command.actor,
                arguments=arguments,
                via=command.via,
            )
            await self._write(answered, actor=command.actor)

    def _edit(self, asked: facts.Asked, command: commands.Answer) -> str:
        """The arguments a person wants instead. What the tool cannot take is refused before it is kept."""
        called = self.floor.summary.open_calls.get(asked.call)
        tool = self._hands(self.floor.summary).executor.tools.get(called.name) if called else None
        try:
            if tool:
                parse(tool, command.arguments)
        except ToolError as error:
            raise UserError(str(error), kind="invalid_arguments", next=["Give all arguments as JSON."]) from error
        if not command.arguments.strip():
            raise UserError("The changed arguments are missing.", next=["Give them as JSON in `arguments`."])
        return command.arguments

    async def _interrupt(self, command: commands.Interrupt) -> None:
        # A turn that was asked for a moment ago gets the chance to begin, so that it can be ended.
        await asyncio.sleep(0)
        if self._work is None or not self.busy or self.floor.state == "idle":
            raise UserError("Nothing runs that could be stopped.", kind="wrong_state")
        if not self._can_stop(self._work):
            return
        self._reason = command.reason
        self._work.cancel()
        # Said to a turn that is no more, it would begin another one: stopped is stopped.
        summary = self.floor.summary
        own = [id for id in summary.queue if summary.open_turn and id not in summary.follows]
        gone = list(summary.queue) if command.drop else own
        await self.floor.emit(*(facts.InputCancelled(id=id) for id in gone), actor="user")

    def _can_stop(self, work: "asyncio.Task[None]") -> bool:
        """Whether stopping it would change anything: not when it is about to end anyway."""
        return not work.cancelling() and step(self.floor.state, "cancel") is not None

    async def _pause(self) -> None:
        state = self.floor.state
        if not self.busy or step(state, "pause") is None:
            why = UNPAUSABLE[state if self.busy else "idle"]
            raise UserError(why, kind="wrong_state", details={"state": state}, next=["look at the session's state"])
        await self.floor.enter("pause")

    async def _continue(self) -> None:
        if self.busy:
            await self.floor.unpause()
            return
        async with self._entry:
            summary = self.floor.summary
            if not summary.open_turn and not summary.queue and not summary.outbox:
                raise UserError("There is no open turn to go on with.", kind="nothing_open")
            await self._begin()

    async def _retry(self, command: commands.Retry) -> str:
        async with self._entry:
            if command.key and command.key in self.floor.summary.keys:
                return self.floor.summary.keys[command.key]
            self._must_rest("retried")
            again = command.turn or turn_id(self.floor.summary.turns)
            began, first = self.floor.turn_start(again)
            if not began:
                raise NotFound(f"There is no turn {again!r} to retry.", next=["`sylph session show` lists the turns."])
            id = input_id(self.floor.summary.inputs + 1)
            old = self.floor.message(first)
            dry = command.dry_run or old.dry_run
            said = facts.InputReceived(
                id=id,
                text=command.text or old.text,
                dry_run=dry,
                images=old.images,
                form=old.form,
                key=command.key,
            )
            self._retries[id] = again
            await self._begin(facts.HistoryRewound(to=began, why="retry"), said, actor=command.actor)
        return id

    async def _withdraw(self, id: str) -> None:
        async with self._entry:
            if id not in self.floor.summary.queue:
                raise NotFound(f"No message {id!r} waits; it may have been delivered already.")
            await self._write(facts.InputCancelled(id=id))

    async def _compact(self) -> None:
        async with self._entry:
            self._must_rest("compacted")
            hands = self._hands(self.floor.summary)
            if turn.where(self.floor, hands) is None:
                raise UserError("There is nothing to condense yet.", kind="too_short")
            self.floor.own()
            self._starting = True
            work = self._work = asyncio.create_task(self._squeeze(hands))
        await asyncio.wait([work])
        work.result()

    async def _set_mode(self, command: commands.SetMode) -> None:
        was = self.floor.summary.mode
        if command.actor != "user" and LOOSE.index(command.mode) < LOOSE.index(was):
            raise UserError(
                f"Only a person can loosen the mode, from {was} to {command.mode}.",
                kind="not_permitted",
                next=["Ask the user to change it: `--mode`, or `/mode` in the chat."],
            )
        await self._note(facts.SessionMode(mode=command.mode, was=was))

    async def _drop(self) -> None:
        async with self._entry:
            if self.busy or not (self.floor.summary.open_turn or self.floor.summary.queue):
                raise UserError("No interrupted turn is there to be dropped.", kind="nothing_open")
            await self._abandon()

    async def _delete(self) -> None:
        async with self._entry:
            if not self.busy and self.floor.summary.open_turn:
                await self._abandon()
            self._must_rest("deleted")
            await self.outbox.stop()
            await self._write(facts.SessionDeleted())

    async def _undo(self, command: commands.Undo) -> None:
        async with self._entry:
            self._must_rest("undone")
            taken = self.floor.own()
            try:
                await undo.perform(self.floor, self._hands(self.floor.summary).undoing, command)
            finally:
                if taken:
                    await self.floor.save()
                    self.floor.release()

    async def _abandon(self) -> None:
        """Ends what a crash left open, without running any of it."""
        self.floor.own()
        try:
            waiting = [facts.InputCancelled(id=id) for id in self.floor.summary.queue]
            await self.floor.emit(*waiting, actor="user")
            if self.floor.summary.open_turn:
                await self._leave("cancelled", Trouble(DROPPED, "The interrupted turn was given up."))
        finally:
            await self.floor.save()
            self._release()

    async def erase(self, secret: str, why: str) -> int:
        """Takes a secret out of everything this session holds; returns how many facts and outputs held it."""
        await self.outbox.stop()
        async with self._entry:
            self._must_rest("cleaned")
            self.floor.own()
            try:
                return await self.floor.erase(secret, why)
            finally:
                self._release()

    async def _see(self, upto: int) -> None:
        async with self._entry:
            upto = min(upto, self.floor.summary.seq)
            if upto > self.floor.summary.seen:
                await self._write(facts.SessionSeen(upto=upto))

    async def _note(self, fact: Fact) -> None:
        """A fact about the session itself, written whether or not a turn runs."""
        async with self._entry:
            await self._write(fact)

    async def _write(self, fact: Fact, *, actor: str = "user") -> None:
        """Holds the session only as long as it takes, unless a turn holds it anyway."""
        self.floor.own()
        try:
            await self.floor.emit(fact, actor=actor)
        finally:
            if not self.busy:
                await self.floor.save()
                self._release()

    def _release(self) -> None:
        if not self.outbox.sending:
            self.floor.release()

    async def _deliver(self, fact: Fact) -> None:
        """A fact of the outbox. Between a message and the turn it begins there is room for nothing else."""
        while True:
            async with self._entry:
                if not self._starting:
                    self.floor.own()
                    await self.floor.emit(fact)
                    break
            await asyncio.sleep(0)

    def _let_go(self) -> None:
        """Lets others have the session, unless a turn runs or something is on its way to a person."""
        if not self.busy and not self.outbox.sending and not self._entry.locked():
            self.floor.release()

    async def _begin(self, *new: Fact, actor: str = "user", blobs: Sequence[tuple[str, bytes]] = ()) -> None:
        """Writes what there is to work on, and sees to it that somebody does, even if the caller has gone meanwhile."""
        self.floor.own()
        self._starting = not self.busy
        try:
            await self.floor.emit(*new, actor=actor, blobs=blobs)
        finally:
            if not self.busy:
                self._work = asyncio.create_task(self._drive())

    async def _drive(self) -> None:
        """Runs turns until nothing waits, then lets go of the session."""
        floor = self.floor
        self._starting = False
        try:
            await self._mend()
            while not self._closing and await self._waits():
                if floor.summary.open_turn and floor.state == "cancelling":
                    await self._leave("cancelled", Trouble("cancelled", "interrupted"))
                elif floor.summary.open_turn and floor.summary.resumed >= MOST_RESUMES:
                    # A turn whose process dies every time would die for ever: it ends where everybody can see it.
                    await self._leave("interrupted", gave_up(floor.id, floor.summary.resumed))
                elif floor.summary.open_turn:
                    self._hands(floor.summary).executor.tidy(floor.summary)
                    attempt, calls = floor.summary.resumed + 1, tuple(floor.summary.open_calls)
                    await self._run("resume_turn", facts.TurnResumed(attempt=attempt, open_calls=calls))
                else:
                    id = next(iter(floor.summary.queue))
                    await self._run("input", facts.TurnStarted(input=id, retry_of=self._retries.pop(id, "")))
        except StoreError as error:
            floor.show(signals.SessionFailed(trouble=error.trouble))
        finally:
            self.outbox.wake()
            self._release()

    async def _leave(self, outcome: Outcome, trouble: Trouble) -> None:
        """Ends a turn that is not gone on with, and finds out what became of its calls."""
        await self.floor.enter("resume_turn")
        await self._hands(self.floor.summary).executor.abandon(turn.open_calls(self.floor), self.floor)
        await self._end(outcome, trouble)

    async def _waits(self) -> bool:
        """Whether there is something to do. A message that is just being written is waited for."""
        summary = self.floor.summary
        if not summary.open_turn and not summary.queue:
            async with self._entry:
                await self.floor.save()
        return bool(summary.open_turn or summary.queue)

    async def _squeeze(self, hands: Hands) -> None:
        why = "asked for"
        self._starting = False
        try:
            await self._mend()
            if not self._closing:
                await turn.squeeze(self.floor, hands, why, after="close")
        except asyncio.CancelledError:
            self._uncancel()
            if self.floor.state == "compacting":
                trouble = Trouble("cancelled", self._reason or "interrupted")
                await self.floor.enter("close", facts.CompactionFailed(why=why, trouble=trouble))
        finally:
            # Somebody may have said something meanwhile.
            self._work = asyncio.create_task(self._drive())

    async def _run(self, trigger: Trigger, first: Fact) -> None:
        """One turn from here to its end; whatever happens, it ends in one fact."""
        hands = self._hands(self.floor.summary)
        limit = hands.limits.seconds
        trouble: Trouble | None = None
        outcome: Outcome = "finished"
        self._reason = None
        timer = self.floor.timer = self.floor.clock.timeout(limit)
        try:
            async with timer:
                await self.floor.enter(trigger, first)
                await turn.run_turn(self.floor, hands)
        except asyncio.CancelledError:
            if self._closing and self._reason is None:
                raise
            self._uncancel()
            outcome, trouble = "cancelled", Trouble("cancelled", self._reason or "interrupted")
        except StoreError:
            raise
        except BudgetSpent as error:
            outcome, trouble = "budget", error.trouble
        except SylphError as error:
            outcome, trouble = "failed", error.trouble
        except Exception as error:
            if timer.expired() and isinstance(error, TimeoutError):
                outcome, trouble = "budget", Trouble("budget_spent", f"The turn took more than {limit:.0f} s.")
            else:
                logger.exception("turn %s of %s failed", self.floor.summary.open_turn, self.floor.id)
                outcome, trouble = "failed", Trouble("bug", f"{type(error).__name__}: {error}")
        await self._end(outcome, trouble)

    async def _end(self, outcome: Outcome, trouble: Trouble | None) -> None:
        floor = self.floor
        floor.nobody_waits()
        executor = self._hands(floor.summary).executor
        if left := turn.open_calls(floor):
            # A command that was stopped has printed something all the same.
            await executor.abandon(left, floor)
        watch, calls = executor.watch, dict(floor.summary.open_calls)
        started = [id for id, call in calls.items() if call.started]
        await floor.enter(
            "cancel" if outcome == "cancelled" else "finish",
            *(cut_short(id, started=call.started) for id, call in calls.items()),
            *watch.left(floor.id, started, floor.summary.workspace),
        )
        for id in started:
            watch.done(floor.id, id)
        # The clock is read once, so that the time it took and the time it ended fit together.
        now = floor.now
        took = max(now - floor.summary.open_since, 0)
        # Hidden before a message to the person is cut out of it.
        ended = floor.veil.fact(facts.TurnEnded(outcome=outcome, rounds=floor.summary.rounds, ms=took, trouble=trouble))
        await floor.enter("close", ended, *floor.calling(ended), at=now)

    async def _mend(self) -> None:
        """A state without a turn is what a crash left behind, and so is half an undo."""
        await undo.finish(self.floor, self._hands(self.floor.summary).undoing)
        if not self.floor.summary.open_turn and self.floor.state != "idle":
            await self.floor.enter("mend")

    def _uncancel(self) -> None:
        task = asyncio.current_task()
        while task and task.cancelling():
            task.uncancel()

    def _must_rest(self, what: str) -> None:
        must_rest(self.floor.summary, self.floor.id, what, busy=self.busy)
