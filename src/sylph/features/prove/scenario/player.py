"""Plays a scenario through the real runtime: the model by script, the person step by step, each step safe to repeat."""

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress

import msgspec
from msgspec.structs import replace

from sylph.core import commands, facts
from sylph.core.errors import UserError
from sylph.core.facts.delivery import NoCourier
from sylph.core.facts.file_change import FilesRestored
from sylph.core.messages import Usage
from sylph.core.permission.path_policy import PathPolicy
from sylph.core.plugin import Plugin
from sylph.core.provider import Chunk, ModelReply, ModelRequest
from sylph.engine.budget.ledger import SharedBudgetLedger
from sylph.engine.commands.runner_client import RUNNER_PROGRAM
from sylph.engine.log.crash_points import ignore_crash_point
from sylph.engine.log.hash_chain import is_erased
from sylph.engine.log.store import EventLog
from sylph.engine.model.gateway import ModelGateway
from sylph.engine.model.retry import RetryPolicy
from sylph.engine.redact.policy import RedactionPolicy as Redaction
from sylph.engine.redact.redactor import Redactor
from sylph.engine.runtime.runtime import NewSession, Runtime, RuntimeParts
from sylph.engine.sandbox import SandboxPolicy
from sylph.engine.turn.agent_loop import TurnLimits
from sylph.engine.undo.workspace_scan import CheckpointPolicy
from sylph.features.notify import channels
from sylph.features.prove.scenario import fake_service, fused_runner
from sylph.features.prove.scenario.fuse import CrashFuse
from sylph.features.prove.scenario.scenarios import (
    NEVER,
    SCENARIOS,
    SECRET,
    CompactStep,
    EraseStep,
    ForkStep,
    ProofScenario,
    RetryStep,
    SayStep,
    UndoStep,
)
from sylph.features.prove.scenario.scratch_folder import ScratchFolder, TrialSetting, read_lines
from sylph.features.scout import workspace_notes
from sylph.net.http_client import HttpClient
from sylph.replay.player import RecordedSession, load_recording, replay_session
from sylph.testing import ScriptedProvider, say
from sylph.tools.toolset import build_workspace_tools

MARK = re.compile(r"⟨(\d+)⟩")
TRIES = 3
# What a budget reckons with: micro-dollars for a million tokens, and the tokens of each answer.
PRICES, ANSWER_USAGE = (1_000_000, 2_000_000), Usage(input=2_000, output=100)
FUSED_KINDS = ("runner", "orphan")


class ScenarioProvider(ScriptedProvider):
    """Finds its place by what it has already said, so that it can go on in another process."""

    def __init__(self, scenario: ProofScenario) -> None:
        super().__init__([], window=scenario.window, prices=PRICES if scenario.budget else None)
        self._script, self._used = scenario.lines, ANSWER_USAGE if scenario.budget else Usage()

    async def stream(self, request: ModelRequest, body: bytes) -> AsyncGenerator[Chunk, None]:
        self._lines = [self._next_reply(request)]
        async for chunk in super().stream(request, body):
            yield chunk

    def _next_reply(self, request: ModelRequest) -> ModelReply:
        spoken = [int(mark) for message in request.messages for mark in MARK.findall(message.text)]
        last = max(spoken, default=-1)
        if not request.tools:
            return say(f"⟨{last}⟩ A summary, as long as a summary has to be to count as one.")
        line = self._script[last + 1] if last + 1 < len(self._script) else say("There is nothing left to do.")
        return replace(line, text=f"⟨{last + 1}⟩ {line.text}", usage=self._used)


