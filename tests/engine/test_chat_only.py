"""A model that cannot be trusted with tools gets none, and what it calls all the same is not done."""

from pathlib import Path

from msgspec.structs import replace
from tests.engine.stage import TOOLS

from sylph.core import commands, facts
from sylph.core.provider import ModelInfo
from sylph.engine.turn import system_prompt
from sylph.features.scout import workspace_notes
from sylph.testing import ScriptedProvider, begin_session, call_tool, fact_types, play_turn, say, scripted_runtime


class Chatty(ScriptedProvider):
    """Of its two models one only chats."""

    def info(self, model: str) -> ModelInfo:
        return replace(super().info(model), calls=None if model == "able" else False)


async def test_it_is_given_no_tools(home: Path) -> None:
    model = Chatty([say("Hello.")])
    async with scripted_runtime(home, model, tools=TOOLS) as engine:
        seen = await play_turn(engine, await begin_session(engine, home), "hello")
    assert (model.requests[0].tools, model.requests[0].system) == ((), system_prompt.CHAT_PROMPT)
    assert [event.body.chat_only for event in seen if isinstance(event.body, facts.ModelRequested)] == [True]


async def test_what_it_calls_is_not_done(home: Path) -> None:
    async with scripted_runtime(home, Chatty([call_tool("put", "I write.", path="a.txt")]), tools=TOOLS) as engine:
        seen = await play_turn(engine, await begin_session(engine, home), "write it")
    assert not (home / "a.txt").exists()
    assert "tool.called" not in fact_types(seen)
    responded = next(event.body for event in seen if isinstance(event.body, facts.ModelResponded))
    assert (responded.text, responded.calls, responded.finish) == ("I write.", 0, "stop")


async def test_another_model_of_the_session_has_its_tools_again(home: Path) -> None:
    model = Chatty([say("Hello."), call_tool("look", path="a.txt"), say("Nothing there.")])
    async with scripted_runtime(home, model, tools=TOOLS) as engine:
        session = await begin_session(engine, home)
        await play_turn(engine, session, "hello")
        await engine.send(session, commands.SetModel(model="scripted/able"))
        seen = await play_turn(engine, session, "look")
    assert [bool(request.tools) for request in model.requests] == [False, True, True]
    assert "tool.finished" in fact_types(seen)


async def test_it_is_told_only_what_is_of_use_to_it(home: Path) -> None:
    (home / "AGENTS.md").write_text("Run the tests. " * 1000)
    model = Chatty([say("Hello.")])
    async with scripted_runtime(home, model, tools=TOOLS, plugins=[workspace_notes.build_plugin()]) as engine:
        await play_turn(engine, await begin_session(engine, home), "hello")
    said = "\n".join(message.text for message in model.requests[0].messages)
    assert "Today is" in said
    assert len(said) < 300
