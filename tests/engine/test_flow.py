"""A message goes in; events come out. Nothing is mocked but the model."""

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from sylph.core import facts
from sylph.core.errors import ToolError
from sylph.core.events import Event
from sylph.core.tool import Tool, ToolArgs, ToolContext, ToolResult
from sylph.testing import begin_session, call_tool, fact_types, play_turn, say, scripted_runtime


class Put(ToolArgs, frozen=True):
    path: Annotated[str, Meta(description="where")]
    text: str


class Look(ToolArgs, frozen=True):
    path: str


async def put(args: Put, context: ToolContext) -> ToolResult:
    (context.workspace / args.path).write_text(args.text)
    return ToolResult(text="written")


async def look(args: Look, context: ToolContext) -> ToolResult:
    path = context.workspace / args.path
    if not path.exists():
        raise ToolError("no such file", kind="not_found")
    return ToolResult(text=path.read_text())


TOOLS = (
    Tool(name="put", description="", args=Put, run=put, effect="write", recourse="by_content"),
    Tool(name="look", description="", args=Look, run=look, effect="read", recourse="pure"),
)


def results(events: list[Event]) -> list[facts.ToolFinished]:
    return [event.body for event in events if isinstance(event.body, facts.ToolFinished)]


def ended(events: list[Event]) -> facts.TurnEnded:
    return next(event.body for event in events if isinstance(event.body, facts.TurnEnded))


async def test_a_tool_turn_is_a_short_list_of_facts(tmp_path: Path) -> None:
    async with scripted_runtime(
        tmp_path, [call_tool("put", path="a.txt", text="hello"), say("Done.")], tools=TOOLS
    ) as engine:
        session = await begin_session(engine, tmp_path)
        seen = await play_turn(engine, session, "write it")
    assert fact_types(seen) == [
        "input.received",
        "turn.started",
        "state.changed",
        "state.changed",
        "model.requested",
        "model.responded",
        "tool.called",
        "tool.decided",
        "tool.started",
        "tool.finished",
        "model.requested",
        "model.responded",
        "state.changed",
        "turn.ended",
    ]
    assert (tmp_path / "a.txt").read_text() == "hello"
    assert ended(seen).outcome == "finished"


async def test_asking_is_an_event_and_the_answer_is_a_command(tmp_path: Path) -> None:
    async with scripted_runtime(
        tmp_path, [call_tool("put", path="a.txt", text="x"), say("Done.")], tools=TOOLS
    ) as engine:
        session = await begin_session(engine, tmp_path, mode="ask")
        seen = await play_turn(engine, session, "write it")
    assert fact_types(seen)[7:12] == ["asked", "state.changed", "answered", "state.changed", "tool.decided"]
    assert (tmp_path / "a.txt").exists()
