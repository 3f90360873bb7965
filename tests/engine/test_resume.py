"""A process ends in the middle of a turn, one way or the other; the next one goes on from the log."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.engine.stage import SILENCE, TOOLS, Props, Say, Stuck, bodies, noting, outcomes, results, seen, state, story

from sylph.core import commands, facts
from sylph.core.errors import LogConflict, SessionBusy, UserError
from sylph.core.permission.types import Mode
from sylph.core.tool import Tool, ToolContext, ToolResult
from sylph.engine.runtime.runtime import Runtime
from sylph.testing import ScriptedProvider, ScriptLine, begin_session, call_tool, call_tools, say, scripted_runtime

OTHER_TOOLS = pytest.mark.unreplayed("the second process has other tools than the first")


async def _left(home: Path, *lines: ScriptLine, at: str = "began", mode: Mode = "trust") -> tuple[str, Props]:
    """A session whose turn was open when its runtime was closed."""
    props = Props()
    async with scripted_runtime(home, lines, tools=props.tools) as engine:
        session = await begin_session(engine, home, mode=mode)
        await engine.send(session, commands.Send(text="do it"))
        if at == "began":
            await props.began.wait()
        else:
            await state(engine, session, at)
    return session, props


async def _resumed(engine: Runtime, session: str) -> list[facts.ToolFinished]:
    await engine.send(session, commands.Continue())
    events = await story(engine, session)
    assert outcomes(events) == ["finished"]
    return results(events)


@OTHER_TOOLS
async def test_an_interrupted_turn_is_found_and_finished(home: Path) -> None:
    session, _ = await _left(home, call_tool("hold"))
    async with scripted_runtime(home, [say("Done.")], tools=TOOLS) as engine:
        assert [summary.id for summary in await engine.list_interrupted()] == [session]
        await _resumed(engine, session)
        assert await engine.list_interrupted() == []
        events = await story(engine, session)
    assert [fact.open_calls for fact in bodies(events, facts.TurnResumed)] == [("t1_c1",)]


async def test_an_effect_that_was_under_way_is_unknown_and_not_repeated(home: Path) -> None:
    session, _ = await _left(home, call_tool("hold", text="a"))
    again = Props()
    async with scripted_runtime(home, [say("Done.")], tools=again.tools) as engine:
        (result,) = await _resumed(engine, session)
    assert result.trouble
    assert (result.trouble.kind, again.ran) == ("unknown", [])
    assert "Outcome unknown" in result.output


async def test_a_read_that_was_under_way_is_done_again(home: Path) -> None:
    session, _ = await _left(home, call_tool("peek", text="a"))
    again = Props()
    again.go.set()
    async with scripted_runtime(home, [say("Done.")], tools=again.tools) as engine:
        (result,) = await _resumed(engine, session)
    assert (result.output, again.ran) == ("did a", ["a"])


async def test_a_call_that_a_service_knows_by_its_key_is_made_again_with_it(home: Path) -> None:
    keys, first = list[str](), asyncio.Event()

    async def charge(_: Say, context: ToolContext) -> ToolResult:
        keys.append(context.idempotency_key)
        if len(keys) == 1:
            first.set()
            await asyncio.Event().wait()
        return ToolResult(text="charged")

    tool = Tool(name="charge", description="", args=Say, run=charge, effect="external", recourse="by_key")
    async with scripted_runtime(home, [call_tool("charge")], tools=[tool]) as engine:
        session = await begin_session(engine, home)
        await engine.send(session, commands.Send(text="do it"))
        await first.wait()
    async with scripted_runtime(home, [say("Done.")], tools=[tool]) as engine:
        (result,) = await _resumed(engine, session)
    assert (result.output, keys) == ("charged", [f"{session}.t1_c1"] * 2)


async def test_a_call_that_had_not_started_runs_now(home: Path) -> None:
    session, _ = await _left(home, call_tools(("hold", {"text": "a"}), ("act", {"text": "b"})))
    again = Props()
    async with scripted_runtime(home, [say("Done.")], tools=again.tools) as engine:
        unknown, done = await _resumed(engine, session)
    assert (unknown.ok, done.output, again.ran) == (False, "did b", ["b"])


async def test_a_question_that_nobody_answered_is_asked_anew(home: Path) -> None:
    session, _ = await _left(home, call_tool("act", text="a"), at="awaiting_user", mode="ask")
    again = Props()
    async with scripted_runtime(home, [say("Done.")], tools=again.tools) as engine:
        await engine.send(session, commands.Continue())
        asked = await seen(engine, session, facts.Asked, after=(await engine.find_session(session)).seq)
        await engine.send(session, commands.Answer(id=asked.id, answer="yes"))
        events = await story(engine, session)
    assert [fact.id for fact in bodies(events, facts.Asked)] == ["t1_q1", "t1_q2"]
    assert again.ran == ["a"]


async def test_an_answer_given_to_a_session_at_rest_is_kept_for_its_resume(home: Path) -> None:
    session, _ = await _left(home, call_tool("act", text="a"), at="awaiting_user", mode="ask")
    again = Props()
    async with scripted_runtime(home, [say("Done.")], tools=again.tools) as engine:
        await engine.send(session, commands.Answer(id="t1_q1", answer="yes"))
        assert (await engine.find_session(session)).pid == 0
        await _resumed(engine, session)
        events = await story(engine, session)
    assert len(bodies(events, facts.Asked)) == 1
    assert again.ran == ["a"]


async def test_a_recorded_approval_still_holds(home: Path) -> None:
    script = call_tools(("peek", {"text": "a"}), ("peek", {"text": "b"}))
    session, _ = await _left(home, script, mode="ask")
    again = Props()
    again.go.set()
    async with scripted_runtime(home, [say("Done.")], tools=again.tools) as engine:
        await _resumed(engine, session)
        events = await story(engine, session)
    assert [fact.by for fact in bodies(events, facts.ToolDecided)] == ["mode", "mode", "log", "log"]


async def test_what_is_new_is_told_after_the_results_not_in_between(home: Path) -> None:
    weather, model = noting("sun", "rain"), ScriptedProvider([say("Done.")])
    props = Props()
    async with scripted_runtime(home, [call_tool("peek")], tools=props.tools, plugins=[weather]) as engine:
        session = await begin_session(engine, home)
        await engine.send(session, commands.Send(text="do it"))
        await props.began.wait()
    again = Props()
    again.go.set()
    async with scripted_runtime(home, model, tools=again.tools, plugins=[weather]) as engine:
        await _resumed(engine, session)
    texts = [message.text for message in model.requests[0].messages]
    assert texts[-3] == "did "
    assert "rain" in texts[-2]
    assert "stopped in the middle of this turn" in texts[-1]


@OTHER_TOOLS
async def test_a_turn_that_is_interrupted_again_and_again_is_given_up_visibly(home: Path) -> None:
    session, _ = await _left(home, call_tool("hold"))
    for _ in range(3):
        model = Stuck([SILENCE])
        async with scripted_runtime(home, model, tools=TOOLS) as engine:
            await engine.send(session, commands.Continue())
            await model.silent.wait()
    async with scripted_runtime(home, [], tools=TOOLS) as engine:
        await engine.send(session, commands.Continue())
        await engine.wait_until_idle(session)
        events = await story(engine, session)
    (ended,) = bodies(events, facts.TurnEnded)
    assert (ended.outcome, ended.trouble and ended.trouble.kind) == ("interrupted", "gave_up")
    assert [fact.attempt for fact in bodies(events, facts.TurnResumed)] == [1, 2, 3]


@pytest.mark.parametrize("command", [commands.AbandonTurn(), commands.Delete()])
async def test_an_interrupted_turn_can_be_given_up_without_running_it(home: Path, command: commands.Command) -> None:
    session, _ = await _left(home, call_tool("hold"))
    props = Props()
    async with scripted_runtime(home, [], tools=props.tools) as engine:
        await engine.send(session, command)
        events = await story(engine, session)
        assert await engine.list_interrupted() == []
    assert (outcomes(events), props.ran) == (["cancelled"], [])


@OTHER_TOOLS
async def test_a_message_to_an_interrupted_session_reaches_the_resumed_turn(home: Path) -> None:
    session, _ = await _left(home, call_tool("hold"))
    model = ScriptedProvider([say("Done.")])
    async with scripted_runtime(home, model, tools=TOOLS) as engine:
        await engine.send(session, commands.Send(text="how is it going?"))
        events = await story(engine, session)
    assert model.requests[0].messages[-1].text == "how is it going?"
    assert outcomes(events) == ["finished"]


async def test_a_turn_that_is_ending_is_let_end_when_the_runtime_closes(home: Path) -> None:
    engine = scripted_runtime(home, [say("Done.")])
    session = await begin_session(engine, home)
    await engine.send(session, commands.Send(text="do it"))
    await state(engine, session, "finalizing")
    await engine.close()
    async with scripted_runtime(home, []) as engine:
        assert outcomes(await story(engine, session)) == ["finished"]


async def test_an_interrupt_holds_even_if_the_runtime_closes_at_once(home: Path) -> None:
    props = Props()
    engine = scripted_runtime(home, [call_tool("hold")], tools=props.tools)
    session = await begin_session(engine, home)
    await engine.send(session, commands.Send(text="do it"))
    await props.began.wait()
    await engine.send(session, commands.Interrupt())
    await engine.close()
    async with scripted_runtime(home, []) as engine:
        assert await engine.list_interrupted() == []


async def test_a_message_that_still_waited_is_answered_by_the_next_process(home: Path) -> None:
    async with scripted_runtime(home, [say("Never.")]) as engine:
        session = await begin_session(engine, home)
        await engine.send(session, commands.Send(text="hello"))
    async with scripted_runtime(home, [say("Now.")]) as engine:
        assert [summary.id for summary in await engine.list_interrupted()] == [session]
        await engine.send(session, commands.Continue())
        assert outcomes(await story(engine, session)) == ["finished"]


async def test_two_runtimes_cannot_work_on_one_session(home: Path) -> None:
    props = Props()
    async with (
        scripted_runtime(home, [call_tool("hold"), say("Done.")], tools=props.tools) as first,
        scripted_runtime(home, []) as second,
    ):
        session = await begin_session(first, home)
        await first.send(session, commands.Send(text="do it"))
        await props.began.wait()
        with pytest.raises(SessionBusy, match=str(os.getpid())):
            await second.send(session, commands.Send(text="me too"))
        assert (await second.find_session(session)).pid == os.getpid()
        props.go.set()
        assert outcomes(await story(first, session)) == ["finished"]


async def test_two_runtimes_can_take_turns_on_one_session(home: Path) -> None:
    lines = [say("Yes.")] * 3
    async with scripted_runtime(home, lines) as first, scripted_runtime(home, lines) as second:
        session = await begin_session(first, home)
        for engine in (first, second, first, second, first, second):
            await engine.send(session, commands.Send(text="and you?"))
            await engine.wait_until_idle(session)
        assert outcomes(await story(first, session)) == ["finished"] * 6


async def test_a_session_that_grew_elsewhere_is_read_again(home: Path) -> None:
    async with scripted_runtime(home, []) as first, scripted_runtime(home, []) as second:
        session = await begin_session(first, home)
        for engine, title in ((first, "x"), (second, "y"), (first, "z")):
            await engine.send(session, commands.Rename(title=title))
        assert (await second.find_session(session)).title == "z"


CHILD = """
import asyncio, os, sys
from pathlib import Path
from sylph.core import commands
from sylph.testing import begin_session, call_tools, say, scripted_runtime
from tests.engine.stage import Props

