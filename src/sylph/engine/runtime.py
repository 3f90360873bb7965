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
from sylph.core.budget import SessionBudget
from sylph.core.changes import FilesRestored, UndoStarted
from sylph.core.clock import Clock, SystemClock
from sylph.core.deliveries import Courier, DeliveryFailed, Nobody
from sylph.core.errors import NotFound, StoreError, Trouble, UserError
from sylph.core.events import Event
from sylph.core.facts import Mode
from sylph.core.ids import new_id
from sylph.core.plugin import Plugin, merge
from sylph.core.signals import SessionPurged
from sylph.engine import context, fold, gateway, keyed, lease, prompt, recovery, tasks, transfer, verify
from sylph.engine.book import Shelf, whole
from sylph.engine.bus import Bus, Now
from sylph.engine.cards import Cards
from sylph.engine.context import Context
from sylph.engine.executor import Bounds, Executor
from sylph.engine.floor import Floor
from sylph.engine.gateway import Gateway
from sylph.engine.jobs import SessionJobs
from sylph.engine.keyed import Message
from sylph.engine.lease import Lease
from sylph.engine.log import Log
from sylph.engine.opened import Opened
from sylph.engine.permit import Consent
from sylph.engine.recovery import left_open
from sylph.engine.redact.veil import Veil
from sylph.engine.resumed import Resumed
from sylph.engine.routes import Routes, Routing
from sylph.engine.runs import PROGRAM, Runner
from sylph.engine.sandbox import Sandbox, Terms
from sylph.engine.seal import Draft
from sylph.engine.session import Session
from sylph.engine.summary import SUMMARY, Summary
from sylph.engine.tasks import Task
from sylph.engine.transfer import Imported
from sylph.engine.trip import Trip, untripped
from sylph.engine.turn import Hands, Limits
from sylph.engine.undo import differences, ledger, sweep
from sylph.engine.undo.checkpoints import Checkpoints
from sylph.engine.undo.contents import Contents
from sylph.engine.undo.differences import FileDiff, TurnDiff
from sylph.engine.undo.ledger import Wish
from sylph.engine.undo.undo import NOTHING_KEPT, Keeper, Restorer
from sylph.engine.undo.view import Rules
from sylph.engine.verify import Verified
from sylph.engine.warm import Warmer


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


class Parts(Struct, frozen=True, kw_only=True):
    """What a runtime is made of."""

    gateway: Gateway
    plugins: tuple[Plugin, ...] = ()
    limits: Limits = field(default_factory=Limits)
    bounds: Bounds = field(default_factory=Bounds)
    version: str = ""
    inbox: int = 1024
    consent: Consent = field(default_factory=Consent)
    trip: Trip = untripped
    runner: str = PROGRAM
    courier: Courier = field(default_factory=Nobody)
    sandbox: Terms | None = None
    """How commands are confined; None for a runtime whose commands are not, as tests have it."""
    undo: Rules | None = None
    """What checkpoints cover; None for none."""
    routes: Routing = field(default_factory=Routes)
    keeper: Keeper | None = None
    """Takes the place of checkpoints and undo, in a replay."""
    veil: Veil = field(default_factory=Veil)
    """Keeps secrets out of all that is written and sent."""


# How often, and after how many seconds, it is looked whether a note about a session has been written.
NOTED, NOTING = 50, 0.02


