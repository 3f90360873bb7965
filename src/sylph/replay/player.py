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
from sylph.core.permission.rules import EmptyRuleStore
from sylph.core.plugin import Plugin, merge_plugins
from sylph.core.provider import Provider
from sylph.core.tool import ImageData
from sylph.engine.log import export
from sylph.engine.log.hash_chain import LogRecord, is_erased
from sylph.engine.log.store import EventLog
from sylph.engine.model.gateway import ModelGateway
from sylph.engine.runtime.runtime import Runtime, RuntimeParts
from sylph.engine.turn.agent_loop import TurnLimits
from sylph.replay import recorded_world
from sylph.replay.divergence import Divergence
from sylph.replay.external_facts import ExternalCause
from sylph.replay.playback import Playback, ReplayLog
from sylph.replay.recorded_budget import RecordedBudgetLedger
from sylph.replay.recorded_courier import RecordedCourier
from sylph.replay.recorded_provider import (
    RecordedClock,
    RecordedProvider,
    RecordedRedactor,
    RecordedRetryPolicy,
    RecordedRoutes,
    recorded_cost,
)
from sylph.replay.recorded_undo import build_recorded_undo as files_served
from sylph.replay.recorded_world import RecordedTool

STALL = 10.0
PAGE = 1000

ReplayDialects = Callable[[str], Sequence[Provider]]
"""Which ways of asking there are for a provider of this name: the one whose bytes were sent then is taken."""


class RecordedSession(msgspec.Struct, frozen=True):
    """A session as it was recorded, with the whole outputs its facts refer to."""

    records: list[LogRecord]
    blobs: dict[str, bytes] = {}

    @property
    def session(self) -> str:
        return self.records[0].session


class ReplayResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a replay came to. Without a divergence every fact, every prompt and the chain itself are the same."""

    session: str
    events: int
    matched: int
    prompts: int
    other_heads: int = 0
    divergence: Divergence | None = None


def load_recording(log: EventLog, session: str) -> RecordedSession:
    records: list[LogRecord] = []
    while page := log.read_records(session, after=len(records), limit=PAGE):
        records += page
    blobs = log.query("select digest, bytes from blob where session = ?", (session,))
    return RecordedSession(records, dict(blobs))


def parse_recording(lines: Iterable[bytes]) -> RecordedSession:
    """From a `sylph session export`, whose chain is checked."""
    records, blobs = export.parse_export(lines)
    export.check_export(records, blobs)
    return RecordedSession(records, {name: data for _, name, data in blobs})


async def replay_session(
    recording: RecordedSession, parts: RuntimeParts, dialects: ReplayDialects, *, any_head: bool = False
) -> ReplayResult:
    """Runs `recording` again on a store that is thrown away. Nothing outside of it is touched.

    With `any_head` prompts may begin with another system text and other tools than then; their messages may not differ.
    """
    if gone := [record.seq for record in recording.records if is_erased(record)]:
        raise UserError(
            f"Session {recording.session} cannot be replayed: something in its fact {gone[0]} was erased.",
            kind="erased",
            details={"facts": " ".join(map(str, gone))},
            next=["`sylph verify` proves that nothing else was changed."],
        )
    with tempfile.TemporaryDirectory(prefix="sylph-replay-") as folder:
        playback = Playback(recording.records, recording.blobs, any_head=any_head)
        player = _Player(playback, parts, dialects, Path(folder))
        try:
            await player.play()
        finally:
            await player.kill_runtime()
    return ReplayResult(
        session=recording.session,
        events=len(playback.events),
        matched=playback.at,
        prompts=sum(isinstance(event.body, facts.ModelRequested) for event in playback.events[: playback.at]),
        other_heads=playback.other_heads,
        divergence=playback.divergence,
    )


class _Player:
    def __init__(self, playback: Playback, parts: RuntimeParts, dialects: ReplayDialects, folder: Path) -> None:
        self.playback = playback
        self._session, self._path = playback.records[0].session, folder / "replay.db"
        self._clock = RecordedClock(self.playback)
        self._parts = self._recorded_parts(parts, dialects)
        self._runtime: Runtime | None = None
        self._visits: list[asyncio.Task[str]] = []

    def _recorded_parts(self, parts: RuntimeParts, dialects: ReplayDialects) -> RuntimeParts:
        """The same parts in the world of the recording."""
        playback, plugin = self.playback, merge_plugins(parts.plugins)
        names = {model.partition("/")[0] for model in _model_names(playback.events)}
        gateway = ModelGateway(
            {name: RecordedProvider(name, dialects(name), playback) for name in names},
            RecordedRetryPolicy(playback=playback, failures=len(playback.events) + 1),
            self._clock,
            partial(recorded_cost, playback),
            RecordedBudgetLedger(playback),
        )
        tools = tuple(RecordedTool(tool, playback).as_tool for tool in plugin.tools)
        recorded = Plugin(
            name="recorded",
            tools=tools,
            sections=plugin.sections,
            prepare=(partial(recorded_world.recorded_notes, playback),),
        )
        limits = _recorded_limits(parts.limits, playback.events)
        consent = replace(
            parts.consent,
            rulebook=EmptyRuleStore(),
            places=None,
            arbiter=partial(recorded_world.recorded_decision, playback),
        )
        return RuntimeParts(
            gateway=gateway,
            plugins=(recorded,),
            limits=limits,
            output_limits=parts.output_limits,
            consent=consent,
            routes=RecordedRoutes(playback),
            version=parts.version,
            keeper=files_served(playback),
            courier=RecordedCourier(playback),
            redactor=RecordedRedactor(parts.redactor, playback),
        )

    async def play(self) -> None:
        while happening := await self.playback.next_cause(STALL):
            await self._perform_cause(happening)
        if self._runtime and not self.playback.dead and not self.playback.divergence:
            # Nothing may follow what was recorded.
            await self._runtime.wait_until_idle(self._session)

    async def _perform_cause(self, happening: ExternalCause) -> None:
        runtime = await self._reopen_runtime() if happening.new_process or not self._runtime else self._runtime
        match happening.kind:
            case "given":
                records = self.playback.records[happening.seq - 1 : happening.upto]
                await runtime.log.install_records(records, ())
                self.playback.advance(len(records))
            case "deadline":
                self._clock.expire_timer()
            case "close":
                self._runtime, self.playback.leaving = None, True
                await runtime.close()
                self.playback.dead = True
            case "command":
                await self._send_command(runtime, happening)
            case "delivery":
                pass  # The outbox sends by itself, and the session waits for it.

    async def _send_command(self, runtime: Runtime, happening: ExternalCause) -> None:
        """Brings a command, and does not wait for what becomes of it."""
        assert happening.command
        if happening.when_idle:
            await runtime.wait_until_idle(self._session)
        visit = asyncio.create_task(self._deliver_command(runtime, happening.command))
        self.playback.visitors.add(visit)
        self._visits.append(visit)
        visit.add_done_callback(lambda done: self._check_refusal(done, happening))

    async def _deliver_command(self, runtime: Runtime, command: commands.Command) -> str:
        if isinstance(command, commands.Send) and command.images:
            command = self._with_files(command)
        said = await runtime.send(self._session, command)
        while (more := self.playback.joined_cause()) and more.command:
            await runtime.send(self._session, more.command)
        return said

    def _with_files(self, command: commands.Send) -> commands.Send:
        """A message with its pictures, which are kept beside the log."""
        kept = self.playback.blobs
        files = (
            ImageData(data=kept.get(each.digest, b""), media=each.media, name=each.name) for each in command.images
        )
        return replace(command, files=tuple(files), images=())

    def _check_refusal(self, visit: "asyncio.Task[str]", happening: ExternalCause) -> None:
        error = None if visit.cancelled() else visit.exception()
        # That a budget is spent is in the log, and was no surprise then.
        if error and not isinstance(error, recorded_world.RecordedFailure | BudgetSpent) and not self.playback.dead:
            what = f"{type(happening.command).__name__} was refused: {error}"
            self.playback.record_divergence(happening.seq, self.playback.records[happening.seq - 1], None, what)

    async def _reopen_runtime(self) -> Runtime:
        """A new process on the same store."""
        await self.kill_runtime()
        log = ReplayLog.open(self._path, self.playback.seal_record)
        log.playback = self.playback
        self.playback.dead = self.playback.leaving = False
        self._runtime = Runtime(log, self._parts, self._clock)
        self._runtime.executor.names = partial(recorded_world.recorded_tool_names, self.playback)
        return self._runtime

    async def kill_runtime(self) -> None:
        """Ends the process where it stands, as a kill does: it writes nothing more."""
        self.playback.kill_process()
        runtime, self._runtime = self._runtime, None
        if runtime:
            await runtime.close()
        visits, self._visits = self._visits, []
        for visit in visits:
            visit.cancel()
        await asyncio.gather(*visits, return_exceptions=True)


def _model_names(events: Iterable[Event]) -> set[str]:
    bodies = (event.body for event in events)
    named = facts.SessionCreated, facts.SessionModel, facts.ModelRequested
    return {body.model for body in bodies if isinstance(body, named)}


def _recorded_limits(limits: TurnLimits, events: Iterable[Event]) -> TurnLimits:
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
