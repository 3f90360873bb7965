"""Whatever happens to a session, its prompt is the last one with something more; only a compaction begins anew."""

from itertools import pairwise
from pathlib import Path

from tests.engine.stage import bodies

from sylph.core import commands, facts
from sylph.core.messages import Usage
from sylph.core.plugin import ContextNote, Plugin, PrepareContext
from sylph.core.provider import ModelRequest
from sylph.engine.turn.agent_loop import TurnLimits
from sylph.engine.turn.compaction import CompactionLimits
from sylph.features.scout import workspace_notes
from sylph.testing import FakeClock, ScriptedProvider, begin_session, call_tool, play_turn, say, scripted_runtime

DAY = 86_400


class Learner:
    """A faculty that has something new to tell now and then, as a new skill is."""

    told = "You can juggle."

    async def prepare(self, situation: PrepareContext) -> list[ContextNote]:  # noqa: ARG002 - the same in every situation
        return [ContextNote("skills", self.told)]


def grows(before: ModelRequest, after: ModelRequest) -> bool:
    same_head = (before.system, before.tools) == (after.system, after.tools)
    return same_head and after.messages[: len(before.messages)] == before.messages


async def test_a_day_a_mode_a_skill_a_fork_a_restart_only_add(home: Path) -> None:
    clock, learner = FakeClock(), Learner()
    provider = ScriptedProvider([call_tool("nothing"), *(say(f"{number}.") for number in range(7))])
    plugins = [workspace_notes.build_plugin(), Plugin(name="learner", prepare=(learner.prepare,))]
    async with scripted_runtime(home, provider, plugins=plugins, clock=clock) as engine:
        session = await begin_session(engine, home)
        await play_turn(engine, session, "begin")
        clock.advance(DAY)
        await play_turn(engine, session, "a new day")
        await engine.send(session, commands.SetMode(mode="plan"))
        await play_turn(engine, session, "another mode")
        learner.told = "You can juggle and sing."
        await play_turn(engine, session, "a new skill")
    async with scripted_runtime(home, provider, plugins=plugins, clock=clock) as engine:
        await play_turn(engine, session, "a restart")
        fork = await engine.fork_session(session)
        await play_turn(engine, fork, "a fork")
        events = [*await engine.read_events(session), *await engine.read_events(fork)]
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
    limits = TurnLimits(compaction_limits=CompactionLimits(at=0.75, keep=0.0))
    async with scripted_runtime(home, provider, limits=limits) as engine:
        session = await begin_session(engine, home)
        for text in ("talk", "go on", "and on"):
            await play_turn(engine, session, text)
        events = await engine.read_events(session)
    assert len(bodies(events, facts.CompactionMade)) == 1
    asked = [fact for fact in bodies(events, facts.ModelRequested) if fact.role == "main"]
    assert [fact.missed for fact in asked] == ["first", "compaction", ""]
    assert [bool(fact.kept) for fact in asked] == [False, False, True]
