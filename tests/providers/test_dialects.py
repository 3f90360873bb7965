"""What holds in every dialect that is not OpenAI's: the same scripts, told in each of them."""

import asyncio
import json
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

import pytest
from msgspec.structs import replace
from tests.model_server import ModelServer, Step, assert_extends, begin, call, calls, fail, garbage, say

from sylph.core.errors import ProviderError
from sylph.core.messages import Image, Message, NativeItems, ToolCall, Usage
from sylph.core.provider import (
    ArgumentsChunk,
    Chunk,
    KeepAlive,
    ModelReply,
    ModelRequest,
    Provider,
    ReasoningChunk,
    TextChunk,
    ToolSpec,
)
from sylph.net.http_client import HttpClient
from sylph.providers.endpoint import Endpoint
from sylph.providers.registry import create_provider

DIALECTS = ("anthropic", "gemini", "bedrock")
MODELS = {
    "anthropic": "claude-sonnet-5",
    "gemini": "gemini-3-pro",
    "bedrock": "us.anthropic.claude-sonnet-4-6-v1:0",
}
TOOLS = (ToolSpec("read", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}}),)
UNICODE = "Grüße, 世界, 🙂 and more of it"
every = pytest.mark.parametrize("dialect", DIALECTS)


def gone(_: str) -> None:
    """The bytes of an image that is there no more."""


def hello(dialect: str) -> ModelRequest:
    return ModelRequest(model=MODELS[dialect], system="Be kind.", messages=(Message("user", "Hello"),), tools=TOOLS)


def provider(dialect: str, server: ModelServer, client: HttpClient, **options: Any) -> Provider:
    given: dict[str, Any] = {"key_from": "TEST_KEY", "api_key": "sk-secret-key", **options}
    return create_provider(Endpoint(name="test", base_url=server.root, dialect=dialect, **given), client)


async def chunks(spoken: Provider, request: ModelRequest) -> list[Chunk]:
    async with aclosing(spoken.stream(request, spoken.body(request))) as stream:
        return [chunk async for chunk in stream]


async def answer(dialect: str, step: Step, client: HttpClient) -> tuple[list[Chunk], ModelReply]:
    async with ModelServer([step], dialects=[dialect]) as server:
        *before, reply = await chunks(provider(dialect, server, client), hello(dialect))
    assert isinstance(reply, ModelReply)
    return before, reply


async def failing(dialect: str, step: Step, client: HttpClient) -> ProviderError:
    async with ModelServer([step], dialects=[dialect]) as server:
        with pytest.raises(ProviderError) as caught:
            await chunks(provider(dialect, server, client), hello(dialect))
    return caught.value


@every
async def test_text_streams_and_ends_in_a_reply(client: HttpClient, dialect: str) -> None:
    before, reply = await answer(dialect, say("Hello world", chunk=6), client)
    assert [chunk for chunk in before if chunk != KeepAlive()] == [TextChunk("Hello "), TextChunk("world")]
    assert reply == ModelReply(text="Hello world", finish="stop", usage=Usage(input=10, output=5))


@every
async def test_reasoning_streams_apart_from_the_text(client: HttpClient, dialect: str) -> None:
    before, reply = await answer(dialect, say("42", reasoning="Let me think.", encrypted="c2ln"), client)
    assert [chunk.text for chunk in before if isinstance(chunk, ReasoningChunk)] == ["Let me t", "hink."]
    assert (reply.reasoning, reply.text) == ("Let me think.", "42")
    assert '"c2ln"' in reply.native


@every
@pytest.mark.parametrize(
    "how", [{}, {"split": 1}, {"split": 7, "keepalives": 2}, {"ids": False}, {"empties": 2}], ids=str
)
async def test_parallel_calls_are_told_apart(client: HttpClient, dialect: str, how: dict[str, Any]) -> None:
    two = (("read", {"path": "ä"}), ("list", {"path": "b"}))
    before, reply = await answer(dialect, calls(*two, text="Two.", **how), client)
    assert [(made.name, json.loads(made.arguments)) for made in reply.calls] == [*two]
    assert (reply.finish, reply.text, len({made.id for made in reply.calls})) == ("calls", "Two.", 2)
    told = [chunk for chunk in before if isinstance(chunk, ArgumentsChunk)]
    assert {chunk.index: chunk.name for chunk in told} == {0: "read", 1: "list"}
    assert json.loads("".join(chunk.text for chunk in told if chunk.index == 1)) == {"path": "b"}


@every
async def test_bytes_may_be_split_anywhere(client: HttpClient, dialect: str) -> None:
    for split in (1, 2, 5):
        assert (await answer(dialect, say(UNICODE, split=split, empties=1), client))[1].text == UNICODE


@every
async def test_keepalives_and_empty_deltas_are_signs_of_life(client: HttpClient, dialect: str) -> None:
    before, _ = await answer(dialect, say("x", keepalives=3, empties=2, delay=0.002), client)
    assert before.count(KeepAlive()) >= 3


