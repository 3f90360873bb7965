"""The door of the engine: open sessions, send them commands, watch their events."""

import asyncio
import os
import shutil
from collections.abc import AsyncGenerator, Iterable
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from sylph.core import commands, facts
from sylph.core.clock import Clock, SystemClock
from sylph.core.errors import ErrorReport, NotFound, StoreError, UserError
from sylph.core.events import Event
from sylph.core.facts.budget import SessionBudget
from sylph.core.facts.delivery import Courier, DeliveryFailed, NoCourier
from sylph.core.facts.file_change import FilesRestored, UndoStarted
from sylph.core.ids import new_id
from sylph.core.permission.types import Mode
from sylph.core.plugin import Plugin, merge_plugins
from sylph.core.signals import SessionPurged
from sylph.engine.calls.executor import CallLimits, ToolExecutor
from sylph.engine.calls.permission import ApprovalSettings
from sylph.engine.commands.jobs import SessionJobs
from sylph.engine.commands.runner_client import RUNNER_PROGRAM, RunnerClient
from sylph.engine.folds import fold, tasks
from sylph.engine.folds.session_list import SessionList
from sylph.engine.folds.session_state import SESSION_FOLD, SessionState
from sylph.engine.folds.snapshot_warmer import SnapshotWarmer
from sylph.engine.folds.tasks import TurnTask
from sylph.engine.log import export, lease, verify
from sylph.engine.log.crash_points import CrashPointHook, ignore_crash_point
from sylph.engine.log.event_bus import EventBus, SessionLiveOutput
from sylph.engine.log.export import ImportResult
from sylph.engine.log.hash_chain import PendingFact
from sylph.engine.log.lease import SessionLease
from sylph.engine.log.store import EventLog
from sylph.engine.log.verify import VerificationResult
from sylph.engine.model.gateway import ModelGateway
from sylph.engine.model.prompt_digest import head_digest
from sylph.engine.model.routes import ConfiguredRoutes, ModelRouter
from sylph.engine.redact.redactor import NoRedaction
from sylph.engine.runtime import idempotency, resume
from sylph.engine.runtime.fork import fork_session
from sylph.engine.runtime.idempotency import KeyedMessage
from sylph.engine.runtime.open_sessions import OpenSessions
from sylph.engine.runtime.resume import needs_resume
from sylph.engine.runtime.resume_result import ResumeResult
from sylph.engine.sandbox import CommandSandbox, SandboxPolicy
from sylph.engine.turn import context_usage as context
from sylph.engine.turn import system_prompt
from sylph.engine.turn.agent_loop import Agent, TurnLimits
from sylph.engine.turn.context_usage import ContextUsage
from sylph.engine.turn.session import Session
from sylph.engine.turn.session_log import SessionServices, load_full_output
from sylph.engine.turn.turn_context import TurnContext
from sylph.engine.undo import change_history, garbage_collection, turn_diff
from sylph.engine.undo.change_history import UndoRequest
from sylph.engine.undo.checkpoints import Checkpoints
from sylph.engine.undo.content_store import FileContentStore
from sylph.engine.undo.turn_diff import FileDiff, TurnDiff
from sylph.engine.undo.undo import UNDO_DISABLED, UndoService, UndoSupport
from sylph.engine.undo.workspace_scan import CheckpointPolicy


class NewSession(Struct, frozen=True, kw_only=True):
    workspace: Path
    model: str
    mode: Mode = "ask"
    title: str = ""
    sandbox: bool = True
    label: str = ""
    budget: int | None = None
    """A cap of its own, in micro-dollars."""
    id: str = ""
    """Given to make it once however often it is asked for: one that is there already is left as it is."""
    by: str = ""
    """Who makes it, where that is somebody who could not add a folder."""


class RuntimeParts(Struct, frozen=True, kw_only=True):
    """What a runtime is made of."""

    gateway: ModelGateway
    plugins: tuple[Plugin, ...] = ()
    limits: TurnLimits = field(default_factory=TurnLimits)
    output_limits: CallLimits = field(default_factory=CallLimits)
    version: str = ""
    reader_capacity: int = 1024
    consent: ApprovalSettings = field(default_factory=ApprovalSettings)
    crash_hook: CrashPointHook = ignore_crash_point
    runner: str = RUNNER_PROGRAM
    courier: Courier = field(default_factory=NoCourier)
    sandbox: SandboxPolicy | None = None
    """How commands are confined; None for a runtime whose commands are not, as tests have it."""
    undo: CheckpointPolicy | None = None
    """What checkpoints cover; None for none."""
    routes: ModelRouter = field(default_factory=ConfiguredRoutes)
    keeper: UndoSupport | None = None
    """Takes the place of checkpoints and undo, in a replay."""
    redactor: NoRedaction = field(default_factory=NoRedaction)
    """Keeps secrets out of all that is written and sent."""


