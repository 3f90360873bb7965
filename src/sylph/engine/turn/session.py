"""One conversation: takes commands, runs one turn at a time, and is the only writer of its log."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from sylph.core import commands, facts, signals
from sylph.core.errors import BudgetSpent, ErrorReport, NotFound, StoreError, SylphError, ToolError, UserError
from sylph.core.events import Fact
from sylph.core.facts.budget import SessionBudget
from sylph.core.facts.delivery import Courier, NoCourier
from sylph.core.facts.turn import TurnOutcome
from sylph.core.ids import input_id, turn_id
from sylph.core.messages import Image
from sylph.engine.calls.interrupted_calls import DROPPED, gave_up_report, interrupted_result
from sylph.engine.calls.judged_call import parse_arguments
from sylph.engine.calls.permission import EDIT
from sylph.engine.calls.policy import MODES_BY_FREEDOM
from sylph.engine.folds.session_state import SessionState
from sylph.engine.folds.state_machine import PAUSE_REFUSALS, StateTrigger, next_state
from sylph.engine.log.hash_chain import output_digest
from sylph.engine.turn import agent_loop, undo
from sylph.engine.turn.agent_loop import MOST_RESUMES, Agent
from sylph.engine.turn.outbox import DeliveryOutbox
from sylph.engine.turn.preconditions import require_idle, require_usable
from sylph.engine.turn.turn_context import TurnContext

QUEUE_LIMIT = 100

logger = logging.getLogger(__name__)


class Session:
    def __init__(
        self, context: TurnContext, agent: Callable[[SessionState], Agent], courier: Courier | None = None
    ) -> None:
        self.context, self._agent = context, agent
        self.outbox = DeliveryOutbox(context, courier or NoCourier(), self._record_delivery, self._release_if_idle)
        context.stirred = self.outbox.start_workers
        self._work: asyncio.Task[None] | None = None
        self._entry = asyncio.Lock()
        self._reason: str | None = None
        self._retries: dict[str, str] = {}
        self._closing = self._starting = False

    @property
    def busy(self) -> bool:
        return self._work is not None and not self._work.done()

    @property
    def can_evict(self) -> bool:
        """Whether nobody would miss it: nothing runs, nothing is about to, and all it knows is in the log."""
        return not (self.busy or self._entry.locked() or self.outbox.working)

    async def wait_until_idle(self) -> None:
        """Returns when nothing runs and nothing waits to run."""
        while self._work and not self._work.done():
            await asyncio.wait([self._work])

    async def close(self) -> None:
        """Stops where it stands: an open turn stays open in the log, to be resumed; one that ends is let end."""
        self._closing = True
        await self.outbox.stop()
        if self._work and self.busy and self._can_stop(self._work):
            self._work.cancel()
        await self.wait_until_idle()
        await self.context.save_snapshots()
        self.context.release_lease()

    async def handle_command(self, command: commands.Command) -> str:  # noqa: C901, PLR0912, PLR0915 - one flat table of commands
        """Does what is asked, or raises a UserError that says why not. For a message: the id it is kept under."""
        match command:
            case commands.Send():
                return await self._receive_message(command)
            case commands.Answer():
                await self._answer_question(command)
            case commands.Interrupt():
                await self._interrupt_turn(command)
            case commands.Pause():
                await self._pause_turn()
            case commands.Continue():
                await self._continue_turn()
            case commands.AbandonTurn():
                await self._drop_turn()
            case commands.Retry():
                return await self._retry_turn(command)
            case commands.Withdraw(id=id):
                await self._withdraw_input(id)
            case commands.Compact():
                await self._compact_history()
            case commands.Rename(title=title):
                await self._record_change(facts.SessionRenamed(title=title))
            case commands.SetMode():
                await self._set_mode(command)
            case commands.SetSandbox(on=on):
                await self._switch_sandbox(on=on, actor=command.actor)
            case commands.SetModel(model=model):
                await self._record_change(facts.SessionModel(model=model, was=self.context.summary.model))
            case commands.SetBudget(money=money):
                await self._set_budget(money, command.actor)
            case commands.SetRole(role=role, model=model):
                await self._record_change(
                    facts.SessionRole(role=role, model=model, was=self.context.summary.roles.get(role, ""))
                )
            case commands.RevokeGrant(rule=rule):
                if rule not in self.context.summary.grants:
                    raise NotFound("That is not allowed any more.", next=["the list of grants tells what is"])
                await self._record_change(facts.GrantRevoked(rule=rule))
            case commands.Delete():
                await self._delete_session()
            case commands.Restore():
                await self._record_change(facts.SessionRestored())
            case commands.Archive(on=on):
                await self._record_change(facts.SessionArchived(archived=on))
            case commands.Pin(on=on):
                await self._record_change(facts.SessionPinned(pinned=on))
            case commands.MarkSeen(upto=upto):
                await self._mark_seen(upto)
            case commands.Undo():
                await self._undo_changes(command)
        return ""

    async def _switch_sandbox(self, *, on: bool, actor: str) -> None:
        if not on and actor != "user":
            raise UserError("Only a person can switch the sandbox off.", kind="not_permitted")
        if not on and self.context.summary.mode == "sandbox":
            raise UserError("Mode `sandbox` cannot do without the sandbox.", next=["choose another mode first"])
        await self._record_change(facts.SessionSandbox(on=on))

    async def _set_budget(self, money: int | None, actor: str) -> None:
        if actor != "user":
            raise UserError("Only a person can set a budget.", kind="not_permitted")
        if money is not None and money <= 0:
            raise UserError("A budget must be more than nothing.", next=["--budget 0.50", "--budget none"])
        await self._record_change(SessionBudget(money=money))

    async def _receive_message(self, command: commands.Send) -> str:
        if not command.text.strip() and not command.files:
            raise UserError("There is nothing in that message.", kind="empty_message")
        async with self._entry:
            require_usable(self.context.summary, self.context.id)
            summary = self.context.summary
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
            await self._begin_work(received, actor=command.actor, blobs=blobs)
        return id

    async def _answer_question(self, command: commands.Answer) -> None:
        async with self._entry:
            asked = self.context.summary.asked.get(command.id)
            if asked is None:
                raise NotFound(f"No question {command.id!r} waits for an answer; it may have been answered already.")
            if asked.choices and not asked.free and command.answer not in asked.choices and command.actor != "nobody":
                choices = ", ".join(asked.choices)
                raise UserError(f"{command.answer!r} is not one of the choices.", next=[f"Choose one of: {choices}."])
            arguments = (
                self._edited_arguments(asked, command) if command.answer == EDIT and asked.kind == "approval" else ""
            )
            answered = facts.Answered(
                id=command.id,
                answer=command.answer,
                reason=command.reason,
                by=command.actor,
                arguments=arguments,
                via=command.via,
            )
            await self._write_fact(answered, actor=command.actor)

    def _edited_arguments(self, asked: facts.Asked, command: commands.Answer) -> str:
        """The arguments a person wants instead. What the tool cannot take is refused before it is kept."""
        called = self.context.summary.open_calls.get(asked.call)
        tool = self._agent(self.context.summary).executor.tools.get(called.name) if called else None
        try:
            if tool:
                parse_arguments(tool, command.arguments)
        except ToolError as error:
            raise UserError(str(error), kind="invalid_arguments", next=["Give all arguments as JSON."]) from error
        if not command.arguments.strip():
            raise UserError("The changed arguments are missing.", next=["Give them as JSON in `arguments`."])
        return command.arguments

    async def _interrupt_turn(self, command: commands.Interrupt) -> None:
        # A turn that was asked for a moment ago gets the chance to begin, so that it can be ended.
        await asyncio.sleep(0)
        if self._work is None or not self.busy or self.context.state == "idle":
            raise UserError("Nothing runs that could be stopped.", kind="wrong_state")
        if not self._can_stop(self._work):
            return
        self._reason = command.reason
        self._work.cancel()
        # Said to a turn that is no more, it would begin another one: stopped is stopped.
        summary = self.context.summary
        own = [id for id in summary.queue if summary.open_turn and id not in summary.follows]
        gone = list(summary.queue) if command.drop else own
        await self.context.emit(*(facts.InputCancelled(id=id) for id in gone), actor="user")

    def _can_stop(self, work: "asyncio.Task[None]") -> bool:
        """Whether stopping it would change anything: not when it is about to end anyway."""
        return not work.cancelling() and next_state(self.context.state, "cancel") is not None

    async def _pause_turn(self) -> None:
        state = self.context.state
        if not self.busy or next_state(state, "pause") is None:
            why = PAUSE_REFUSALS[state if self.busy else "idle"]
            raise UserError(why, kind="wrong_state", details={"state": state}, next=["look at the session's state"])
        await self.context.apply_trigger("pause")

    async def _continue_turn(self) -> None:
        if self.busy:
            await self.context.unpause()
            return
        async with self._entry:
            summary = self.context.summary
            if not summary.open_turn and not summary.queue and not summary.outbox:
                raise UserError("There is no open turn to go on with.", kind="nothing_open")
            await self._begin_work()

    async def _retry_turn(self, command: commands.Retry) -> str:
        async with self._entry:
            if command.key and command.key in self.context.summary.keys:
                return self.context.summary.keys[command.key]
            self._require_idle("retried")
            again = command.turn or turn_id(self.context.summary.turns)
            began, first = self.context.find_turn_start(again)
            if not began:
                raise NotFound(f"There is no turn {again!r} to retry.", next=["`sylph session show` lists the turns."])
            id = input_id(self.context.summary.inputs + 1)
            old = self.context.find_message(first)
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
            await self._begin_work(facts.HistoryRewound(to=began, why="retry"), said, actor=command.actor)
        return id

    async def _withdraw_input(self, id: str) -> None:
        async with self._entry:
            if id not in self.context.summary.queue:
                raise NotFound(f"No message {id!r} waits; it may have been delivered already.")
            await self._write_fact(facts.InputCancelled(id=id))

    async def _compact_history(self) -> None:
        async with self._entry:
            self._require_idle("compacted")
            agent = self._agent(self.context.summary)
            if agent_loop.choose_compaction(self.context, agent) is None:
                raise UserError("There is nothing to condense yet.", kind="too_short")
            self.context.acquire_lease()
            self._starting = True
            work = self._work = asyncio.create_task(self._run_compaction(agent))
        await asyncio.wait([work])
        work.result()

    async def _set_mode(self, command: commands.SetMode) -> None:
        was = self.context.summary.mode
        if command.actor != "user" and MODES_BY_FREEDOM.index(command.mode) < MODES_BY_FREEDOM.index(was):
            raise UserError(
                f"Only a person can loosen the mode, from {was} to {command.mode}.",
                kind="not_permitted",
                next=["Ask the user to change it: `--mode`, or `/mode` in the chat."],
            )
        await self._record_change(facts.SessionMode(mode=command.mode, was=was))

    async def _drop_turn(self) -> None:
        async with self._entry:
            if self.busy or not (self.context.summary.open_turn or self.context.summary.queue):
                raise UserError("No interrupted turn is there to be dropped.", kind="nothing_open")
            await self._abandon_turn()

    async def _delete_session(self) -> None:
        async with self._entry:
            if not self.busy and self.context.summary.open_turn:
                await self._abandon_turn()
            self._require_idle("deleted")
            await self.outbox.stop()
            await self._write_fact(facts.SessionDeleted())

    async def _undo_changes(self, command: commands.Undo) -> None:
        async with self._entry:
            self._require_idle("undone")
            taken = self.context.acquire_lease()
            try:
                await undo.perform_undo(self.context, self._agent(self.context.summary).undoing, command)
            finally:
                if taken:
                    await self.context.save_snapshots()
                    self.context.release_lease()

    async def _abandon_turn(self) -> None:
        """Ends what a crash left open, without running any of it."""
        self.context.acquire_lease()
        try:
            waiting = [facts.InputCancelled(id=id) for id in self.context.summary.queue]
            await self.context.emit(*waiting, actor="user")
            if self.context.summary.open_turn:
                await self._give_up_turn("cancelled", ErrorReport(DROPPED, "The interrupted turn was given up."))
        finally:
            await self.context.save_snapshots()
            self._release_lease()

    async def erase_secret(self, secret: str, why: str) -> int:
        """Takes a secret out of everything this session holds; returns how many facts and outputs held it."""
        await self.outbox.stop()
        async with self._entry:
            self._require_idle("cleaned")
            self.context.acquire_lease()
            try:
                return await self.context.erase_secret(secret, why)
            finally:
                self._release_lease()

    async def _mark_seen(self, upto: int) -> None:
        async with self._entry:
            upto = min(upto, self.context.summary.seq)
            if upto > self.context.summary.seen:
                await self._write_fact(facts.SessionSeen(upto=upto))

    async def _record_change(self, fact: Fact) -> None:
        """A fact about the session itself, written whether or not a turn runs."""
        async with self._entry:
            await self._write_fact(fact)

    async def _write_fact(self, fact: Fact, *, actor: str = "user") -> None:
        """Holds the session only as long as it takes, unless a turn holds it anyway."""
        self.context.acquire_lease()
        try:
            await self.context.emit(fact, actor=actor)
        finally:
            if not self.busy:
                await self.context.save_snapshots()
                self._release_lease()

    def _release_lease(self) -> None:
        if not self.outbox.sending:
            self.context.release_lease()

    async def _record_delivery(self, fact: Fact) -> None:
        """A fact of the outbox. Between a message and the turn it begins there is room for nothing else."""
        while True:
            async with self._entry:
                if not self._starting:
                    self.context.acquire_lease()
                    await self.context.emit(fact)
                    break
            await asyncio.sleep(0)

    def _release_if_idle(self) -> None:
        """Lets others have the session, unless a turn runs or something is on its way to a person."""
        if not self.busy and not self.outbox.sending and not self._entry.locked():
            self.context.release_lease()

    async def _begin_work(self, *new: Fact, actor: str = "user", blobs: Sequence[tuple[str, bytes]] = ()) -> None:
        """Writes what there is to work on, and sees to it that somebody does, even if the caller has gone meanwhile."""
        self.context.acquire_lease()
        self._starting = not self.busy
        try:
            await self.context.emit(*new, actor=actor, blobs=blobs)
        finally:
            if not self.busy:
                self._work = asyncio.create_task(self._run_turns())

    async def _run_turns(self) -> None:
        """Runs turns until nothing waits, then lets go of the session."""
        context = self.context
        self._starting = False
        try:
            await self._repair_state()
            while not self._closing and await self._has_work():
                if context.summary.open_turn and context.state == "cancelling":
                    await self._give_up_turn("cancelled", ErrorReport("cancelled", "interrupted"))
                elif context.summary.open_turn and context.summary.resumed >= MOST_RESUMES:
                    # A turn whose process dies every time would die for ever: it ends where everybody can see it.
                    await self._give_up_turn("interrupted", gave_up_report(context.id, context.summary.resumed))
                elif context.summary.open_turn:
                    self._agent(context.summary).executor.remove_journals(context.summary)
                    attempt, calls = context.summary.resumed + 1, tuple(context.summary.open_calls)
                    await self._run_turn("resume_turn", facts.TurnResumed(attempt=attempt, open_calls=calls))
                else:
                    id = next(iter(context.summary.queue))
                    await self._run_turn("input", facts.TurnStarted(input=id, retry_of=self._retries.pop(id, "")))
        except StoreError as error:
            context.publish_signal(signals.SessionFailed(trouble=error.trouble))
        finally:
            self.outbox.start_workers()
            self._release_lease()

    async def _give_up_turn(self, outcome: TurnOutcome, trouble: ErrorReport) -> None:
        """Ends a turn that is not gone on with, and finds out what became of its calls."""
        await self.context.apply_trigger("resume_turn")
        await self._agent(self.context.summary).executor.abandon_calls(
            agent_loop.list_open_calls(self.context), self.context
        )
        await self._end_turn(outcome, trouble)

    async def _has_work(self) -> bool:
        """Whether there is something to do. A message that is just being written is waited for."""
        summary = self.context.summary
        if not summary.open_turn and not summary.queue:
            async with self._entry:
                await self.context.save_snapshots()
        return bool(summary.open_turn or summary.queue)

    async def _run_compaction(self, agent: Agent) -> None:
        why = "asked for"
        self._starting = False
        try:
            await self._repair_state()
            if not self._closing:
                await agent_loop.compact_session(self.context, agent, why, after="close")
        except asyncio.CancelledError:
            self._clear_cancellation()
            if self.context.state == "compacting":
                trouble = ErrorReport("cancelled", self._reason or "interrupted")
                await self.context.apply_trigger("close", facts.CompactionFailed(why=why, trouble=trouble))
        finally:
            # Somebody may have said something meanwhile.
            self._work = asyncio.create_task(self._run_turns())

    async def _run_turn(self, trigger: StateTrigger, first: Fact) -> None:
        """One turn from here to its end; whatever happens, it ends in one fact."""
        agent = self._agent(self.context.summary)
        limit = agent.limits.seconds
        trouble: ErrorReport | None = None
        outcome: TurnOutcome = "finished"
        self._reason = None
        timer = self.context.timer = self.context.clock.timeout(limit)
        try:
            async with timer:
                await self.context.apply_trigger(trigger, first)
                await agent_loop.run_turn(self.context, agent)
        except asyncio.CancelledError:
            if self._closing and self._reason is None:
                raise
            self._clear_cancellation()
            outcome, trouble = "cancelled", ErrorReport("cancelled", self._reason or "interrupted")
        except StoreError:
            raise
        except BudgetSpent as error:
            outcome, trouble = "budget", error.trouble
        except SylphError as error:
            outcome, trouble = "failed", error.trouble
        except Exception as error:
            if timer.expired() and isinstance(error, TimeoutError):
                outcome, trouble = "budget", ErrorReport("budget_spent", f"The turn took more than {limit:.0f} s.")
            else:
                logger.exception("turn %s of %s failed", self.context.summary.open_turn, self.context.id)
                outcome, trouble = "failed", ErrorReport("bug", f"{type(error).__name__}: {error}")
        await self._end_turn(outcome, trouble)

    async def _end_turn(self, outcome: TurnOutcome, trouble: ErrorReport | None) -> None:
        context = self.context
        context.forget_waiters()
        executor = self._agent(context.summary).executor
        if left := agent_loop.list_open_calls(context):
            # A command that was stopped has printed something all the same.
            await executor.abandon_calls(left, context)
        watch, calls = executor.watch, dict(context.summary.open_calls)
        started = [id for id, call in calls.items() if call.started]
        await context.apply_trigger(
            "cancel" if outcome == "cancelled" else "finish",
            *(interrupted_result(id, started=call.started) for id, call in calls.items()),
            *watch.collect_leftovers(context.id, started, context.summary.workspace),
        )
        for id in started:
            watch.release_call(context.id, id)
        # The clock is read once, so that the time it took and the time it ended fit together.
        now = context.now
        took = max(now - context.summary.open_since, 0)
        # Hidden before a message to the person is cut out of it.
        ended = context.redactor.redact_fact(
            facts.TurnEnded(outcome=outcome, rounds=context.summary.rounds, ms=took, trouble=trouble)
        )
        await context.apply_trigger("close", ended, *context.turn_end_deliveries(ended), at=now)

    async def _repair_state(self) -> None:
        """A state without a turn is what a crash left behind, and so is half an undo."""
        await undo.finish_undo(self.context, self._agent(self.context.summary).undoing)
        if not self.context.summary.open_turn and self.context.state != "idle":
            await self.context.apply_trigger("mend")

    def _clear_cancellation(self) -> None:
        task = asyncio.current_task()
        while task and task.cancelling():
            task.uncancel()

    def _require_idle(self, what: str) -> None:
        require_idle(self.context.summary, self.context.id, what, busy=self.busy)