@every
async def test_a_connection_that_breaks_is_cut_in_the_stream_and_a_network_failure_before(
    client: HttpClient, dialect: str
) -> None:
    assert (await failing(dialect, say("Hello world", drop=True, at="stream"), client)).failure == "cut"
    assert (await failing(dialect, say("Hello world", drop=True), client)).failure == "network"
    assert (await failing(dialect, say("Hello world", finish="", done=False), client)).failure == "cut"


@every
async def test_a_stall_is_left_to_whoever_waits(client: HttpClient, dialect: str) -> None:
    async with ModelServer([begin("Hello world")], dialects=[dialect]) as server:
        waiting = asyncio.create_task(chunks(provider(dialect, server, client), hello(dialect)))
        await server.until(lambda: bool(server.requests))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await waiting
        await server.until(lambda: server.broken == 1)


@every
@pytest.mark.parametrize(
    ("step", "shown"),
    [
        (garbage("<html><h1>Welcome to nginx</h1></html>"), "nginx"),
        (garbage("upstream connect error", "text/plain"), ""),
        (garbage('{"status": "ok"}', "application/json"), ""),
        (garbage(""), ""),
    ],
)
async def test_what_is_no_answer_is_told(client: HttpClient, dialect: str, step: Step, shown: str) -> None:
    error = await failing(dialect, step, client)
    assert error.failure in ("format", "cut")
    assert shown in str(error) or dialect == "bedrock"


@every
@pytest.mark.parametrize(("headers", "seconds"), [({"retry-after": "7"}, 7.0), ({}, None)])
async def test_a_pause_is_asked_for(
    client: HttpClient, dialect: str, headers: Mapping[str, str], seconds: float | None
) -> None:
    error = await failing(dialect, fail(429, "Slow down", headers=headers), client)
    assert (error.failure, error.retry_after) == ("rate_limited", seconds)


@every
async def test_a_key_that_is_not_taken_is_not_shown(client: HttpClient, dialect: str) -> None:
    error = await failing(dialect, fail(401, "The key sk-secret-key is wrong"), client)
    assert str(error) == "test does not accept the key: The key [key] is wrong"
    assert error.trouble.next == ("Set TEST_KEY to a key that is valid.",)


class Turning:
    """A login whose first token is stale."""

    last_token = ""

    def __init__(self) -> None:
        self.renewals = 0

    async def get_token(self) -> str:
        return "fresh" if self.renewals else "old"

    async def renew_token(self, stale: str) -> str:
        assert stale == "old"
        self.renewals += 1
        return "fresh"


@pytest.mark.parametrize("dialect", ["anthropic", "gemini"])
async def test_a_stale_token_is_renewed_once(client: HttpClient, dialect: str) -> None:
    login = Turning()
    async with ModelServer([fail(401, "expired"), say("Yes.")], dialects=[dialect]) as server:
        spoken = provider(dialect, server, client, login=login, api_key="")
        *_, reply = await chunks(spoken, hello(dialect))
        tokens = [asked.headers["authorization"] for asked in server.requests]
    assert isinstance(reply, ModelReply)
    assert (reply.text, login.renewals, tokens) == ("Yes.", 1, ["Bearer old", "Bearer fresh"])


@every
async def test_an_unknown_model_is_answered_with_the_names_that_come_close(client: HttpClient, dialect: str) -> None:
    async with ModelServer([fail(404, "no such model")], dialects=[dialect], models=["big-model-1", "x"]) as server:
        with pytest.raises(ProviderError) as caught:
            await chunks(provider(dialect, server, client), replace(hello(dialect), model="big-modl-1"))
    assert "Did you mean test/big-model-1?" in caught.value.trouble.next[0]


@every
async def test_closing_the_stream_early_hangs_up(client: HttpClient, dialect: str) -> None:
    async with ModelServer([begin("a long story " * 100)], dialects=[dialect]) as server:
        spoken = provider(dialect, server, client)
        async with aclosing(spoken.stream(hello(dialect), spoken.body(hello(dialect)))) as stream:
            async for chunk in stream:
                if isinstance(chunk, TextChunk):
                    break
        await server.until(lambda: server.broken == 1)


def talk(own: str) -> list[Message]:
    """A conversation with images, parallel calls, notes, and answers of this model and of another."""
    png, pdf = Image("d1", "image/png", 3, "a.png"), Image("d2", "application/pdf", 3, "b.pdf")
    native = {
        "anthropic": '[{"type":"thinking","thinking":"T","signature":"S"},'
        '{"type":"tool_use","id":"toolu_9","name":"read","input":{}}]',
        "gemini": '[{"functionCall":{"name":"read","args":{},"id":"fc_9"},"thoughtSignature":"S"}]',
        "bedrock": '[{"reasoningContent":{"reasoningText":{"text":"T","signature":"S"}}},'
        '{"toolUse":{"toolUseId":"tu_9","name":"read","input":{}}}]',
    }
    return [
        Message("user", "<context>note</context>"),
        Message("user", "look", images=(png, pdf)),
        Message(
            "assistant",
            "",
            calls=(ToolCall("t1_c1", "read", "{}"),),
            native=NativeItems(f"test/{MODELS[own]}", native[own]),
        ),
        Message("tool", "[a]", call="t1_c1", images=(png,)),
        Message("assistant", "Two.", calls=(ToolCall("t1_c2", "read", "{oops"), ToolCall("t1_c3", "list", "{}"))),
        Message("tool", "", call="t1_c3"),
        Message("tool", "found", call="t1_c2"),
        Message("assistant", "", reasoning="of another", native=NativeItems("other/model", "[1]")),
        Message("user", ""),
        Message("assistant", "Done."),
        Message("user", "thanks"),
    ]