async def main():
    home, props = Path(sys.argv[1]), Props()
    lines = [call_tools(("act", {"text": "a"}), ("hold", {"text": "b"}), ("act", {"text": "c"}))]
    engine = scripted_runtime(home, lines, tools=props.tools)
    session = await begin_session(engine, home)
    await engine.send(session, commands.Send(text="do it"))
    await props.began.wait()
    print(session, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


def _child(home: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, "-c", CHILD, str(home)], stdout=subprocess.PIPE, text=True)


async def test_a_killed_process_loses_nothing_and_repeats_nothing(home: Path) -> None:
    child = _child(home)
    assert child.stdout
    session = child.stdout.readline().strip()
    props = Props()
    async with scripted_runtime(home, [say("Done.")], tools=props.tools) as engine:
        with pytest.raises(SessionBusy, match=str(child.pid)):
            await engine.send(session, commands.Continue())
        child.send_signal(signal.SIGKILL)
        child.communicate()
        await engine.send(session, commands.Continue())
        events = await story(engine, session)
    assert [result.output[:15] for result in results(events)] == ["did a", "Outcome unknown", "did c"]
    assert (outcomes(events), props.ran) == (["finished"], ["c"])


async def test_somebody_who_wrote_behind_our_back_is_noticed(home: Path) -> None:
    props = Props()
    async with (
        scripted_runtime(home, [call_tool("hold")], tools=props.tools) as engine,
        scripted_runtime(home, []) as other,
    ):
        session = await begin_session(engine, home)
        await engine.send(session, commands.Send(text="do it"))
        await props.began.wait()
        lock = home / "data" / "locks" / f"{session}.lock"
        lock.unlink()
        await other.send(session, commands.Rename(title="mine now"))
        with pytest.raises(LogConflict):
            await engine.send(session, commands.Rename(title="no, mine"))
        lock.touch()
        props.go.set()
        await engine.wait_until_idle(session)
        with pytest.raises(UserError):
            await engine.send(session, commands.Pause())
