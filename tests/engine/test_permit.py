"""Asking a person about calls: together, once, for a while, or with other arguments."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.engine.stage import TOOLS, bodies, results, said, seen, story

from sylph.core import commands, facts
from sylph.core.errors import UserError
from sylph.core.permission.rules import WorkspaceRules
from sylph.core.permission.types import PermissionRule
from sylph.core.plugin import Plugin
from sylph.core.tool import CallAssessment, Tool, ToolArgs, ToolContext, ToolResult, UserQuestion
from sylph.engine.calls.permission import ApprovalSettings
from sylph.engine.log.store import EventLog
from sylph.engine.model.gateway import ModelGateway
from sylph.engine.runtime.runtime import Runtime, RuntimeParts
from sylph.testing import ScriptedProvider, begin_session, call_tool, call_tools, say, scripted_runtime


class Letter(ToolArgs, frozen=True, kw_only=True):
    text: str


async def send(args: Letter, context: ToolContext) -> ToolResult:
    return ToolResult(text=f"sent {args.text}")


SEND = Tool(
    name="send",
    description="Send a letter.",
    args=Letter,
    run=send,
    effect="external",
    judge=lambda _, __: CallAssessment("external", "caution", "sends a letter", hosts=("example.org",)),
)


async def both(args: ToolArgs, context: ToolContext) -> ToolResult:
    answers = await context.ask([UserQuestion(text="Which colour?"), UserQuestion(text="Which size?")])
    return ToolResult(text=" ".join(answers))


BOTH = Tool(
    name="two", description="Two questions.", args=ToolArgs, run=both, effect="read", recourse="pure", seconds=None
)
TWO = call_tools(("put", {"path": "a"}), ("put", {"path": "b"}))


async def asks(engine: Runtime, session: str, count: int) -> list[facts.Asked]:
    """The first questions, as soon as so many are open at the same time."""
    found: list[facts.Asked] = []
    async for event in engine.watch(session):
        if isinstance(event.body, facts.Asked):
            found.append(event.body)
        if len(found) == count:
            return found
    raise AssertionError("a watch does not end by itself")


async def test_calls_of_one_kind_are_asked_about_once(home: Path) -> None:
    async with scripted_runtime(home, [TWO, say("Done.")], tools=TOOLS) as engine:
        session = await begin_session(engine, home, mode="ask")
        await engine.send(session, commands.Send(text="go"))
        asked = await seen(engine, session, facts.Asked)
        assert (asked.question, asked.calls) == ("May put run 2 times?", ("t1_c1", "t1_c2"))
        assert asked.detail == "would write a\nwould write b"
        await engine.send(session, commands.Answer(id=asked.id, answer="yes"))
        events = await story(engine, session)
    assert len(bodies(events, facts.Asked)) == 1
    assert (home / "a").exists()
    assert (home / "b").exists()


async def test_several_questions_are_open_at_once_and_answered_in_any_order(home: Path) -> None:
    both = call_tools(("put", {"path": "a"}), ("send", {"text": "hello"}))
    async with scripted_runtime(home, [both, say("Done.")], tools=(*TOOLS, SEND)) as engine:
        session = await begin_session(engine, home, mode="ask")
        await engine.send(session, commands.Send(text="go"))
        first, second = await asks(engine, session, 2)
        await engine.send(session, commands.Answer(id=second.id, answer="no", reason="not today"))
        await engine.send(session, commands.Answer(id=first.id, answer="yes"))
        events = await story(engine, session)
    put, sent = results(events)
    assert (put.ok, sent.ok) == (True, False)
    assert "not today" in sent.output


async def test_other_arguments_run_instead_and_the_model_hears_it(home: Path) -> None:
    async with scripted_runtime(home, [call_tool("put", path="a"), say("Done.")], tools=TOOLS) as engine:
        session = await begin_session(engine, home, mode="ask")
        await engine.send(session, commands.Send(text="go"))
        asked = await seen(engine, session, facts.Asked)
        with pytest.raises(UserError, match="not right"):
            await engine.send(session, commands.Answer(id=asked.id, answer="edit", arguments='{"pfad":"b"}'))
        await engine.send(session, commands.Answer(id=asked.id, answer="edit", arguments='{"path":"b"}'))
        events = await story(engine, session)
    assert not (home / "a").exists()
    assert (home / "b").exists()
    assert results(events)[0].output.startswith('[the user changed the arguments to {"path":"b"}]')
    (decided,) = bodies(events, facts.ToolDecided)
    assert decided.arguments == '{"path":"b"}'


async def test_silence_means_no_after_a_while(home: Path) -> None:
    async with patient(home, call_tool("put", path="a"), wait_seconds=0.05) as engine:
        session = await begin_session(engine, home, mode="ask")
        (result,) = results(await said(engine, session, "go"))
    assert "nobody was there to say yes: the question was open too long" in result.output


async def test_a_yes_for_the_session_ends_with_its_time(home: Path) -> None:
    async with patient(home, call_tool("put", path="a"), call_tool("put", path="b"), session_hours=1e-9) as engine:
        session = await begin_session(engine, home, mode="ask")
        await engine.send(session, commands.Send(text="go"))
        for asked in [await seen(engine, session, facts.Asked)]:
            await engine.send(session, commands.Answer(id=asked.id, answer="session"))
        second = (await asks(engine, session, 2))[1]
        await engine.send(session, commands.Answer(id=second.id, answer="no"))
        await story(engine, session)


async def test_what_is_to_be_remembered_is_shown_first_and_kept(home: Path) -> None:
    book = Book()
    async with patient(home, call_tool("send", text="x"), rulebook=book) as engine:
        session = await begin_session(engine, home, mode="ask")
        await engine.send(session, commands.Send(text="go"))
        asked = await seen(engine, session, facts.Asked)
        assert asked.rules == (PermissionRule(decision="allow", tool="send", host="example.org"),)
        await engine.send(session, commands.Answer(id=asked.id, answer="always"))
        await story(engine, session)
    assert book.kept == list(asked.rules)


async def test_only_a_person_loosens_the_mode(home: Path) -> None:
    async with scripted_runtime(home, [say("Hi.")], tools=TOOLS) as engine:
        session = await begin_session(engine, home, mode="ask")
        for actor in ("tool", "schedule", "parent"):
            with pytest.raises(UserError, match="Only a person"):
                await engine.send(session, commands.SetMode(mode="trust", actor=actor))
        await engine.send(session, commands.SetMode(mode="plan", actor="schedule"))
        await engine.send(session, commands.SetMode(mode="trust"))
        assert (await engine.find_session(session)).mode == "trust"


class Book:
    """A rulebook in memory."""

    def __init__(self, *rules: PermissionRule) -> None:
        self.kept = list(rules)

    def read(self, workspace: Path) -> WorkspaceRules:  # noqa: ARG002 - the protocol's
        return WorkspaceRules(tuple(self.kept))

    def remember(self, rules: Sequence[PermissionRule]) -> None:
        self.kept += rules


def patient(home: Path, *replies: object, **consent: object) -> Runtime:
    gateway = ModelGateway({"scripted": ScriptedProvider([*replies, say("Done.")])})  # pyright: ignore[reportArgumentType]
    plugin = Plugin(name="test", tools=(*TOOLS, SEND))
    parts = RuntimeParts(gateway=gateway, plugins=(plugin,), consent=ApprovalSettings(**consent))  # pyright: ignore[reportArgumentType]
    return Runtime(EventLog.open(home / "sylph.db"), parts)


async def test_questions_of_one_call_are_open_together(home: Path) -> None:
    async with scripted_runtime(home, [call_tool("two"), say("Done.")], tools=(*TOOLS, BOTH)) as engine:
        session = await begin_session(engine, home)
        await engine.send(session, commands.Send(text="go"))
        first, second = await asks(engine, session, 2)
        await engine.send(session, commands.Answer(id=second.id, answer="blue"))
        await engine.send(session, commands.Answer(id=first.id, answer="no", reason="gone", actor="nobody"))
        (result,) = results(await story(engine, session))
    assert result.trouble
    assert result.trouble.kind == "nobody_there"