class ScenarioPlayer:
    def __init__(self, engine: Runtime, scenario: ProofScenario, place: ScratchFolder) -> None:
        self._engine, self._scenario, self._place = engine, scenario, place
        self._acks = os.open(place.acks, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    async def recover_sessions(self) -> None:
        """What a start after a crash does: finds what was left open, and finishes it."""
        found = self._kept_promises()
        lost = [promise for promise in read_lines(self._place.acks) if promise not in found]
        self._place.lost.write_text("\n".join(read_lines(self._place.lost) + lost))
        for _ in range(TRIES):
            for summary in await self._engine.list_resumable():
                await self._send_and_settle(summary.id, commands.Continue())

    def _kept_promises(self) -> set[str]:
        """All promises that the log keeps."""
        log = self._engine.log
        found = {f"session {session}" for session in log.session_ids()}
        for session in log.session_ids():
            found |= {f"message {fact.key}" for _, _, fact in log.find_facts(session, facts.InputReceived)}
            found |= {f"answer {fact.id}" for _, _, fact in log.find_facts(session, facts.Answered)}
        return found

    async def perform_steps(self) -> None:  # noqa: C901 - one flat table of steps
        """Every step in order. What was done by an earlier process is found done."""
        session = await self._open_session()
        for step in self._scenario.steps:
            match step:
                case SayStep():
                    await self.send_message(session, step)
                case CompactStep():
                    if not self._engine.log.find_facts(session, facts.CompactionMade, "asked for"):
                        await self._engine.send(session, commands.Compact())
                case ForkStep():
                    session = await self._fork_session(session)
                case UndoStep(turn=turn):
                    if not self._engine.log.find_facts(session, FilesRestored):
                        # What a call did whose end nobody saw is not certain: a person would look, and say yes.
                        await self._engine.send(session, commands.Undo(turn=turn, force=True))
                case RetryStep(text=text):
                    if not self._engine.log.find_facts(session, facts.HistoryRewound):
                        await self._send_and_settle(session, commands.Retry(text=text))
                case EraseStep():
                    await self._engine.erase_secret(session, SECRET)
        await self._engine.wait_for_deliveries()

    async def _open_session(self) -> str:
        for summary in await self._engine.list_sessions():
            if not summary.parent:
                return summary.id
        new = NewSession(workspace=self._place.work, model="scripted/model", mode=self._scenario.mode)
        return self._record_ack("session", await self._engine.create_session(new))

    async def _fork_session(self, session: str) -> str:
        for summary in await self._engine.list_sessions():
            if summary.parent == session:
                return summary.id
        return self._record_ack("session", await self._engine.fork_session(session))

    async def send_message(self, session: str, step: SayStep) -> None:
        async with self._with_answers(session):
            await self._engine.send(session, commands.Send(text=step.text, key=step.key))
            self._record_ack("message", step.key)
            for aside in step.asides:
                await self._wait_for_tool(session)
                said = commands.Send(text=f"Also: {aside.key}.", key=aside.key, delivery=aside.delivery)
                await self._engine.send(session, said)
                self._record_ack("message", aside.key)
            await self._disturb_turn(session, step)
            await self._engine.wait_until_idle(session)

    async def _disturb_turn(self, session: str, step: SayStep) -> None:
        """Stops the turn, or holds it up for a moment, if it still runs."""
        if not step.then:
            return
        await self._wait_for_tool(session, step.key)
        with suppress(UserError):
            if step.then == "stop":
                await self._engine.send(session, commands.Interrupt(reason="enough"))
                return
            await self._engine.send(session, commands.Pause())
            await self._wait_until_paused(session)
            await self._engine.send(session, commands.Continue())

    async def _wait_until_paused(self, session: str) -> None:
        after = self._engine.log.head(session).seq
        async for event in self._engine.watch(session, after=max(after - 5, 0)):
            held = isinstance(event.body, facts.StateChanged) and event.body.to == "paused"
            if held or isinstance(event.body, facts.TurnEnded):
                return

    async def _send_and_settle(self, session: str, command: commands.Command) -> None:
        async with self._with_answers(session):
            await self._engine.send(session, command)
            await self._engine.wait_until_idle(session)

    async def _wait_for_tool(self, session: str, key: str = "") -> None:
        """A call runs, of the turn that a message began where it is named."""
        said = next((seq for _, seq, _ in self._engine.log.find_keyed_inputs(key)), 0) if key else 0
        async for event in self._engine.watch(session, after=said):
            if isinstance(event.body, facts.ToolStarted | facts.TurnEnded):
                return

    @asynccontextmanager
    async def _with_answers(self, session: str) -> AsyncGenerator[None, None]:
        """Somebody who answers questions while they come."""
        task = asyncio.create_task(self._answer_questions(session, self._engine.log.head(session).seq))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def _answer_questions(self, session: str, after: int) -> None:
        async for event in self._engine.watch(session, after=after):
            if isinstance(event.body, facts.Asked):
                answer = "blue" if event.body.kind == "question" else "no" if NEVER in event.body.detail else "yes"
                await self._engine.send(session, commands.Answer(id=event.body.id, answer=answer))
                self._record_ack("answer", event.body.id)

    def _record_ack(self, what: str, name: str) -> str:
        """Written the way it would be printed: once it is out, it was promised."""
        os.write(self._acks, f"{what} {name}\n".encode())
        return name


def build_ledger(scenario: ProofScenario, place: ScratchFolder) -> SharedBudgetLedger | None:
    return SharedBudgetLedger(place.store.parent, place.store, scenario.budget) if scenario.budget else None


def build_runtime(
    scenario: ProofScenario,
    setting: TrialSetting,
    place: ScratchFolder,
    fuse: CrashFuse,
    client: HttpClient | None = None,
) -> Runtime:
    """Without a client nothing reaches the person but what is shown."""
    environ = {"PATH": setting.path, "SYLPH_PROVE": str(place.root)}
    parts = RuntimeParts(
        gateway=ModelGateway(
            {"scripted": ScenarioProvider(scenario)}, RetryPolicy(base=0.001), ledger=build_ledger(scenario, place)
        ),
        plugins=(
            Plugin(name="workspace", tools=build_workspace_tools(environ, PathPolicy(home=place.root))),
            workspace_notes.build_plugin(),
            fake_service.build_plugin(setting.port),
        ),
        limits=TurnLimits(rounds=40),
        crash_hook=fuse,
        courier=channels.ConfiguredCourier(
            post=client.post, webhook=f"http://127.0.0.1:{setting.port}/told", on=scenario.on
        )
        if client
        else NoCourier(),
        sandbox=SandboxPolicy(home=place.root / "home", path=setting.path),
        undo=CheckpointPolicy(),
        redactor=Redactor(Redaction(), place.store.parent / "vault"),
        runner=fused_runner.__file__ if setting.kind in FUSED_KINDS or not setting.kind else RUNNER_PROGRAM,
    )
    return Runtime(EventLog.open(place.store, trip=fuse), parts)


async def play_scenario(setting: TrialSetting, place: ScratchFolder, fuse: CrashFuse) -> None:
    scenario = SCENARIOS[setting.scenario]
    client = HttpClient()
    async with build_runtime(scenario, setting, place, fuse, client) as engine:
        actor = ScenarioPlayer(engine, scenario, place)
        if setting.recovering:
            await actor.recover_sessions()
        await actor.perform_steps()
        recordings = [load_recording(engine.log, session) for session in engine.log.session_ids()]
    await client.close()
    if setting.recovering:
        await _replay_recordings(recordings, engine.parts, place)


async def _replay_recordings(recordings: Sequence[RecordedSession], parts: RuntimeParts, place: ScratchFolder) -> None:
    """A session that was killed and recovered comes out of its log as any other does."""
    parts = replace(parts, crash_hook=ignore_crash_point)
    whole = [each for each in recordings if not any(map(is_erased, each.records))]
    found = [await replay_session(each, parts, lambda name: (parts.gateway.providers[name],)) for each in whole]
    told = [f"fact {each.divergence.seq}: {each.divergence.what}" for each in found if each.divergence]
    place.diverged.write_text("\n".join(told))


def run_process(place: ScratchFolder) -> None:
    """The whole life of a process under test."""
    setting = msgspec.json.decode(place.setting.read_bytes(), type=TrialSetting)
    (place.root / "pid").write_text(str(os.getpid()))
    fuse = CrashFuse(setting.kind, setting.at)
    fuse.count_file_events(str(place.root))
    asyncio.run(play_scenario(setting, place, fuse))
    place.counts.write_bytes(msgspec.json.encode(dict(fuse.counts)))
