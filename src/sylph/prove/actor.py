"""Plays a scenario through the real runtime: the model by script, the person step by step, each step safe to repeat."""

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress

import msgspec
from msgspec.structs import replace

from sylph.core import commands, facts
from sylph.core.changes import FilesRestored
from sylph.core.deliveries import Nobody
from sylph.core.errors import UserError
from sylph.core.messages import Usage
from sylph.core.places import Places
from sylph.core.plugin import Plugin
from sylph.core.provider import Chunk, Reply, Request
from sylph.engine.budget.purse import FilePurse
from sylph.engine.gateway import Gateway, Patience
from sylph.engine.log import Log
from sylph.engine.redact.terms import Terms as Redaction
from sylph.engine.redact.veil import Redactor
from sylph.engine.replay import Recording, from_log, replay
from sylph.engine.runs import PROGRAM
from sylph.engine.runtime import NewSession, Parts, Runtime
from sylph.engine.sandbox import Terms
from sylph.engine.seal import erased
from sylph.engine.trip import untripped
from sylph.engine.turn import Limits
from sylph.engine.undo.view import Rules
from sylph.faculties import courier, scout
from sylph.net.http import Client
from sylph.prove import outside, rigged
from sylph.prove.fuse import Fuse
from sylph.prove.place import Place, Setting, lines
from sylph.prove.scenarios import NEVER, SCENARIOS, SECRET, Again, Branch, Condense, Forget, Say, Scenario, TakeBack
from sylph.testing import ScriptedProvider, say
from sylph.tools.all import workspace_tools

MARK = re.compile(r"⟨(\d+)⟩")
TRIES = 3
# What a budget reckons with: micro-dollars for a million tokens, and the tokens of each answer.
PRICES, USED = (1_000_000, 2_000_000), Usage(input=2_000, output=100)
RIGGED = ("runner", "orphan")


class Script(ScriptedProvider):
    """Finds its place by what it has already said, so that it can go on in another process."""

    def __init__(self, scenario: Scenario) -> None:
        super().__init__([], window=scenario.window, prices=PRICES if scenario.budget else None)
        self._script, self._used = scenario.lines, USED if scenario.budget else Usage()

    async def stream(self, request: Request, body: bytes) -> AsyncGenerator[Chunk, None]:
        self._lines = [self._next(request)]
        async for chunk in super().stream(request, body):
            yield chunk

    def _next(self, request: Request) -> Reply:
        spoken = [int(mark) for message in request.messages for mark in MARK.findall(message.text)]
        last = max(spoken, default=-1)
        if not request.tools:
            return say(f"⟨{last}⟩ A summary, as long as a summary has to be to count as one.")
        line = self._script[last + 1] if last + 1 < len(self._script) else say("There is nothing left to do.")
        return replace(line, text=f"⟨{last + 1}⟩ {line.text}", usage=self._used)


