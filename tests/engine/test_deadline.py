"""How long a turn may take: its own time counts, not that of a person who is waited for."""

import asyncio
from pathlib import Path

from tests.engine.stage import Props, ended, seen, state, story

from sylph.core import commands, facts
from sylph.engine.turn.agent_loop import TurnLimits
from sylph.testing import begin_session, call_tool, say, scripted_runtime

# Longer than all that a turn does here by itself, on a busy machine too; and what is longer than that.
SHORT, LONG = TurnLimits(seconds=2.0), 2.5


async def test_a_person_who_thinks_does_not_use_up_the_time_of_the_turn(home: Path) -> None:
    async with scripted_runtime(
        home, [call_tool("ask", text="Which?"), say("Blue.")], tools=Props().tools, limits=SHORT
    ) as engine:
        session = await begin_session(engine, home)
        await engine.send(session, commands.Send(text="go"))
        asked = await seen(engine, session, facts.Asked)
        await asyncio.sleep(LONG)
        await engine.send(session, commands.Answer(id=asked.id, answer="blue"))
        end = ended(await story(engine, session))
    assert (end.outcome, end.ms >= 2500) == ("finished", True)


async def test_nor_does_a_pause(home: Path) -> None:
    props = Props()
    async with scripted_runtime(home, [call_tool("hold"), say("Done.")], tools=props.tools, limits=SHORT) as engine:
        session = await begin_session(engine, home)
        await engine.send(session, commands.Send(text="go"))
        await props.began.wait()
        await engine.send(session, commands.Pause())
        props.go.set()
        await state(engine, session, "paused")
        await asyncio.sleep(LONG)
        await engine.send(session, commands.Continue())
        end = ended(await story(engine, session))
    assert end.outcome == "finished"


async def test_what_was_left_when_the_person_was_asked_is_all_there_is_afterwards(home: Path) -> None:
    props = Props()
    lines = [call_tool("ask", text="Which?"), call_tool("hold"), say("Never.")]
    async with scripted_runtime(home, lines, tools=props.tools, limits=SHORT) as engine:
        session = await begin_session(engine, home)
        await engine.send(session, commands.Send(text="go"))
        asked = await seen(engine, session, facts.Asked)
        await asyncio.sleep(LONG)
        await engine.send(session, commands.Answer(id=asked.id, answer="blue"))
        end = ended(await story(engine, session))
    assert end.trouble
    assert (end.outcome, end.trouble.kind) == ("budget", "budget_spent")
