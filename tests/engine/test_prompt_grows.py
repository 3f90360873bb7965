"""Whatever happens to a session, its prompt is the last one with something more; only a compaction begins anew."""

from itertools import pairwise
from pathlib import Path

from tests.engine.stage import bodies

from sylph.core import commands, facts
from sylph.core.messages import Usage
from sylph.core.plugin import Note, Plugin, Situation
from sylph.core.provider import Request
from sylph.engine.compact import Squeeze
from sylph.engine.turn import Limits
from sylph.faculties import scout
from sylph.testing import FakeClock, ScriptedProvider, begin, call, play, runtime, say

DAY = 86_400


class Learner:
    """A faculty that has something new to tell now and then, as a new skill is."""

    told = "You can juggle."

    async def prepare(self, situation: Situation) -> list[Note]:  # noqa: ARG002 - the same in every situation
        return [Note("skills", self.told)]


def grows(before: Request, after: Request) -> bool:
    same_head = (before.system, before.tools) == (after.system, after.tools)
    return same_head and after.messages[: len(before.messages)] == before.messages


async def test_a_day_a_mode_a_skill_a_fork_a_restart_only_add(home: Path) -> None:
    clock, learner = FakeClock(), Learner()
    provider = ScriptedProvider([call("nothing"), *(say(f"{number}.") for number in range(7))])
    plugins = [scout.plugin(), Plugin(name="learner", prepare=(learner.prepare,))]
    async with runtime(home, provider, plugins=plugins, clock=clock) as engine:
        session = await begin(engine, home)
        await play(engine, session, "begin")
        clock.advance(DAY)
        await play(engine, session, "a new day")
        await engine.send(session, commands.SetMode(mode="plan"))
        await play(engine, session, "another mode")
        learner.told = "You can juggle and sing."
        await play(engine, session, "a new skill")
    async with runtime(home, provider, plugins=plugins, clock=clock) as engine:
        await play(engine, session, "a restart")
        fork = await engine.fork(session)
        await play(engine, fork, "a fork")
        events = [*await engine.read(session), *await engine.read(fork)]
    assert all(grows(before, after) for before, after in pairwise(provider.requests))
    topics = [fact.topic for fact in bodies(events, facts.ContextAdded)]
    assert topics.count("date") >= 2
    assert topics.count("skills") >= 2
    missed = [fact.missed for fact in bodies(events, facts.ModelRequested)]
    assert set(missed) == {"first", ""}
    assert {request.family for request in provider.requests} == {session}


async def test_a_compaction_is_one_miss_with_a_name(home: Path) -> None:
    provider = ScriptedProvider(
        [say("long " * 200, usage=Usage(900, 10)), say("They talked at length about long things, and liked it."),
         say("Short."), say("Still short.")],
        window=1000,
    )  # fmt: skip
    limits = Limits(squeeze=Squeeze(at=0.75, keep=0.0))
    async with runtime(home, provider, limits=limits) as engine:
        session = await begin(engine, home)
        for text in ("talk", "go on", "and on"):
            await play(engine, session, text)
        events = await engine.read(session)
    assert len(bodies(events, facts.CompactionMade)) == 1
    asked = [fact for fact in bodies(events, facts.ModelRequested) if fact.role == "main"]
    assert [fact.missed for fact in asked] == ["first", "compaction", ""]
    assert [bool(fact.kept) for fact in asked] == [False, False, True]