# How often, and after how many seconds, it is looked whether a note about a session has been written.
REST_CHECKS, REST_CHECK_SECONDS = 50, 0.02


class Runtime:
    def __init__(self, log: EventLog, parts: RuntimeParts, clock: Clock | None = None) -> None:
        self._log, self._parts, self.redactor = log, parts, parts.redactor
        log.redactor, parts.gateway.redactor = self.redactor.redact_fact, self.redactor
        self._clock = clock or SystemClock()
        self._leases, self._undo = log.path.parent / "locks", log.path.parent / "undo"
        bus = EventBus(
            lambda session, after, limit: log.read_events(session, after=after, limit=limit),
            size=parts.reader_capacity,
            unfinished=self._live_output,
        )
        self._services = SessionServices(
            log=log,
            bus=bus,
            clock=self._clock,
            take_lease=lambda id: SessionLease.acquire(self._leases, id),
            courier=parts.courier,
            redactor=self.redactor,
        )
        plugin = merge_plugins(parts.plugins)
        sandbox = CommandSandbox(parts.sandbox, log.path.parent) if parts.sandbox else None
        runner = RunnerClient(log.path.parent / "runs", program=parts.runner, sandbox=sandbox, redactor=self.redactor)
        consent = replace(parts.consent, confined=lambda: sandbox is None or sandbox.layer.name != "none")
        self._checkpoints = self._build_checkpoints(runner)
        keeper = parts.keeper or self._build_keeper()
        self.executor = ToolExecutor(plugin.tools, runner, parts.output_limits, self._clock, parts.crash_hook, consent)
        self.executor.watch, self.executor.redactor = keeper.checkpoints, self.redactor
        system = system_prompt.build_system_prompt(section() for section in plugin.sections)
        self._agent = Agent(
            gateway=parts.gateway,
            executor=self.executor,
            plugin=plugin,
            system=system,
            head=head_digest(system, self.executor.specs),
            chat_head=head_digest(system_prompt.CHAT_PROMPT, ()),
            limits=parts.limits,
            undoing=keeper.backend,
            routes=parts.routes,
        )
        self._sessions = OpenSessions(
            log, lambda id: Session(TurnContext(id, self._services), lambda _: self._agent, self._parts.courier)
        )
        self.warmer = SnapshotWarmer(log)
        self.cards = SessionList(log, self._known_state, self.warmer)

    def _build_checkpoints(self, runner: RunnerClient) -> Checkpoints | None:
        if self._parts.undo is None:
            return None
        data = os.path.realpath(os.fsencode(self._log.path.parent))
        return Checkpoints(
            self._undo, replace(self._parts.undo, besides=frozenset({data})), runner, self.redactor.encryption_key
        )

    def _build_keeper(self) -> UndoSupport:
        kept = self._checkpoints
        return UndoSupport(kept, UndoService(self._log, kept, self.redactor.restore_fact)) if kept else UNDO_DISABLED

    async def __aenter__(self) -> "Runtime":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends what runs; open turns stay open in the log. Everything acknowledged is on the disk."""
        await asyncio.gather(*(session.close() for _, session in self._sessions))
        await self._parts.gateway.close()
        self.executor.runner.close()
        if self.sandbox:
            await self.sandbox.close()
        if self._checkpoints:
            self._checkpoints.close()
            if self._checkpoints.taken and garbage_collection.is_sweep_due(self._undo):
                self._sweep_contents()
        self._log.close()

    def _sweep_contents(self) -> None:
        days = self._parts.undo.days if self._parts.undo else CheckpointPolicy().days
        garbage_collection.sweep_contents(
            self._log, self._undo, days=days, now=self._clock.now(), key=self.redactor.encryption_key
        )

    @property
    def pid(self) -> int:
        """The process that runs the turns."""
        return os.getpid()

    @property
    def log(self) -> EventLog:
        return self._log

    @property
    def bus(self) -> EventBus:
        return self._services.bus

    @property
    def sandbox(self) -> CommandSandbox | None:
        """What confines commands."""
        return self.executor.runner.sandbox

    @property
    def parts(self) -> RuntimeParts:
        return self._parts

    def adopt_parts(self, parts: RuntimeParts) -> None:
        """Goes on with other limits, roles and bounds, and other words of consent.

        A turn that runs keeps the limits and roles that it began with. The rest of the parts is for good.
        """
        self._parts, executor = parts, self.executor
        self._agent = replace(self._agent, limits=parts.limits, routes=parts.routes)
        executor.bounds = parts.output_limits
        executor.permits.consent = replace(parts.consent, confined=executor.permits.consent.confined)

    async def create_session(self, new: NewSession) -> str:
        if not new.sandbox and new.mode == "sandbox":
            raise UserError("Mode `sandbox` cannot do without the sandbox.", next=["leave out --sandbox off"])
        if not new.workspace.is_dir():
            raise UserError(f"There is no folder {new.workspace}.", kind="no_workspace", next=["Create it first."])
        id = new.id or new_id()
        if new.id and self._log.head(id).seq:
            return id
        created = facts.SessionCreated(
            workspace=str(new.workspace.resolve()),
            model=new.model,
            mode=new.mode,
            title=new.title,
            sandbox=new.sandbox,
            prompt=system_prompt.PROMPT_CONTRACT,
            sylph=self._parts.version,
            label=new.label,
            by=new.by,
        )
        first = [created, *([SessionBudget(money=new.budget)] if new.budget is not None else [])]
        drafts = [PendingFact(fact, self._clock.now(), "", "user", 0) for fact in first]
        appended = self._log.append(id, drafts, expected=0)
        await asyncio.shield(appended.done)
        for event in appended.events:
            self.bus.publish(event)
        return id

    async def send(self, session: str, command: commands.Command) -> str:
        """Returns when the command is taken; for a message that means: when it is kept, with its id."""
        if self._sessions.get(session) is None:
            await self.warmer.warm_with_history(session)
        said = await self._sessions.open(session).handle_command(command)
        if isinstance(command, commands.Delete):
            # Nobody would look after them any more.
            for job in self.session_jobs(session).all():
                await self.session_jobs(session).stop(job.id)
        return said

    def watch(self, session: str, *, after: int = 0) -> AsyncGenerator[Event, None]:
        return self.bus.watch(session, after=after)

    async def wait_until_idle(self, session: str) -> None:
        if known := self._sessions.get(session):
            await known.wait_until_idle()

    async def wait_for_deliveries(self, seconds: float | None = None, session: str = "") -> None:
        """Returns when nothing is on its way to a person any more, of one session or of all, or that takes too long."""
        mine = [each for id, each in self._sessions if session in ("", id)]
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.gather(*(each.outbox.wait_until_idle() for each in mine))

    async def wait_for_turns(self, seconds: float) -> int:
        """Gives turns that run a moment to end; those that wait for a person are not waited for. How many still run."""
        running = [
            each for _, each in self._sessions if each.busy and each.context.state not in ("awaiting_user", "paused")
        ]
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.gather(*(each.wait_until_idle() for each in running))
        return sum(each.busy for _, each in self._sessions)

    async def wait_for_server(self) -> None:
        """Returns when whoever runs the turns is there."""

    def run_upkeep(self) -> None:
        """What a process that runs for long does now and then: forgets contents that no undo will want any more."""
        if self._checkpoints and garbage_collection.is_sweep_due(self._undo):
            self._sweep_contents()

    def _live_output(self, session: str) -> SessionLiveOutput | None:
        """What a session that works in this process is writing."""
        known = self._sessions.get(session)
        return known.context.live_output if known and known.busy else None

    def _known_state(self, session: str) -> SessionState | None:
        """What this process knows of a session it works on: newer than what the log has on the disk."""
        known = self._sessions.get(session)
        return known.context.summary if known and known.busy else None

    async def context_usage(self, session: str) -> ContextUsage:
        """What the next request to the model would hold."""
        known = self._sessions.get(session)
        book = (
            known.context
            if known and (known.busy or known.context.is_current)
            else TurnContext(session, self._services)
        )
        return context.measure_context(book.summary, book.history, self._agent)

    async def list_sessions(self, *, deleted: bool = False) -> list[SessionState]:
        """All sessions, the latest first; those in the trash only when asked for."""
        await self.warmer.warm_all()
        held = lease.all_holders(self._leases)
        found = fold.load_all(self._log, SESSION_FOLD)
        shown = [
            self._with_live_fields(id, state, held.get(id, 0))
            for id, state in found.items()
            if state.deleted == deleted
        ]
        return sorted(shown, key=lambda summary: (summary.updated, summary.id), reverse=True)

    def peek_state(self, session: str) -> SessionState:
        """What a session is and does right now, only to be looked at; an empty one where there is none."""
        return self._known_state(session) or fold.load_state(self._log, session, SESSION_FOLD)[0]

    def _load_state(self, session: str) -> SessionState:
        state = fold.load_state(self._log, session, SESSION_FOLD)[0]
        return self._with_live_fields(session, state, lease.holder_pid(self._leases, session))

    def _with_live_fields(self, session: str, state: SessionState, pid: int) -> SessionState:
        """A summary with what no log can know: who is at work on it now, and how much its model can take."""
        state.id, state.pid, state.window = session, pid, self._context_window(state.model)
        return state

    def _context_window(self, model: str) -> int:
        try:
            return self._parts.gateway.model_info(model).window or 0
        except UserError:
            return 0

    async def find_session(self, prefix: str) -> SessionState:
        """One session by its id, the beginning of its id, or `last`."""
        if prefix == "last":
            found = await self.list_sessions()
            if not found:
                raise NotFound("There is no session yet.", next=['Start one: `sylph "…"` or `sylph chat`.'])
            return found[0]
        ids = [prefix] if prefix and self._log.head(prefix).seq else self._log.session_ids(prefix) if prefix else []
        if len(ids) == 1:
            await self.warmer.warm_session(ids[0])
            return self._load_state(ids[0])
        if ids:
            raise NotFound(
                f"{prefix!r} is the beginning of {len(ids)} session ids.",
                kind="ambiguous",
                details={"candidates": " ".join(sorted(ids)[:10])},
                next=["Give more of the id."],
            )
        raise NotFound(f"There is no session {prefix!r}.", next=["`sylph session list` shows all of them."])

    async def list_interrupted(self) -> list[SessionState]:
        """Sessions whose turn was open when its process died."""
        return [
            summary
            for summary in await self.list_sessions()
            if (summary.open_turn or summary.queue) and not summary.pid
        ]

    async def list_undelivered(self) -> list[SessionState]:
        """Sessions that hold something for a person which has not arrived."""
        return [summary for summary in await self.list_sessions() if summary.outbox and not summary.pid]

    async def list_resumable(self) -> list[SessionState]:
        """Every session that a process left before it was done."""
        return [one for one in await self.list_sessions() if needs_resume(one) and not one.pid]

    async def resume_all(self, *, at_once: int = 4) -> AsyncGenerator[ResumeResult, None]:
        """Goes on with everything that was left open, a few at a time, and tells what came of each. Nobody is asked
        whether; questions that the turns themselves have wait for an answer, and hold up no other turn."""
        async for resumed in resume.resume_all(self, (await self.list_resumable())[::-1], at_once):
            yield resumed

    def failed_deliveries(self, session: str, *, after: int = 0) -> list[DeliveryFailed]:
        """What could not be delivered to a person, and is not tried again."""
        found = self._log.find_facts(session, DeliveryFailed)
        return [fact for seq, _, fact in found if seq > after and fact.retry_ms is None]

    def holder_pid(self, session: str) -> int:
        """The process that works on the session now; 0 if none does."""
        return lease.holder_pid(self._leases, session)

    def lock_idempotency_key(self, key: str, seconds: float = 60.0) -> AbstractAsyncContextManager[None]:
        """Of all processes only one at a time is inside with the same key."""
        return idempotency.lock_idempotency_key(self._leases, key, seconds)

    def find_keyed_message(self, key: str, session: str = "") -> KeyedMessage | None:
        """The message that was kept under a key, in one session or in any."""
        return idempotency.find_keyed_message(self._log, key, session)

    async def read_events(self, session: str, *, after: int = 0, limit: int = 1000) -> list[Event]:
        return self._log.read_events(session, after=after, limit=limit)

    async def list_tasks(self, session: str = "") -> list[TurnTask]:
        """Turns of one session or of all, the latest first."""
        ids = [session] if session else [summary.id for summary in await self.list_sessions()]
        found = [task for id in ids for task in tasks.read_tasks(self._log, id)]
        return sorted(found, key=lambda task: task.started, reverse=True)

    async def full_output(self, session: str, call: str) -> str | None:
        if not self._log.head(session).seq:
            raise NotFound(f"There is no session {session!r}.", next=["`sylph session list` shows all of them."])
        return load_full_output(self._log, session, call)

    async def fork_session(self, session: str, *, at: int | None = None, id: str = "") -> str:
        """A new session that shares everything up to the fact `at`, under an id and a chain of its own."""
        if id and self._log.head(id).seq:
            return id
        parent = self._load_state((await self.find_session(session)).id)
        at = parent.seq if at is None else at
        if not 1 <= at <= parent.seq:
            raise UserError(f"{at} is not a fact of {parent.id}.", next=[f"Give a number from 1 to {parent.seq}."])
        return await fork_session(self._log, parent, at, self._clock.now(), id)

    async def erase_secret(self, session: str, secret: str, why: str = "") -> int:
        """Takes a secret out of a session for good; its chain still verifies. Returns in how many places it was."""
        found = await self._sessions.open(session).erase_secret(secret, why)
        # What this process still holds of the session knows the secret: it is read anew.
        self._sessions.forget(session)
        found += self.redactor.forget_secret(secret)
        return found + await asyncio.to_thread(
            garbage_collection.drop_secret, self._undo, secret.encode(), self.redactor.encryption_key
        )

    @property
    def _contents(self) -> FileContentStore:
        return FileContentStore(self._undo / "contents", self.redactor.encryption_key)

    async def plan_undo(self, session: str, wish: UndoRequest) -> tuple[UndoStarted, tuple[FileDiff, ...]]:
        """What an undo would do now, and how the files would change. Nothing is done."""
        workspace = self._load_state(session).workspace
        plan = await self._agent.undoing.plan(session, workspace, wish)
        return plan, await asyncio.to_thread(turn_diff.diff_steps, plan.steps, self._contents)

    async def last_undo(self, session: str) -> FilesRestored | None:
        """What the newest undo came to."""
        return next((fact for _, _, fact in self._log.find_facts(session, FilesRestored)), None)

    async def list_changes(self, session: str) -> list[TurnDiff]:
        """What each turn changed in the workspace, with the differences as far as contents are kept."""
        known = change_history.load_history(self._log, session, self.redactor.restore_fact)
        return await asyncio.to_thread(turn_diff.diff_turns, known, self._contents)

    async def purge_session(self, session: str) -> None:
        """Removes a session for good. The only thing in Sylph that forgets."""
        await self._wait_until_rest(session)
        if session not in self._log.all_session_ids():
            raise NotFound(f"There is no session {session!r}.", next=["`sylph session list` shows all of them."])
        self._sessions.forget(session)
        await self._log.purge_session(session)
        self.bus.publish(Event(session=session, seq=0, ts=self._clock.now(), body=SessionPurged()))
        await self.session_jobs(session).purge()
        await asyncio.to_thread(shutil.rmtree, self.executor.private_folder(session), ignore_errors=True)
        garbage_collection.forget_session(self._undo, session)
        self._sweep_contents()

    async def _wait_until_rest(self, session: str) -> None:
        """Returns when nothing works on a session. What is only being noted is waited for, a turn is not."""
        for _ in range(REST_CHECKS):
            known = self._sessions.get(session)
            if not (known and known.busy) and not lease.holder_pid(self._leases, session):
                return
            if self.peek_state(session).open_turn:
                break
            await asyncio.sleep(REST_CHECK_SECONDS)
        raise UserError("The session is at work.", kind="wrong_state", next=["Stop it first."])

    def session_jobs(self, session: str) -> SessionJobs:
        """The commands that a session has started in the background."""
        return SessionJobs(self.executor.runner, session)

    def export_session(self, session: str) -> AsyncGenerator[bytes, None]:
        return export.export_session(self._log, session)

    async def import_session(self, lines: Iterable[bytes], *, new_id: bool = False, id: str = "") -> ImportResult:
        return await export.import_session(self._log, lines, fresh=new_id, id=id)

    async def verify_sessions(self, session: str = "") -> list[VerificationResult]:
        ids = [session] if session else self._log.all_session_ids()
        return [verify.verify_session(self._log, id) for id in ids]

    async def check_store(self) -> list[ErrorReport]:
        """What is wrong with the store, as far as can be seen."""
        problems = self._log.check_integrity()
        try:
            for id in self._log.session_ids():
                problems += verify.find_damaged(self._log, id)
        except StoreError as error:
            problems.append(error.trouble)
        return problems
