"""The clock of a machine can jump; the order of a log does not depend on it."""

from pathlib import Path

import pytest
from tests.engine.stage import TOOLS, bodies, outcomes, story

from sylph.core import facts
from sylph.core.provider import ModelReply, ModelRequest
from sylph.testing import FakeClock, begin_session, call_tool, play_turn, say, scripted_runtime


@pytest.mark.parametrize("jump", [-86_400.0, 86_400.0 * 365])
async def test_a_turn_goes_on_when_the_clock_jumps(home: Path, jump: float) -> None:
    clock = FakeClock()

    def leap(_: ModelRequest) -> ModelReply:
        clock.advance(jump)
        return call_tool("look", path="a.txt")

    async with scripted_runtime(home, [leap, say("Done."), say("Again.")], tools=TOOLS, clock=clock) as engine:
        session = await begin_session(engine, home)
        await play_turn(engine, session, "go")
        await play_turn(engine, session, "and again")
        events = await story(engine, session)
        (verified,) = await engine.verify_sessions(session)
    assert (outcomes(events), verified.ok) == (["finished", "finished"], True)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert all(ended.ms >= 0 for ended in bodies(events, facts.TurnEnded))
