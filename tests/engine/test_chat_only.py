"""A model that cannot be trusted with tools gets none, and what it calls all the same is not done."""

from pathlib import Path

from msgspec.structs import replace
from tests.engine.stage import TOOLS

from sylph.core import commands, facts
from sylph.core.provider import ModelInfo
from sylph.engine import prompt
from sylph.faculties import scout
from sylph.testing import ScriptedProvider, begin, call, kinds, play, runtime, say


class Chatty(ScriptedProvider):
    """Of its two models one only chats."""

    def info(self, model: str) -> ModelInfo:
        return replace(super().info(model), calls=None if model == "able" else False)


async def test_it_is_given_no_tools(home: Path) -> None:
    model = Chatty([say("Hello.")])
    async with runtime(home, model, tools=TOOLS) as engine:
        seen = await play(engine, await begin(engine, home), "hello")
    assert (model.requests[0].tools, model.requests[0].system) == ((), prompt.CHAT)
    assert [event.body.chat_only for event in seen if isinstance(event.body, facts.ModelRequested)] == [True]


async def test_what_it_calls_is_not_done(home: Path) -> None:
    async with runtime(home, Chatty([call("put", "I write.", path="a.txt")]), tools=TOOLS) as engine:
        seen = await play(engine, await begin(engine, home), "write it")
    assert not (home / "a.txt").exists()
    assert "tool.called" not in kinds(seen)
    responded = next(event.body for event in seen if isinstance(event.body, facts.ModelResponded))
    assert (responded.text, responded.calls, responded.finish) == ("I write.", 0, "stop")


async def test_another_model_of_the_session_has_its_tools_again(home: Path) -> None:
    model = Chatty([say("Hello."), call("look", path="a.txt"), say("Nothing there.")])
    async with runtime(home, model, tools=TOOLS) as engine:
        session = await begin(engine, home)
        await play(engine, session, "hello")
        await engine.send(session, commands.SetModel(model="scripted/able"))
        seen = await play(engine, session, "look")
    assert [bool(request.tools) for request in model.requests] == [False, True, True]
    assert "tool.finished" in kinds(seen)


async def test_it_is_told_only_what_is_of_use_to_it(home: Path) -> None:
    (home / "AGENTS.md").write_text("Run the tests. " * 1000)
    model = Chatty([say("Hello.")])
    async with runtime(home, model, tools=TOOLS, plugins=[scout.plugin()]) as engine:
        await play(engine, await begin(engine, home), "hello")
    said = "\n".join(message.text for message in model.requests[0].messages)
    assert "Today is" in said
    assert len(said) < 300