@every
async def test_consecutive_requests_extend_the_same_bytes(client: HttpClient, dialect: str) -> None:
    said = talk(dialect)
    async with ModelServer([say("x")], loop=True, dialects=[dialect]) as server:
        spoken = provider(dialect, server, client)
        for end in (2, 4, 7, 9, 11):
            request = replace(hello(dialect), messages=tuple(said[:end]), image=str.encode)
            assert spoken.body(request) == spoken.body(request)
            await chunks(spoken, request)
        assert_extends(server.requests)
        assert server.connections == 1


@every
def test_what_is_made_again_is_what_would_be_made_anew(client: HttpClient, dialect: str) -> None:
    said = talk(dialect)
    shared = create_provider(Endpoint(name="test", base_url="http://x", dialect=dialect), client)
    for end in (3, 5, 8, 6, 11, 2):
        request = replace(hello(dialect), messages=tuple(said[:end]), image=str.encode)
        fresh = create_provider(Endpoint(name="test", base_url="http://x", dialect=dialect), client)
        assert shared.body(request) == fresh.body(request)


@every
def test_its_own_answer_goes_back_byte_for_byte_and_anothers_not_at_all(client: HttpClient, dialect: str) -> None:
    said = talk(dialect)
    native = said[2].native
    assert native
    spoken = create_provider(Endpoint(name="test", base_url="http://x", dialect=dialect), client)
    request = replace(hello(dialect), messages=tuple(said), image=str.encode)
    assert native.items[1:-1].encode() in spoken.body(request)
    other = create_provider(Endpoint(name="other", base_url="http://x", dialect=dialect), client)
    foreign = other.body(request)
    assert b'"S"' not in foreign
    assert b"t1_c1" in foreign or dialect == "gemini"


@every
def test_a_branch_that_lost_calls_sends_what_is_left(client: HttpClient, dialect: str) -> None:
    said = talk(dialect)[:4]
    cut_off = [*said[:2], replace(said[2], calls=(), text="Let me see."), Message("user", "go on")]
    spoken = create_provider(Endpoint(name="test", base_url="http://x", dialect=dialect), client)
    body = spoken.body(replace(hello(dialect), messages=tuple(cut_off), image=str.encode))
    assert b"Let me see." in body
    assert b"_9" not in body
    damaged = [*said[:2], replace(said[2], native=NativeItems(f"test/{MODELS[dialect]}", "[oops")), said[3]]
    assert b'"read"' in spoken.body(replace(hello(dialect), messages=tuple(damaged), image=gone))


@every
async def test_a_model_that_takes_no_images_is_told_in_words_from_then_on(client: HttpClient, dialect: str) -> None:
    picture = Message("user", "look", images=(Image("d1", "image/png", 3, "a.png"),))
    request = replace(hello(dialect), messages=(picture,), image=str.encode)
    complaint = fail(400, "This model does not support image input.")
    async with ModelServer([complaint, say("ok"), say("ok")], dialects=[dialect]) as server:
        spoken = provider(dialect, server, client)
        await chunks(spoken, request)
        await chunks(spoken, request)
        assert [b"a.png: not shown" in asked.body for asked in server.requests] == [False, True, True]
    lost = replace(request, image=gone)
    assert b"a.png: the image is gone" in create_provider(
        Endpoint(name="t", base_url="http://x", dialect=dialect), client
    ).body(lost)


@every
async def test_models_are_listed(client: HttpClient, dialect: str) -> None:
    async with ModelServer(models=["one", "two"], dialects=[dialect]) as server:
        spoken = provider(dialect, server, client)
        assert [info.name for info in await spoken.models()] == ["one", "two"]
        assert "sk-secret-key" not in server.visits[0].path
    await spoken.close()


@every
async def test_a_call_without_arguments_has_none(client: HttpClient, dialect: str) -> None:
    assert (await answer(dialect, call("plan"), client))[1].calls[0].arguments == "{}"


@every
async def test_a_service_that_minds_its_own_old_answers_is_asked_without_them(client: HttpClient, dialect: str) -> None:
    said = talk(dialect)[:4]
    request = replace(hello(dialect), messages=tuple(said), image=str.encode)
    async with ModelServer(
        [fail(400, "Invalid `signature` in thought_signature"), say("ok")], dialects=[dialect]
    ) as server:
        await chunks(provider(dialect, server, client), request)
        assert [b'"S"' in asked.body for asked in server.requests] == [True, False]
