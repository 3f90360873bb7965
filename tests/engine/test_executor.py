"""Every call has a result, whatever the model asks for, and nothing runs that may not."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.engine.stage import TOOLS, Props, Put, bodies, put, results, said, seen, story

from sylph.core import commands, facts, signals
from sylph.core.errors import NotFound, ToolError, UserError
from sylph.core.messages import ToolCall
from sylph.core.permission.types import Mode
from sylph.core.plugin import Plugin
from sylph.core.provider import ModelReply
from sylph.core.tool import CallAssessment, Tool, ToolArgs, ToolContext, ToolResult
from sylph.engine.calls.executor import CallLimits, ToolExecutor, parse_arguments
from sylph.engine.calls.truncate import truncate_output
from sylph.engine.commands.runner_client import RunnerClient
from sylph.engine.log.store import EventLog
from sylph.engine.model.gateway import ModelGateway
from sylph.engine.runtime.runtime import Runtime, RuntimeParts
from sylph.testing import ScriptedProvider, begin_session, call_tool, call_tools, play_turn, say, scripted_runtime


def _raw(name: str, arguments: str) -> ModelReply:
    return ModelReply(text="", finish="calls", calls=(ToolCall("x", name, arguments),))


async def _result(home: Path, reply: ModelReply, *tools: Tool, mode: Mode = "trust") -> facts.ToolFinished:
    async with scripted_runtime(home, [reply, say("Done.")], tools=(*TOOLS, *tools)) as engine:
        session = await begin_session(engine, home, mode=mode)
        (result,) = results(await said(engine, session, "go"))
    return result


@pytest.mark.parametrize(
    ("reply", "kind", "hint"),
    [
        (_raw("look", "{"), "invalid_arguments", "path"),
        (_raw("look", ""), "invalid_arguments", "path"),
        (_raw("look", '{"path": 5}'), "invalid_arguments", "path"),
        (_raw("look", '{"path": "a", "mode": "r"}'), "invalid_arguments", "unknown field"),
        (_raw("look", '{"path": "\\ud800"}'), "invalid_arguments", "path"),
        (_raw("lok", "{}"), "unknown_tool", "look"),
        (call_tool("look", path="nowhere"), "not_found", "no such file"),
        (call_tool("boom"), "tool_crashed", "RuntimeError: a bug in a tool"),
        (call_tool("late"), "tool_crashed", "TimeoutError: the socket timed out"),
    ],
)
async def test_what_goes_wrong_in_a_call_is_told_to_the_model(
    home: Path, reply: ModelReply, kind: str, hint: str
) -> None:
    result = await _result(home, reply)
    assert (result.ok, result.trouble and result.trouble.kind) == (False, kind)
    assert hint in result.output


async def test_numbers_written_as_text_are_taken(home: Path) -> None:
    assert (await _result(home, _raw("much", '{"text": "ab", "times": "3"}'))).output == "ababab"


async def test_a_bug_in_judging_or_previewing_costs_the_call_not_the_turn(home: Path) -> None:
    def judge(_: Any, __: ToolContext) -> CallAssessment:
        raise KeyError("path")

    async def preview(_: Any, __: ToolContext) -> str:
        raise KeyError("path")

    judged = Tool(name="judged", description="", args=Put, run=put, effect="write", judge=judge)
    shown = Tool(name="shown", description="", args=Put, run=put, effect="write", preview=preview)
    for name in ("judged", "shown"):
        result = await _result(home, call_tool(name, path="a"), judged, shown, mode="ask")
        assert (result.trouble and result.trouble.kind) == "tool_crashed"


async def test_nobody_is_asked_about_a_call_that_is_sure_to_fail(home: Path) -> None:
    async def preview(_: Any, __: ToolContext) -> str:
        raise ToolError("no such file")

    tool = Tool(name="shown", description="", args=Put, run=put, effect="write", preview=preview)
    result = await _result(home, call_tool("shown", path="a"), tool, mode="ask")
    assert "no such file" in result.output


async def test_a_call_that_takes_too_long_is_ended(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sylph.engine.calls.executor.GRACE", 0.0)

    async def slow(_: Any, __: ToolContext) -> ToolResult:
        await asyncio.Event().wait()
        return ToolResult(text="never")

    tool = Tool(name="slow", description="", args=Put, run=slow, effect="write", seconds=0.02)
    result = await _result(home, call_tool("slow", path="a"), tool)
    assert (result.trouble and result.trouble.kind) == "timeout"


async def test_neighbours_that_only_read_run_side_by_side(home: Path) -> None:
    """Each waits for the other: one after the other they would wait for ever."""
    props = Props()
    async with scripted_runtime(
        home, [call_tools(("meet", {}), ("meet", {})), say("Done.")], tools=props.tools
    ) as engine:
        session = await begin_session(engine, home)
        assert [result.output for result in results(await said(engine, session, "go"))] == ["met", "met"]


async def test_a_judge_that_only_tells_what_is_read_holds_nobody_up(home: Path) -> None:
    props = Props()

    def judge(_: object, __: ToolContext) -> CallAssessment:
        return CallAssessment("read", "safe", reads=("/a",))

    judged = [replace(tool, judge=judge) for tool in props.tools]
    async with scripted_runtime(home, [call_tools(("meet", {}), ("meet", {})), say("Done.")], tools=judged) as engine:
        session = await begin_session(engine, home)
        assert [result.output for result in results(await said(engine, session, "go"))] == ["met", "met"]


async def test_effects_run_one_after_the_other_in_their_order(home: Path) -> None:
    props = Props()
    script = call_tools(
        ("hold", {"text": "a"}), ("act", {"text": "b"}), ("fetch", {"text": "c"}), ("fetch", {"text": "d"})
    )
    async with scripted_runtime(home, [script, say("Done.")], tools=props.tools) as engine:
        session = await begin_session(engine, home)
        await engine.send(session, commands.Send(text="go"))
        await props.began.wait()
        assert props.ran == ["a"]
        props.go.set()
        await engine.wait_until_idle(session)
    assert props.ran == ["a", "b", "c", "d"]


async def test_an_effect_is_on_the_disk_before_it_happens(home: Path) -> None:
    async def look_back(_: Any, context: ToolContext) -> ToolResult:
        with_log = EventLog.open(home / "data" / "sylph.db")
        kinds = [event.type for event in with_log.read_events(context.session)]
        with_log.close()
        return ToolResult(text=kinds[-1])

    tool = Tool(name="back", description="", args=Put, run=look_back, effect="write")
    assert (await _result(home, call_tool("back", path="a"), tool)).output == "tool.started"


def _bounded(home: Path, model: ScriptedProvider, bounds: CallLimits) -> Runtime:
    parts = RuntimeParts(
        gateway=ModelGateway({"scripted": model}), plugins=(Plugin(name="x", tools=TOOLS),), output_limits=bounds
    )
    return Runtime(EventLog.open(home / "data" / "sylph.db"), parts)


async def test_a_huge_output_is_cut_for_the_model_and_kept_whole(home: Path) -> None:
    model = ScriptedProvider(
        [call_tool("much", text="é\n", times=5_000), call_tool("much", text="short"), say("Done.")]
    )
    async with _bounded(home, model, CallLimits(lines=10, bytes=1_000)) as engine:
        session = await begin_session(engine, home)
        cut, short = results(await said(engine, session, "go"))
        assert "5,001 lines, 15,000 bytes in all" in cut.output
        assert 'read path="output:t1_c1"' in cut.output
        assert await engine.full_output(session, "t1_c1") == "é\n" * 5_000
        assert (await engine.full_output(session, "t1_c2"), await engine.full_output(session, "t9_c9")) == (
            "short",
            None,
        )
        with pytest.raises(NotFound):
            await engine.full_output("nobody", "t1_c1")
    assert (cut.whole_bytes, short.whole) == (15_000, "")


@given(st.text(), st.integers(2, 40), st.integers(8, 200))
def test_what_is_shown_of_an_output_are_its_two_ends(text: str, lines: int, size: int) -> None:
    shaped = truncate_output(text, "c", lines=lines, size=size)
    if not shaped.digest:
        assert shaped.text == text
        return
    head, _, tail = shaped.text.partition("\n[… ")
    tail = tail.partition("…]\n")[2]
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head.encode()) + len(tail.encode()) <= size
    assert shaped.whole.decode() == text


def test_half_characters_in_an_output_are_replaced() -> None:
    assert truncate_output("a\udcffb", "c", lines=10, size=100).text == "a?b"


async def test_a_dry_run_changes_nothing_and_says_what_it_would_have_done(home: Path) -> None:
    async with scripted_runtime(
        home, [call_tool("put", path="a"), call_tool("look", path="a"), say("Done.")], tools=TOOLS
    ) as engine:
        session = await begin_session(engine, home, mode="ask")
        first, second = results(await play_turn(engine, session, commands.Send(text="go", dry_run=True)))
    assert first.output == "[dry run: nothing was changed]\nwould write a"
    assert (second.trouble and second.trouble.kind, (home / "a").exists()) == ("not_found", False)


async def test_a_no_and_its_reason_reach_the_model(home: Path) -> None:
    model = ScriptedProvider([call_tool("put", path="a"), say("All right.")])
    async with scripted_runtime(home, model, tools=TOOLS) as engine:
        session = await begin_session(engine, home, mode="ask")
        await engine.send(session, commands.Send(text="go"))
        asked = await seen(engine, session, facts.Asked)
        await engine.send(session, commands.Answer(id=asked.id, answer="no", reason="not on a Sunday"))
        events = await story(engine, session)
    assert asked.detail == "would write a"
    assert "the user said no: not on a Sunday" in model.requests[1].messages[-1].text
    assert (results(events)[0].ok, (home / "a").exists()) == (False, False)


@pytest.mark.parametrize(
    ("tool", "told"), [("act", "nobody was there to say yes: no terminal"), ("ask", "Nobody answered: no terminal")]
)
async def test_without_a_person_the_answer_is_no_and_the_model_hears_why(home: Path, tool: str, told: str) -> None:
    async with scripted_runtime(home, [call_tool(tool), say("Done.")], tools=Props().tools) as engine:
        session = await begin_session(engine, home, mode="ask")
        await engine.send(session, commands.Send(text="go"))
        asked = await seen(engine, session, facts.Asked)
        await engine.send(session, commands.Answer(id=asked.id, answer="no", reason="no terminal", actor="nobody"))
        (result,) = results(await story(engine, session))
    assert told in result.output


async def test_a_yes_for_the_session_is_not_asked_about_again(home: Path) -> None:
    script = [
        call_tool("put", path="a"),
        call_tool("put", path="b"),
        call_tool("act", text="x"),
        call_tool("act", text="x"),
        say("Done."),
    ]
    props = Props()
    async with scripted_runtime(home, script, tools=props.tools) as engine:
        session = await begin_session(engine, home, mode="ask")
        events = await play_turn(engine, session, "go", answer="session")
    assert [fact.question for fact in bodies(events, facts.Asked)] == ["May put run?", "May act run?"]
    assert [fact.by for fact in bodies(events, facts.ToolDecided)] == ["user", "grant", "user", "grant"]


async def test_a_yes_for_one_command_is_not_a_yes_for_another(home: Path) -> None:
    props = Props()
    script = [call_tool("act", text="ls"), call_tool("act", text="rm"), say("Done.")]
    async with scripted_runtime(home, script, tools=props.tools) as engine:
        session = await begin_session(engine, home, mode="ask")
        events = await play_turn(engine, session, "go", answer="session")
    assert len(bodies(events, facts.Asked)) == 2


async def test_what_a_call_prints_is_shown_while_it_runs(home: Path) -> None:
    async def loud(_: Any, context: ToolContext) -> ToolResult:
        context.output("half way")
        return ToolResult(text="done", exit=0)

    tool = Tool(name="loud", description="", args=Put, run=loud, effect="read")
    async with scripted_runtime(home, [call_tool("loud", path="a"), say("Done.")], tools=[tool]) as engine:
        session = await begin_session(engine, home)
        shown = asyncio.create_task(seen(engine, session, signals.ToolOutput))
        await asyncio.sleep(0)
        await said(engine, session, "go")
    assert await shown == signals.ToolOutput(call="t1_c1", text="half way")


async def test_an_answer_to_a_question_of_a_tool_comes_back_to_it(home: Path) -> None:
    async with scripted_runtime(home, [call_tool("ask", text="Which colour?"), say("Done.")], tools=TOOLS) as engine:
        session = await begin_session(engine, home, mode="ask")
        events = await play_turn(engine, session, "go", answer="blue")
    assert (bodies(events, facts.Asked)[0].kind, results(events)[0].output) == ("question", "blue")


async def test_a_failing_store_is_not_a_failing_tool(home: Path) -> None:
    async def emit(_: Any, context: ToolContext) -> ToolResult:
        raise UserError("This is for the person.")

    tool = Tool(name="tell", description="", args=Put, run=emit, effect="read")
    async with scripted_runtime(
        home, [call_tools(("tell", {"path": "a"}), ("tell", {"path": "b"}))], tools=[tool]
    ) as engine:
        session = await begin_session(engine, home)
        (end,) = bodies(await said(engine, session, "go"), facts.TurnEnded)
    assert (end.outcome, end.trouble and end.trouble.message) == ("failed", "This is for the person.")


class Nothing(ToolArgs, frozen=True):
    pass


def test_no_arguments_are_an_empty_object() -> None:
    async def run(_: Any, __: ToolContext) -> ToolResult:
        raise AssertionError

    tool = Tool(name="now", description="", args=Nothing, run=run, effect="read")
    assert parse_arguments(tool, "") == Nothing()
    assert [spec.name for spec in ToolExecutor([tool], RunnerClient(Path("unused"))).specs] == ["now"]
