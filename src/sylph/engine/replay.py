"""A recorded session, run again through the real engine: every prompt and every fact must come out as it was."""

import asyncio
import re
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import msgspec
from msgspec.structs import replace

from sylph.core import commands, facts
from sylph.core.errors import BudgetSpent, UserError
from sylph.core.events import Event
from sylph.core.plugin import Plugin, merge
from sylph.core.provider import Provider
from sylph.core.rules import NoRules
from sylph.core.tool import Picture
from sylph.engine import served, transfer
from sylph.engine.divergence import Divergence
from sylph.engine.gateway import Gateway
from sylph.engine.log import Log
from sylph.engine.outside import Happening
from sylph.engine.runtime import Parts, Runtime
from sylph.engine.seal import Record, erased
from sylph.engine.served import ServedClock, ServedPatience, ServedProvider, ServedRoutes, ServedTool, ServedVeil
from sylph.engine.served_courier import ServedCourier
from sylph.engine.served_purse import ServedPurse
from sylph.engine.tape import Tape, TapeLog
from sylph.engine.turn import Limits
from sylph.engine.undo.served import served as files_served

STALL = 10.0
PAGE = 1000

Dialects = Callable[[str], Sequence[Provider]]
"""Which ways of asking there are for a provider of this name: the one whose bytes were sent then is taken."""


class Recording(msgspec.Struct, frozen=True):
    """A session as it was recorded, with the whole outputs its facts refer to."""

    records: list[Record]
    blobs: dict[str, bytes] = {}

    @property
    def session(self) -> str:
        return self.records[0].session


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """What a replay came to. Without a divergence every fact, every prompt and the chain itself are the same."""

    session: str
    events: int
    matched: int
    prompts: int
    other_heads: int = 0
    divergence: Divergence | None = None


def from_log(log: Log, session: str) -> Recording:
    records: list[Record] = []
    while page := log.records(session, after=len(records), limit=PAGE):
        records += page
    blobs = log.query("select digest, bytes from blob where session = ?", (session,))
    return Recording(records, dict(blobs))


def from_lines(lines: Iterable[bytes]) -> Recording:
    """From a `sylph session export`, whose chain is checked."""
    records, blobs = transfer.parse(lines)
    transfer.check(records, blobs)
    return Recording(records, {name: data for _, name, data in blobs})


async def replay(recording: Recording, parts: Parts, dialects: Dialects, *, any_head: bool = False) -> Replayed:
    """Runs `recording` again on a store that is thrown away. Nothing outside of it is touched.

    With `any_head` prompts may begin with another system text and other tools than then; their messages may not differ.
    """
    if gone := [record.seq for record in recording.records if erased(record)]:
        raise UserError(
            f"Session {recording.session} cannot be replayed: something in its fact {gone[0]} was erased.",
            kind="erased",
            details={"facts": " ".join(map(str, gone))},
            next=["`sylph verify` proves that nothing else was changed."],
        )
    with tempfile.TemporaryDirectory(prefix="sylph-replay-") as folder:
        tape = Tape(recording.records, recording.blobs, any_head=any_head)
        player = _Player(tape, parts, dialects, Path(folder))
        try:
            await player.play()
        finally:
            await player.bury()
    return Replayed(
        session=recording.session,
        events=len(tape.events),
        matched=tape.at,
        prompts=sum(isinstance(event.body, facts.ModelRequested) for event in tape.events[: tape.at]),
        other_heads=tape.other_heads,
        divergence=tape.divergence,
    )


