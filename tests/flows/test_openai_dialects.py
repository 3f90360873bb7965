"""A task with tools over each dialect, with the real program, and its replay."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from tests.flows.program import Sylph
from tests.model_server import ModelServer, Step, assert_extends, call, calls, fail, say

THINKS = {"reasoning": "Let me look.", "encrypted": "gAAAAA=="}
SCRIPT = [
    call("read", path="a.txt", how=THINKS),
    calls(("read", {"path": "b.txt"}), ("list", {"path": "."}), text="Now both. ", **THINKS),
    say("Grüße, 世界: done.", split=3),
]


@asynccontextmanager
async def speaking(
    sylph: Sylph, dialect: str, script: Sequence[Step] = SCRIPT, **how: Any
) -> AsyncGenerator[tuple[ModelServer, str], None]:
    """Sylph with a model that speaks this dialect, and the model's name."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(ModelServer(script, dialects=(dialect,), **how))
        if dialect == "ollama":
            sylph.environ["OLLAMA_HOST"] = server.root
            yield server, "ollama/scripted"
        else:
            sylph.environ.update(OPENAI_BASE_URL=server.url, OPENAI_API_KEY="a-key-for-tests")
            yield server, "openai-chat/scripted" if dialect == "chat" else "openai/scripted"


@pytest.fixture
def files(sylph: Sylph) -> Sylph:
    for name in ("a.txt", "b.txt"):
        (sylph.workspace / name).write_text(f"This is {name}.\n")
    return sylph


@pytest.mark.parametrize("dialect", ["chat", "responses", "ollama"])
async def test_a_task_with_tools_and_its_replay(files: Sylph, dialect: str) -> None:
    async with speaking(files, dialect) as (server, model):
        done = await files.run("run", "-m", model, "read them")
        assert (done.code, done.out.splitlines()[-1]) == (0, "Grüße, 世界: done.")
        again = await files.run("run", "-m", model, "-s", "last", "more")
        assert again.code == 4  # The script is over; what was asked is asked in the same words.
    assert_extends(server.requests)
    assert "This is b.txt." in server.requests[2].body.decode()
    if dialect == "responses":
        assert b'"encrypted_content": "gAAAAA=="' in server.requests[2].body
    replayed = await files.run("replay", "last", "--json")
    assert (replayed.code, replayed.json["divergence"]) == (0, None), replayed.out


async def test_a_task_over_a_websocket_and_its_replay(files: Sylph) -> None:
    assert (await files.run("config", "set", "providers.openai.websocket", "true")).code == 0
    async with speaking(files, "responses", websocket=True) as (server, model):
        done = await files.run("run", "-m", model, "read them")
        assert (done.code, done.out.splitlines()[-1]) == (0, "Grüße, 世界: done.")
    assert [asked.method for asked in server.requests] == ["WEBSOCKET"] * 3
    assert [asked.json.get("previous_response_id") for asked in server.requests] == [None, "resp_1", "resp_2"]
    # Only what is new went over it: the results.
    assert [item["type"] for item in server.requests[2].json["input"]] == ["function_call_output"] * 2
    assert (await files.run("replay", "last", "--json")).json["divergence"] is None


async def test_openai_speaks_responses_and_openai_chat_chat(files: Sylph) -> None:
    async with ModelServer([say("one"), say("two")], dialects=("responses", "chat")) as server:
        files.environ.update(OPENAI_BASE_URL=server.url, OPENAI_API_KEY="k")
        assert (await files.run("run", "-m", "openai/gpt-5", "x")).out == "one\n"
        assert (await files.run("run", "-m", "openai-chat/gpt-5", "x")).out == "two\n"
        listed = (await files.run("models", "--json")).json
    assert [asked.path for asked in server.requests] == ["/v1/responses", "/v1/chat/completions"]
    assert [each["id"] for each in listed] == ["openai/scripted"]


async def test_a_change_of_model_drops_thoughts_and_keeps_what_was_done(files: Sylph) -> None:
    async with (
        speaking(files, "responses", [*SCRIPT]) as (server, model),
        speaking(files, "ollama", [say("I see both.")]) as (other, second),
    ):
        assert (await files.run("run", "-m", model, "read them")).code == 0
        assert (await files.run("run", "-m", second, "-s", "last", "and you?")).out == "I see both.\n"
    (asked,) = other.requests
    assert b"gAAAAA" not in asked.body
    assert b"This is b.txt." in asked.body
    assert len(server.requests) == 3
    assert (await files.run("replay", "last", "--json")).json["divergence"] is None


async def test_ollama_is_told_how_much_to_hold_and_models_shows_it(files: Sylph) -> None:
    show = {"capabilities": ["tools"], "model_info": {"x.context_length": 8192}}
    async with speaking(files, "ollama", [say("ok")], models=[{"model": "scripted", "show": show}]) as (server, _):
        assert (await files.run("run", "hello")).out == "ok\n"
        assert "8,192" in (await files.run("models")).out
        assert "ok    models" in (await files.run("doctor")).out
    assert server.requests[0].json["options"] == {"num_ctx": 8192}


@pytest.mark.parametrize("dialect", ["chat", "responses", "ollama"])
async def test_trouble_is_told_and_gone_around_in_every_dialect(files: Sylph, dialect: str) -> None:
    middle = {"error": "boom"} if dialect == "ollama" else {"message": "boom", "code": "server_error"}
    script = [
        fail(429, "Slow down", headers={"retry-after": "0"}),
        say("Half of it was said", error=middle, delay=0.02),
        say("never"),
    ]
    async with speaking(files, dialect, script) as (server, model):
        done = await files.run("run", "-m", model, "x")
    # A pause is waited for; what broke off after words were shown is not asked again.
    assert done.code != 0
    assert "boom" in done.err
    assert len(server.requests) == 2
