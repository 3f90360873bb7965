"""The clock of a machine can jump; the order of a log does not depend on it."""

from pathlib import Path

import pytest
from tests.engine.stage import TOOLS, bodies, outcomes, story

from sylph.core import facts
from sylph.core.provider import Reply, Request
from sylph.testing import FakeClock, begin, call, play, runtime, say


@pytest.mark.parametrize("jump", [-86_400.0, 86_400.0 * 365])
async def test_a_turn_goes_on_when_the_clock_jumps(home: Path, jump: float) -> None:
    clock = FakeClock()

    def leap(_: Request) -> Reply:
        clock.advance(jump)
        return call("look", path="a.txt")

    async with runtime(home, [leap, say("Done."), say("Again.")], tools=TOOLS, clock=clock) as engine:
        session = await begin(engine, home)
        await play(engine, session, "go")
        await play(engine, session, "and again")
        events = await story(engine, session)
        (verified,) = await engine.verify(session)
    assert (outcomes(events), verified.ok) == (["finished", "finished"], True)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert all(ended.ms >= 0 for ended in bodies(events, facts.TurnEnded))