class _Player:
    def __init__(self, tape: Tape, parts: Parts, dialects: Dialects, folder: Path) -> None:
        self.tape = tape
        self._session, self._path = tape.records[0].session, folder / "replay.db"
        self._clock = ServedClock(self.tape)
        self._parts = self._served(parts, dialects)
        self._runtime: Runtime | None = None
        self._visits: list[asyncio.Task[str]] = []

    def _served(self, parts: Parts, dialects: Dialects) -> Parts:
        """The same parts in the world of the recording."""
        tape, plugin = self.tape, merge(parts.plugins)
        names = {model.partition("/")[0] for model in _models(tape.events)}
        gateway = Gateway(
            {name: ServedProvider(name, dialects(name), tape) for name in names},
            ServedPatience(tape=tape, failures=len(tape.events) + 1),
            self._clock,
            partial(served.tariff, tape),
            ServedPurse(tape),
        )
        tools = tuple(ServedTool(tool, tape).value for tool in plugin.tools)
        recorded = Plugin(
            name="recorded", tools=tools, sections=plugin.sections, prepare=(partial(served.notes, tape),)
        )
        limits = _limits(parts.limits, tape.events)
        consent = replace(parts.consent, rulebook=NoRules(), places=None, arbiter=partial(served.arbiter, tape))
        return Parts(
            gateway=gateway,
            plugins=(recorded,),
            limits=limits,
            bounds=parts.bounds,
            consent=consent,
            routes=ServedRoutes(tape),
            version=parts.version,
            keeper=files_served(tape),
            courier=ServedCourier(tape),
            veil=ServedVeil(parts.veil, tape),
        )

    async def play(self) -> None:
        while happening := await self.tape.happening(STALL):
            await self._perform(happening)
        if self._runtime and not self.tape.dead and not self.tape.divergence:
            # Nothing may follow what was recorded.
            await self._runtime.settled(self._session)

    async def _perform(self, happening: Happening) -> None:
        runtime = await self._reopen() if happening.fresh or not self._runtime else self._runtime
        match happening.kind:
            case "given":
                records = self.tape.records[happening.seq - 1 : happening.upto]
                await runtime.log.install(records, ())
                self.tape.advance(len(records))
            case "deadline":
                self._clock.expire()
            case "close":
                self._runtime, self.tape.leaving = None, True
                await runtime.close()
                self.tape.dead = True
            case "command":
                await self._visit(runtime, happening)
            case "delivery":
                pass  # The outbox sends by itself, and the session waits for it.

    async def _visit(self, runtime: Runtime, happening: Happening) -> None:
        """Brings a command, and does not wait for what becomes of it."""
        assert happening.command
        if happening.rest:
            await runtime.settled(self._session)
        visit = asyncio.create_task(self._bring(runtime, happening.command))
        self.tape.visitors.add(visit)
        self._visits.append(visit)
        visit.add_done_callback(lambda done: self._refused(done, happening))

    async def _bring(self, runtime: Runtime, command: commands.Command) -> str:
        if isinstance(command, commands.Send) and command.images:
            command = self._with_files(command)
        said = await runtime.send(self._session, command)
        while (more := self.tape.breath()) and more.command:
            await runtime.send(self._session, more.command)
        return said

    def _with_files(self, command: commands.Send) -> commands.Send:
        """A message with its pictures, which are kept beside the log."""
        kept = self.tape.blobs
        files = (Picture(data=kept.get(each.digest, b""), media=each.media, name=each.name) for each in command.images)
        return replace(command, files=tuple(files), images=())

    def _refused(self, visit: "asyncio.Task[str]", happening: Happening) -> None:
        error = None if visit.cancelled() else visit.exception()
        # That a budget is spent is in the log, and was no surprise then.
        if error and not isinstance(error, served.Failed | BudgetSpent) and not self.tape.dead:
            what = f"{type(happening.command).__name__} was refused: {error}"
            self.tape.diverge(happening.seq, self.tape.records[happening.seq - 1], None, what)

    async def _reopen(self) -> Runtime:
        """A new process on the same store."""
        await self.bury()
        log = TapeLog.open(self._path, self.tape.seal)
        log.tape = self.tape
        self.tape.dead = self.tape.leaving = False
        self._runtime = Runtime(log, self._parts, self._clock)
        self._runtime.executor.names = partial(served.names, self.tape)
        return self._runtime

    async def bury(self) -> None:
        """Ends the process where it stands, as a kill does: it writes nothing more."""
        self.tape.bury()
        runtime, self._runtime = self._runtime, None
        if runtime:
            await runtime.close()
        visits, self._visits = self._visits, []
        for visit in visits:
            visit.cancel()
        await asyncio.gather(*visits, return_exceptions=True)


def _models(events: Iterable[Event]) -> set[str]:
    bodies = (event.body for event in events)
    named = facts.SessionCreated, facts.SessionModel, facts.ModelRequested
    return {body.model for body in bodies if isinstance(body, named)}


def _limits(limits: Limits, events: Iterable[Event]) -> Limits:
    """The limits of then, as far as turns ran into them."""
    for event in events:
        trouble = event.body.trouble if isinstance(event.body, facts.TurnEnded) else None
        if trouble is None or trouble.kind != "budget_spent":
            continue
        if rounds := trouble.details.get("rounds"):
            limits = replace(limits, rounds=int(rounds))
        elif seconds := re.search(r"more than (\d+) s", trouble.message):
            limits = replace(limits, seconds=float(seconds[1]))
    return limits
