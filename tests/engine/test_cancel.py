"""A turn can be ended at any point, at once, and exactly once."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest
from tests.engine.stage import SILENCE, Props, Stuck, bodies, ended, outcomes, results, said, seen, state, story
from tests.patience import PATIENCE

from sylph.core import commands, facts, signals
from sylph.core.errors import ProviderError, UserError
from sylph.core.plugin import ContextNote, Plugin, PrepareContext
from sylph.engine.log.store import EventLog
from sylph.engine.model.gateway import ModelGateway
from sylph.engine.model.retry import RetryPolicy
from sylph.engine.runtime.runtime import Runtime, RuntimeParts
from sylph.engine.turn.agent_loop import CompactionLimits, TurnLimits
from sylph.testing import begin_session, call_tool, call_tools, say, scripted_runtime

Reach = Callable[[], Awaitable[object]]


class Set:
    """Everything that can be waited for in a turn, and how to know that the turn waits for it."""

    def __init__(self, home: Path) -> None:
        self.home, self.props = home, Props()
        self.preparing, self.ready = asyncio.Event(), asyncio.Event()
        self.ready.set()

    async def prepare(self, _: PrepareContext) -> list[ContextNote]:
        self.preparing.set()
        await self.ready.wait()
        return []

    def engine(self, model: Stuck, *, base: float = 0.001) -> Runtime:
        parts = RuntimeParts(
            gateway=ModelGateway({"scripted": model}, RetryPolicy(base=base)),
            plugins=(Plugin(name="x", tools=self.props.tools, prepare=(self.prepare,)),),
            limits=TurnLimits(compaction_limits=CompactionLimits(at=0.5, keep=0.1)),
        )
        return Runtime(EventLog.open(self.home / "data" / "sylph.db"), parts)


async def _interrupted(engine: Runtime, session: str, reach: Reach) -> list[str]:
    """Sends a message, stops the turn where `reach` says, and returns how it and the next turn ended."""
    await engine.send(session, commands.Send(text="go"))
    await reach()
    await engine.send(session, commands.Interrupt(reason="enough"))
    await asyncio.wait_for(engine.wait_until_idle(session), PATIENCE)
    assert (await engine.find_session(session)).pid == 0
    return outcomes(await said(engine, session, "go on"))


async def test_while_the_context_is_prepared(home: Path) -> None:
    stage = Set(home)
    stage.ready.clear()
    async with stage.engine(Stuck([say("Fine.")])) as engine:
        session = await begin_session(engine, home)

        async def reach() -> None:
            await stage.preparing.wait()
            stage.ready.set()

        assert await _interrupted(engine, session, reach) == ["cancelled", "finished"]


async def test_the_moment_it_was_asked_for(home: Path) -> None:
    async with scripted_runtime(home, [say("Fine."), say("Fine.")]) as engine:
        session = await begin_session(engine, home)

        async def reach() -> None:
            pass

        assert await _interrupted(engine, session, reach) == ["cancelled", "finished"]


@pytest.mark.parametrize("words", ["", "I was about to"])
async def test_while_the_model_is_silent(home: Path, words: str) -> None:
    stage, model = Set(home), Stuck([SILENCE, say("Fine.")], words=words)
    async with stage.engine(model) as engine:
        session = await begin_session(engine, home)
        assert await _interrupted(engine, session, lambda: model.silent.wait()) == ["cancelled", "finished"]


async def test_between_two_tries(home: Path) -> None:
    model = Stuck([ProviderError("overloaded", "Too much to do."), say("Fine.")])
    async with Set(home).engine(model, base=100) as engine:
        session = await begin_session(engine, home)
        ends = await _interrupted(engine, session, lambda: seen(engine, session, facts.ModelFailed))
    assert ends == ["cancelled", "finished"]


async def test_while_calls_run(home: Path) -> None:
    stage = Set(home)
    model = Stuck([call_tools(("hold", {"text": "a"}), ("act", {"text": "b"})), say("Fine.")])
    async with stage.engine(model) as engine:
        session = await begin_session(engine, home)
        assert await _interrupted(engine, session, lambda: stage.props.began.wait()) == ["cancelled", "finished"]
        first, second = results(await story(engine, session))
    assert "may have had some effect" in first.output
    assert "not started" in second.output


async def test_while_reads_run_side_by_side(home: Path) -> None:
    stage, model = Set(home), Stuck([call_tools(("peek", {}), ("peek", {}), ("peek", {})), say("Fine.")])
    async with stage.engine(model) as engine:
        session = await begin_session(engine, home)
        assert await _interrupted(engine, session, lambda: stage.props.began.wait()) == ["cancelled", "finished"]
        assert len(results(await story(engine, session))) == 3


@pytest.mark.parametrize("tool", ["act", "ask"])
async def test_while_a_person_is_asked(home: Path, tool: str) -> None:
    async with Set(home).engine(Stuck([call_tool(tool), say("Fine.")])) as engine:
        session = await begin_session(engine, home, mode="ask")
        ends = await _interrupted(engine, session, lambda: state(engine, session, "awaiting_user"))
        assert (await engine.find_session(session)).asked == {}
    assert ends == ["cancelled", "finished"]


async def test_while_it_is_paused(home: Path) -> None:
    stage = Set(home)
    async with stage.engine(Stuck([call_tool("hold"), say("Fine.")])) as engine:
        session = await begin_session(engine, home)

        async def reach() -> None:
            await stage.props.began.wait()
            await engine.send(session, commands.Pause())
            stage.props.go.set()
            await state(engine, session, "paused")

        assert await _interrupted(engine, session, reach) == ["cancelled", "finished"]


async def test_while_the_window_is_compacted(home: Path) -> None:
    about = say("It was about words. " * 5)
    model = Stuck([say("word " * 400), SILENCE, about, about, say("Fine.")], window=1_000)
    async with Set(home).engine(model) as engine:
        session = await begin_session(engine, home)
        await said(engine, session, "tell")
        ends = await _interrupted(engine, session, lambda: model.silent.wait())
        assert (await engine.find_session(session)).state == "idle"
    assert ends == ["finished", "cancelled", "finished"]


async def test_a_compaction_that_was_asked_for_can_be_stopped_too(home: Path) -> None:
    model = Stuck([say("word " * 300)] * 2 + [SILENCE, say("Fine.")])
    async with Set(home).engine(model) as engine:
        session = await begin_session(engine, home)
        await said(engine, session, "tell")
        await said(engine, session, "more")
        compacting = asyncio.create_task(engine.send(session, commands.Compact()))
        await model.silent.wait()
        await engine.send(session, commands.Send(text="are you there?"))
        await engine.send(session, commands.Interrupt(reason="enough"))
        await compacting
        events = await story(engine, session)
    assert [fact.trouble.message for fact in bodies(events, facts.CompactionFailed)] == ["enough"]
    assert outcomes(events) == ["finished"] * 3


async def test_twice_is_once(home: Path) -> None:
    stage = Set(home)
    async with stage.engine(Stuck([call_tool("hold")])) as engine:
        session = await begin_session(engine, home)
        await engine.send(session, commands.Send(text="go"))
        await stage.props.began.wait()
        for _ in range(4):
            await engine.send(session, commands.Interrupt(reason="stop!"))
        end = ended(await story(engine, session))
    assert (end.outcome, end.trouble and end.trouble.message) == ("cancelled", "stop!")


async def test_once_more_while_it_ends(home: Path) -> None:
    stage = Set(home)
    async with stage.engine(Stuck([call_tool("hold")])) as engine:
        session = await begin_session(engine, home)
        await engine.send(session, commands.Send(text="go"))
        await stage.props.began.wait()
        await engine.send(session, commands.Interrupt())
        await state(engine, session, "cancelling")
        with suppress(UserError):
            await engine.send(session, commands.Interrupt())
        assert outcomes(await story(engine, session)) == ["cancelled"]


async def test_at_every_fact_of_a_turn(home: Path) -> None:
    script = [call_tools(("look", {"path": "a"}), ("act", {"text": "b"}), ("put", {"path": "c"})), say("Done.")]
    for stop in range(1, 20):
        stage = Set(home)
        async with stage.engine(Stuck([*script])) as engine:
            session = await begin_session(engine, home)
            await engine.send(session, commands.Send(text="go"))
            async for event in engine.watch(session):
                if event.seq > stop:
                    break
            with suppress(UserError):
                await engine.send(session, commands.Interrupt())
            ends = outcomes(await story(engine, session))
            assert ends in (["cancelled"], ["finished"])


async def test_what_was_shown_of_a_broken_answer_stays_with_the_failure(home: Path) -> None:
    model = Stuck([SILENCE], words="I was about to")
    parts = RuntimeParts(gateway=ModelGateway({"scripted": model}, RetryPolicy(idle_seconds=0.02)))
    async with Runtime(EventLog.open(home / "data" / "sylph.db"), parts) as engine:
        session = await begin_session(engine, home)
        shown = asyncio.create_task(seen(engine, session, signals.TextDelta))
        events = await said(engine, session, "go")
    assert (await shown).text == bodies(events, facts.ModelFailed)[0].partial == "I was about to"


async def test_what_steered_it_and_was_not_heard_is_withdrawn(home: Path) -> None:
    """Stopped is stopped: a message to the turn that is no more does not begin another one."""
    stage, model = Set(home), Stuck([SILENCE, say("Afterwards.")])
    async with stage.engine(model) as engine:
        session = await begin_session(engine, home)
        await engine.send(session, commands.Send(text="go"))
        await model.silent.wait()
        unheard = await engine.send(session, commands.Send(text="not so fast"))
        await engine.send(session, commands.Send(text="then this", delivery="follow"))
        await engine.send(session, commands.Interrupt(reason="enough"))
        await asyncio.wait_for(engine.wait_until_idle(session), PATIENCE)
        events = await story(engine, session)
    assert [fact.id for fact in bodies(events, facts.InputCancelled)] == [unheard]
    assert outcomes(events) == ["cancelled", "finished"], "what waited for its end has its own turn"


async def test_all_that_waits_can_be_withdrawn_with_it(home: Path) -> None:
    stage = Set(home)
    async with stage.engine(Stuck([call_tool("hold")])) as engine:
        session = await begin_session(engine, home)
        await engine.send(session, commands.Send(text="go"))
        await stage.props.began.wait()
        waiting = [
            await engine.send(session, commands.Send(text="not so fast")),
            await engine.send(session, commands.Send(text="then this", delivery="follow")),
        ]
        await engine.send(session, commands.Interrupt(drop=True))
        await asyncio.wait_for(engine.wait_until_idle(session), PATIENCE)
        events = await story(engine, session)
    assert [fact.id for fact in bodies(events, facts.InputCancelled)] == waiting
    assert outcomes(events) == ["cancelled"]