class Actor:
    def __init__(self, engine: Runtime, scenario: Scenario, place: Place) -> None:
        self._engine, self._scenario, self._place = engine, scenario, place
        self._acks = os.open(place.acks, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    async def recover(self) -> None:
        """What a start after a crash does: finds what was left open, and finishes it."""
        found = self._found()
        lost = [promise for promise in lines(self._place.acks) if promise not in found]
        self._place.lost.write_text("\n".join(lines(self._place.lost) + lost))
        for _ in range(TRIES):
            for summary in await self._engine.resumable():
                await self._through(summary.id, commands.Continue())

    def _found(self) -> set[str]:
        """All promises that the log keeps."""
        log = self._engine.log
        found = {f"session {session}" for session in log.sessions()}
        for session in log.sessions():
            found |= {f"message {fact.key}" for _, _, fact in log.find(session, facts.InputReceived)}
            found |= {f"answer {fact.id}" for _, _, fact in log.find(session, facts.Answered)}
        return found

    async def perform(self) -> None:  # noqa: C901 - one flat table of steps
        """Every step in order. What was done by an earlier process is found done."""
        session = await self._session()
        for step in self._scenario.steps:
            match step:
                case Say():
                    await self.say(session, step)
                case Condense():
                    if not self._engine.log.find(session, facts.CompactionMade, "asked for"):
                        await self._engine.send(session, commands.Compact())
                case Branch():
                    session = await self._branch(session)
                case TakeBack(turn=turn):
                    if not self._engine.log.find(session, FilesRestored):
                        # What a call did whose end nobody saw is not certain: a person would look, and say yes.
                        await self._engine.send(session, commands.Undo(turn=turn, force=True))
                case Again(text=text):
                    if not self._engine.log.find(session, facts.HistoryRewound):
                        await self._through(session, commands.Retry(text=text))
                case Forget():
                    await self._engine.erase(session, SECRET)
        await self._engine.tried()

    async def _session(self) -> str:
        for summary in await self._engine.sessions():
            if not summary.parent:
                return summary.id
        new = NewSession(workspace=self._place.work, model="scripted/model", mode=self._scenario.mode)
        return self._acked("session", await self._engine.create(new))

    async def _branch(self, session: str) -> str:
        for summary in await self._engine.sessions():
            if summary.parent == session:
                return summary.id
        return self._acked("session", await self._engine.fork(session))

    async def say(self, session: str, step: Say) -> None:
        async with self._answering(session):
            await self._engine.send(session, commands.Send(text=step.text, key=step.key))
            self._acked("message", step.key)
            for aside in step.asides:
                await self._begun(session)
                said = commands.Send(text=f"Also: {aside.key}.", key=aside.key, delivery=aside.delivery)
                await self._engine.send(session, said)
                self._acked("message", aside.key)
            await self._meddle(session, step)
            await self._engine.settled(session)

    async def _meddle(self, session: str, step: Say) -> None:
        """Stops the turn, or holds it up for a moment, if it still runs."""
        if not step.then:
            return
        await self._begun(session, step.key)
        with suppress(UserError):
            if step.then == "stop":
                await self._engine.send(session, commands.Interrupt(reason="enough"))
                return
            await self._engine.send(session, commands.Pause())
            await self._held(session)
            await self._engine.send(session, commands.Continue())

    async def _held(self, session: str) -> None:
        after = self._engine.log.head(session).seq
        async for event in self._engine.watch(session, after=max(after - 5, 0)):
            held = isinstance(event.body, facts.StateChanged) and event.body.to == "paused"
            if held or isinstance(event.body, facts.TurnEnded):
                return

    async def _through(self, session: str, command: commands.Command) -> None:
        async with self._answering(session):
            await self._engine.send(session, command)
            await self._engine.settled(session)

    async def _begun(self, session: str, key: str = "") -> None:
        """A call runs, of the turn that a message began where it is named."""
        said = next((seq for _, seq, _ in self._engine.log.keyed(key)), 0) if key else 0
        async for event in self._engine.watch(session, after=said):
            if isinstance(event.body, facts.ToolStarted | facts.TurnEnded):
                return

    @asynccontextmanager
    async def _answering(self, session: str) -> AsyncGenerator[None, None]:
        """Somebody who answers questions while they come."""
        task = asyncio.create_task(self._answer(session, self._engine.log.head(session).seq))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def _answer(self, session: str, after: int) -> None:
        async for event in self._engine.watch(session, after=after):
            if isinstance(event.body, facts.Asked):
                answer = "blue" if event.body.kind == "question" else "no" if NEVER in event.body.detail else "yes"
                await self._engine.send(session, commands.Answer(id=event.body.id, answer=answer))
                self._acked("answer", event.body.id)

    def _acked(self, what: str, name: str) -> str:
        """Written the way it would be printed: once it is out, it was promised."""
        os.write(self._acks, f"{what} {name}\n".encode())
        return name


def purse_of(scenario: Scenario, place: Place) -> FilePurse | None:
    return FilePurse(place.store.parent, place.store, scenario.budget) if scenario.budget else None


def build(scenario: Scenario, setting: Setting, place: Place, fuse: Fuse, client: Client | None = None) -> Runtime:
    """Without a client nothing reaches the person but what is shown."""
    environ = {"PATH": setting.path, "SYLPH_PROVE": str(place.root)}
    parts = Parts(
        gateway=Gateway({"scripted": Script(scenario)}, Patience(base=0.001), purse=purse_of(scenario, place)),
        plugins=(
            Plugin(name="workspace", tools=workspace_tools(environ, Places(home=place.root))),
            scout.plugin(),
            outside.plugin(setting.port),
        ),
        limits=Limits(rounds=40),
        trip=fuse,
        courier=courier.SetUp(post=client.post, webhook=f"http://127.0.0.1:{setting.port}/told", on=scenario.on)
        if client
        else Nobody(),
        sandbox=Terms(home=place.root / "home", path=setting.path),
        undo=Rules(),
        veil=Redactor(Redaction(), place.store.parent / "vault"),
        runner=rigged.__file__ if setting.kind in RIGGED or not setting.kind else PROGRAM,
    )
    return Runtime(Log.open(place.store, trip=fuse), parts)


async def play(setting: Setting, place: Place, fuse: Fuse) -> None:
    scenario = SCENARIOS[setting.scenario]
    client = Client()
    async with build(scenario, setting, place, fuse, client) as engine:
        actor = Actor(engine, scenario, place)
        if setting.recovering:
            await actor.recover()
        await actor.perform()
        recordings = [from_log(engine.log, session) for session in engine.log.sessions()]
    await client.close()
    if setting.recovering:
        await _again(recordings, engine.parts, place)


async def _again(recordings: Sequence[Recording], parts: Parts, place: Place) -> None:
    """A session that was killed and recovered comes out of its log as any other does."""
    parts = replace(parts, trip=untripped)
    whole = [each for each in recordings if not any(map(erased, each.records))]
    found = [await replay(each, parts, lambda name: (parts.gateway.providers[name],)) for each in whole]
    told = [f"fact {each.divergence.seq}: {each.divergence.what}" for each in found if each.divergence]
    place.diverged.write_text("\n".join(told))


def act(place: Place) -> None:
    """The whole life of a process under test."""
    setting = msgspec.json.decode(place.setting.read_bytes(), type=Setting)
    (place.root / "pid").write_text(str(os.getpid()))
    fuse = Fuse(setting.kind, setting.at)
    fuse.listen(str(place.root))
    asyncio.run(play(setting, place, fuse))
    place.counts.write_bytes(msgspec.json.encode(dict(fuse.counts)))