class Runtime:
    def __init__(self, log: Log, parts: Parts, clock: Clock | None = None) -> None:
        self._log, self._parts, self.veil = log, parts, parts.veil
        log.veil, parts.gateway.veil = self.veil.fact, self.veil
        self._clock = clock or SystemClock()
        self._leases, self._undo = log.path.parent / "locks", log.path.parent / "undo"
        bus = Bus(
            lambda session, after, limit: log.read(session, after=after, limit=limit),
            size=parts.inbox,
            unfinished=self._written,
        )
        self._shelf = Shelf(
            log=log,
            bus=bus,
            clock=self._clock,
            lease=lambda id: Lease.take(self._leases, id),
            courier=parts.courier,
            veil=self.veil,
        )
        plugin = merge(parts.plugins)
        sandbox = Sandbox(parts.sandbox, log.path.parent) if parts.sandbox else None
        runner = Runner(log.path.parent / "runs", program=parts.runner, sandbox=sandbox, veil=self.veil)
        consent = replace(parts.consent, confined=lambda: sandbox is None or sandbox.layer.name != "none")
        self._checkpoints = self._checkpointing(runner)
        keeper = parts.keeper or self._keeping()
        self.executor = Executor(plugin.tools, runner, parts.bounds, self._clock, parts.trip, consent)
        self.executor.watch, self.executor.veil = keeper.watch, self.veil
        system = prompt.head(section() for section in plugin.sections)
        self._hands = Hands(
            gateway=parts.gateway,
            executor=self.executor,
            plugin=plugin,
            system=system,
            head=gateway.head(system, self.executor.specs),
            chat_head=gateway.head(prompt.CHAT, ()),
            limits=parts.limits,
            undoing=keeper.undoing,
            routes=parts.routes,
        )
        self._sessions = Opened(
            log, lambda id: Session(Floor(id, self._shelf), lambda _: self._hands, self._parts.courier)
        )
        self.warmer = Warmer(log)
        self.cards = Cards(log, self._known, self.warmer)

    def _checkpointing(self, runner: Runner) -> Checkpoints | None:
        if self._parts.undo is None:
            return None
        data = os.path.realpath(os.fsencode(self._log.path.parent))
        return Checkpoints(self._undo, replace(self._parts.undo, besides=frozenset({data})), runner, self.veil.key)

    def _keeping(self) -> Keeper:
        kept = self._checkpoints
        return Keeper(kept, Restorer(self._log, kept, self.veil.unveiled)) if kept else NOTHING_KEPT

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
            if self._checkpoints.taken and sweep.due(self._undo):
                self._sweep()
        self._log.close()

    def _sweep(self) -> None:
        days = self._parts.undo.days if self._parts.undo else Rules().days
        sweep.sweep(self._log, self._undo, days=days, now=self._clock.now(), key=self.veil.key)

    @property
    def pid(self) -> int:
        """The process that runs the turns."""
        return os.getpid()

    @property
    def log(self) -> Log:
        return self._log

    @property
    def bus(self) -> Bus:
        return self._shelf.bus

    @property
    def sandbox(self) -> Sandbox | None:
        """What confines commands."""
        return self.executor.runner.sandbox

    @property
    def parts(self) -> Parts:
        return self._parts

    def adopt(self, parts: Parts) -> None:
        """Goes on with other limits, roles and bounds, and other words of consent.

        A turn that runs keeps the limits and roles that it began with. The rest of the parts is for good.
        """
        self._parts, executor = parts, self.executor
        self._hands = replace(self._hands, limits=parts.limits, routes=parts.routes)
        executor.bounds = parts.bounds
        executor.permits.consent = replace(parts.consent, confined=executor.permits.consent.confined)

    async def create(self, new: NewSession) -> str:
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
            prompt=prompt.CONTRACT,
            sylph=self._parts.version,
            label=new.label,
            by=new.by,
        )
        first = [created, *([SessionBudget(money=new.budget)] if new.budget is not None else [])]
        drafts = [Draft(fact, self._clock.now(), "", "user", 0) for fact in first]
        appended = self._log.append(id, drafts, expected=0)
        await asyncio.shield(appended.done)
        for event in appended.events:
            self.bus.publish(event)
        return id

    async def send(self, session: str, command: commands.Command) -> str:
        """Returns when the command is taken; for a message that means: when it is kept, with its id."""
        if self._sessions.get(session) is None:
            await self.warmer.both(session)
        said = await self._sessions.open(session).handle(command)
        if isinstance(command, commands.Delete):
            # Nobody would look after them any more.
            for job in self.jobs(session).all():
                await self.jobs(session).stop(job.id)
        return said

    def watch(self, session: str, *, after: int = 0) -> AsyncGenerator[Event, None]:
        return self.bus.watch(session, after=after)

    async def settled(self, session: str) -> None:
        if known := self._sessions.get(session):
            await known.settled()

    async def tried(self, seconds: float | None = None, session: str = "") -> None:
        """Returns when nothing is on its way to a person any more, of one session or of all, or that takes too long."""
        mine = [each for id, each in self._sessions if session in ("", id)]
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.gather(*(each.outbox.tried() for each in mine))

    async def rest(self, seconds: float) -> int:
        """Gives turns that run a moment to end; those that wait for a person are not waited for. How many still run."""
        running = [
            each for _, each in self._sessions if each.busy and each.floor.state not in ("awaiting_user", "paused")
        ]
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.gather(*(each.settled() for each in running))
        return sum(each.busy for _, each in self._sessions)

    async def back(self) -> None:
        """Returns when whoever runs the turns is there."""

    def tidy(self) -> None:
        """What a process that runs for long does now and then: forgets contents that no undo will want any more."""
        if self._checkpoints and sweep.due(self._undo):
            self._sweep()

    def _written(self, session: str) -> Now | None:
        """What a session that works in this process is writing."""
        known = self._sessions.get(session)
        return known.floor.now_written if known and known.busy else None

    def _known(self, session: str) -> Summary | None:
        """What this process knows of a session it works on: newer than what the log has on the disk."""
        known = self._sessions.get(session)
        return known.floor.summary if known and known.busy else None

    async def context(self, session: str) -> Context:
        """What the next request to the model would hold."""
        known = self._sessions.get(session)
        book = known.floor if known and (known.busy or known.floor.current) else Floor(session, self._shelf)
        return context.context(book.summary, book.history, self._hands)

    async def sessions(self, *, deleted: bool = False) -> list[Summary]:
        """All sessions, the latest first; those in the trash only when asked for."""
        await self.warmer.all()
        held = lease.holders(self._leases)
        found = fold.load_all(self._log, SUMMARY)
        shown = [self._live(id, state, held.get(id, 0)) for id, state in found.items() if state.deleted == deleted]
        return sorted(shown, key=lambda summary: (summary.updated, summary.id), reverse=True)

    def glance(self, session: str) -> Summary:
        """What a session is and does right now, only to be looked at; an empty one where there is none."""
        return self._known(session) or fold.load(self._log, session, SUMMARY)[0]

    def _summary(self, session: str) -> Summary:
        state = fold.load(self._log, session, SUMMARY)[0]
        return self._live(session, state, lease.holder(self._leases, session))

    def _live(self, session: str, state: Summary, pid: int) -> Summary:
        """A summary with what no log can know: who is at work on it now, and how much its model can take."""
        state.id, state.pid, state.window = session, pid, self._window(state.model)
        return state

    def _window(self, model: str) -> int:
        try:
            return self._parts.gateway.info(model).window or 0
        except UserError:
            return 0

    async def find(self, prefix: str) -> Summary:
        """One session by its id, the beginning of its id, or `last`."""
        if prefix == "last":
            found = await self.sessions()
            if not found:
                raise NotFound("There is no session yet.", next=['Start one: `sylph "…"` or `sylph chat`.'])
            return found[0]
        ids = [prefix] if prefix and self._log.head(prefix).seq else self._log.sessions(prefix) if prefix else []
        if len(ids) == 1:
            await self.warmer.one(ids[0])
            return self._summary(ids[0])
        if ids:
            raise NotFound(
                f"{prefix!r} is the beginning of {len(ids)} session ids.",
                kind="ambiguous",
                details={"candidates": " ".join(sorted(ids)[:10])},
                next=["Give more of the id."],
            )
        raise NotFound(f"There is no session {prefix!r}.", next=["`sylph session list` shows all of them."])

    async def interrupted(self) -> list[Summary]:
        """Sessions whose turn was open when its process died."""
        return [
            summary for summary in await self.sessions() if (summary.open_turn or summary.queue) and not summary.pid
        ]

    async def undelivered(self) -> list[Summary]:
        """Sessions that hold something for a person which has not arrived."""
        return [summary for summary in await self.sessions() if summary.outbox and not summary.pid]

    async def resumable(self) -> list[Summary]:
        """Every session that a process left before it was done."""
        return [one for one in await self.sessions() if left_open(one) and not one.pid]

    async def resume_all(self, *, at_once: int = 4) -> AsyncGenerator[Resumed, None]:
        """Goes on with everything that was left open, a few at a time, and tells what came of each. Nobody is asked
        whether; questions that the turns themselves have wait for an answer, and hold up no other turn."""
        async for resumed in recovery.resume_all(self, (await self.resumable())[::-1], at_once):
            yield resumed

    def given_up(self, session: str, *, after: int = 0) -> list[DeliveryFailed]:
        """What could not be delivered to a person, and is not tried again."""
        found = self._log.find(session, DeliveryFailed)
        return [fact for seq, _, fact in found if seq > after and fact.retry_ms is None]

    def holder(self, session: str) -> int:
        """The process that works on the session now; 0 if none does."""
        return lease.holder(self._leases, session)

    def sole(self, key: str, seconds: float = 60.0) -> AbstractAsyncContextManager[None]:
        """Of all processes only one at a time is inside with the same key."""
        return keyed.sole(self._leases, key, seconds)

    def message(self, key: str, session: str = "") -> Message | None:
        """The message that was kept under a key, in one session or in any."""
        return keyed.message(self._log, key, session)

    async def read(self, session: str, *, after: int = 0, limit: int = 1000) -> list[Event]:
        return self._log.read(session, after=after, limit=limit)

    async def tasks(self, session: str = "") -> list[Task]:
        """Turns of one session or of all, the latest first."""
        ids = [session] if session else [summary.id for summary in await self.sessions()]
        found = [task for id in ids for task in tasks.read(self._log, id)]
        return sorted(found, key=lambda task: task.started, reverse=True)

    async def whole(self, session: str, call: str) -> str | None:
        if not self._log.head(session).seq:
            raise NotFound(f"There is no session {session!r}.", next=["`sylph session list` shows all of them."])
        return whole(self._log, session, call)

    async def fork(self, session: str, *, at: int | None = None, id: str = "") -> str:
        """A new session that shares everything up to the fact `at`, under an id and a chain of its own."""
        if id and self._log.head(id).seq:
            return id
        parent = self._summary((await self.find(session)).id)
        at = parent.seq if at is None else at
        if not 1 <= at <= parent.seq:
            raise UserError(f"{at} is not a fact of {parent.id}.", next=[f"Give a number from 1 to {parent.seq}."])
        return await transfer.fork(self._log, parent, at, self._clock.now(), id)

    async def erase(self, session: str, secret: str, why: str = "") -> int:
        """Takes a secret out of a session for good; its chain still verifies. Returns in how many places it was."""
        found = await self._sessions.open(session).erase(secret, why)
        # What this process still holds of the session knows the secret: it is read anew.
        self._sessions.forget(session)
        found += self.veil.forget(secret)
        return found + await asyncio.to_thread(sweep.drop, self._undo, secret.encode(), self.veil.key)

    @property
    def _contents(self) -> Contents:
        return Contents(self._undo / "contents", self.veil.key)

    async def plan_undo(self, session: str, wish: Wish) -> tuple[UndoStarted, tuple[FileDiff, ...]]:
        """What an undo would do now, and how the files would change. Nothing is done."""
        workspace = self._summary(session).workspace
        plan = await self._hands.undoing.plan(session, workspace, wish)
        return plan, await asyncio.to_thread(differences.of_steps, plan.steps, self._contents)

    async def last_undo(self, session: str) -> FilesRestored | None:
        """What the newest undo came to."""
        return next((fact for _, _, fact in self._log.find(session, FilesRestored)), None)

    async def changes(self, session: str) -> list[TurnDiff]:
        """What each turn changed in the workspace, with the differences as far as contents are kept."""
        known = ledger.read(self._log, session, self.veil.unveiled)
        return await asyncio.to_thread(differences.turns, known, self._contents)

    async def purge(self, session: str) -> None:
        """Removes a session for good. The only thing in Sylph that forgets."""
        await self._rested(session)
        if session not in self._log.traces():
            raise NotFound(f"There is no session {session!r}.", next=["`sylph session list` shows all of them."])
        self._sessions.forget(session)
        await self._log.purge(session)
        self.bus.publish(Event(session=session, seq=0, ts=self._clock.now(), body=SessionPurged()))
        await self.jobs(session).purge()
        await asyncio.to_thread(shutil.rmtree, self.executor.private(session), ignore_errors=True)
        sweep.forget(self._undo, session)
        self._sweep()

    async def _rested(self, session: str) -> None:
        """Returns when nothing works on a session. What is only being noted is waited for, a turn is not."""
        for _ in range(NOTED):
            known = self._sessions.get(session)
            if not (known and known.busy) and not lease.holder(self._leases, session):
                return
            if self.glance(session).open_turn:
                break
            await asyncio.sleep(NOTING)
        raise UserError("The session is at work.", kind="wrong_state", next=["Stop it first."])

    def jobs(self, session: str) -> SessionJobs:
        """The commands that a session has started in the background."""
        return SessionJobs(self.executor.runner, session)

    def export(self, session: str) -> AsyncGenerator[bytes, None]:
        return transfer.export(self._log, session)

    async def import_(self, lines: Iterable[bytes], *, new_id: bool = False, id: str = "") -> Imported:
        return await transfer.import_(self._log, lines, fresh=new_id, id=id)

    async def verify(self, session: str = "") -> list[Verified]:
        ids = [session] if session else self._log.traces()
        return [verify.verify(self._log, id) for id in ids]

    async def checkup(self) -> list[Trouble]:
        """What is wrong with the store, as far as can be seen."""
        problems = self._log.integrity()
        try:
            for id in self._log.sessions():
                problems += verify.damaged(self._log, id)
        except StoreError as error:
            problems.append(error.trouble)
        return problems
