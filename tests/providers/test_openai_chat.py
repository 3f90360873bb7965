import asyncio
import json
import math
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

import pytest
from msgspec.structs import replace
from tests.model_server import ModelServer, Step, assert_extends, begin, call, calls, fail, garbage, say
from tests.net.servers import saying, serving
from tests.patience import PATIENCE

from sylph.core.errors import ProviderError
from sylph.core.messages import Image, Message, NativeItems, ToolCall, Usage
from sylph.core.provider import (
    ArgumentsChunk,
    Chunk,
    KeepAlive,
    ModelInfo,
    ModelReply,
    ModelRequest,
    ReasoningChunk,
    TextChunk,
    ToolSpec,
)
from sylph.net.http_client import HttpClient
from sylph.providers.dialects.openai_chat.provider import OpenAIChatProvider
from sylph.providers.dialects.openai_chat.stream import ChatStream
from sylph.providers.endpoint import Endpoint

TOOLS = (ToolSpec("read", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}}),)
HELLO = ModelRequest(model="scripted", system="Be kind.", messages=(Message("user", "Hello"),), tools=TOOLS)
UNICODE = "Grüße, 世界, 🙂 and more of it"


def provider(url: str, client: HttpClient, **options: Any) -> OpenAIChatProvider:
    return OpenAIChatProvider(Endpoint(name="test", base_url=url, key_from="TEST_KEY", **options), client)


async def chunks(chat: OpenAIChatProvider, request: ModelRequest = HELLO) -> list[Chunk]:
    async with aclosing(chat.stream(request, chat.body(request))) as stream:
        return [chunk async for chunk in stream]


async def answer(step: Step, client: HttpClient) -> tuple[list[Chunk], ModelReply]:
    """What comes of one scripted step: all but the reply, and the reply."""
    async with ModelServer([step]) as server:
        *before, reply = await chunks(provider(server.url, client))
    assert isinstance(reply, ModelReply)
    return before, reply


async def failing(step: Step, client: HttpClient) -> ProviderError:
    async with ModelServer([step]) as server:
        with pytest.raises(ProviderError) as caught:
            await chunks(provider(server.url, client, api_key="sk-secret"))
    return caught.value


def stream(*packets: Mapping[str, Any] | str) -> Step:
    """A stream of exactly these events."""
    lines = [packet if isinstance(packet, str) else json.dumps(packet) for packet in packets]
    return Step(body="".join(f"data: {line}\n\n" for line in lines), headers={"content-type": "text/event-stream"})


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def piece(**fields: Any) -> dict[str, Any]:
    """A packet with one piece of a call; `name` and `arguments` belong to its function."""
    function = {key: fields.pop(key) for key in ("name", "arguments") if key in fields}
    return delta(tool_calls=[{**fields, "function": function}])


async def test_text_streams_and_ends_in_a_reply(client: HttpClient) -> None:
    before, reply = await answer(say("Hello world", chunk=6), client)
    assert [chunk for chunk in before if chunk != KeepAlive()] == [TextChunk("Hello "), TextChunk("world")]
    assert reply == ModelReply(text="Hello world", finish="stop", usage=Usage(input=10, output=5))


async def test_reasoning_streams_apart_from_the_text(client: HttpClient) -> None:
    before, reply = await answer(say("42", reasoning="Let me think."), client)
    assert [chunk.text for chunk in before if isinstance(chunk, ReasoningChunk)] == ["Let me t", "hink."]
    assert (reply.reasoning, reply.text) == ("Let me think.", "42")


async def test_reasoning_is_known_by_its_other_name_too(client: HttpClient) -> None:
    _, reply = await answer(
        stream(delta(reasoning="Hm."), delta("stop", content="<think>x</think>Yes"), "[DONE]"), client
    )
    assert (reply.reasoning, reply.text) == ("Hm.", "<think>x</think>Yes")


async def test_a_call_arrives_in_pieces(client: HttpClient) -> None:
    before, reply = await answer(call("read", path="a.txt"), client)
    assert ArgumentsChunk(0, "read", "") in before
    assert "".join(chunk.text for chunk in before if isinstance(chunk, ArgumentsChunk)) == '{"path": "a.txt"}'
    assert (reply.finish, reply.calls) == ("calls", (ToolCall("call_read_0", "read", '{"path": "a.txt"}'),))


TWO = (("read", {"path": "ä"}), ("list", {"path": "b"}))


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"pieces": False},
        {"objects": True},
        {"ids": False},
        {"indexes": False},
        {"ids": False, "indexes": False},
        {"ids": False, "indexes": False, "pieces": False},
        {"ids": False, "indexes": False, "objects": True},
        {"whole": True},
        {"whole": True, "ids": False, "indexes": False},
        {"finish": "stop"},
        {"finish": "eos"},
        {"split": 3},
        {"split": 7, "keepalives": 2},
    ],
    ids=str,
)
async def test_parallel_calls_are_told_apart_however_they_come(client: HttpClient, how: dict[str, Any]) -> None:
    _, reply = await answer(calls(*TWO, **how), client)
    assert [(made.name, json.loads(made.arguments)) for made in reply.calls] == [*TWO]
    assert (reply.finish, len({made.id for made in reply.calls})) == ("calls", 2)


async def test_calls_that_share_an_index_are_told_apart_by_id(client: HttpClient) -> None:
    step = stream(
        piece(index=0, id="a", name="read", arguments="{}"),
        piece(index=0, id="b", name="read", arguments="{}"),
        "[DONE]",
    )
    assert [made.id for made in (await answer(step, client))[1].calls] == ["a", "b"]


async def test_calls_that_share_an_index_without_ids_are_told_apart_when_one_is_complete(client: HttpClient) -> None:
    step = stream(piece(index=0, name="read", arguments="{}"), piece(index=0, name="read", arguments="{}"), "[DONE]")
    assert len((await answer(step, client))[1].calls) == 2


async def test_a_name_that_comes_again_with_every_piece_is_one_name(client: HttpClient) -> None:
    step = stream(
        piece(index=0, id=1, name="read", arguments='{"a"'),
        piece(index=0, id=1, name="read", arguments=":1}"),
        "[DONE]",
    )
    assert (await answer(step, client))[1].calls == (ToolCall("1", "read", '{"a":1}'),)


async def test_a_name_in_pieces_is_put_together(client: HttpClient) -> None:
    step = stream(piece(index=0, id="a", name="re"), piece(index=0, name="ad"), piece(index=0), "[DONE]")
    assert (await answer(step, client))[1].calls == (ToolCall("a", "read", "{}"),)


async def test_a_piece_without_an_index_goes_by_its_id(client: HttpClient) -> None:
    step = stream(
        piece(id="a", name="read"), piece(id="b", name="list"), piece(id="a", arguments="{}"), {"choices": []}, "[DONE]"
    )
    assert [made.name for made in (await answer(step, client))[1].calls] == ["read", "list"]


async def test_a_call_without_a_function_is_not_lost(client: HttpClient) -> None:
    step = stream(delta(tool_calls=[{"index": 0, "id": "a"}]), piece(index=0, name="read", arguments="{}"), "[DONE]")
    assert (await answer(step, client))[1].calls == (ToolCall("a", "read", "{}"),)


async def test_a_legacy_function_call_is_a_call(client: HttpClient) -> None:
    _, reply = await answer(call("read", how={"legacy": True}, path="a.txt"), client)
    assert (reply.finish, reply.calls) == ("calls", (ToolCall("call_0", "read", '{"path": "a.txt"}'),))


async def test_bytes_may_be_split_anywhere(client: HttpClient) -> None:
    for split in (1, 2, 5):
        _, reply = await answer(say(UNICODE, split=split), client)
        assert reply.text == UNICODE


async def test_keepalives_and_empty_deltas_are_signs_of_life(client: HttpClient) -> None:
    before, _ = await answer(say("x", keepalives=3, delay=0.002), client)
    assert before.count(KeepAlive()) >= 4


@pytest.mark.parametrize(
    ("finish", "wanted"),
    [("stop", "stop"), ("length", "length"), ("content_filter", "filtered"), ("tool_calls", "stop")],
)
async def test_the_reason_for_the_end_is_told(client: HttpClient, finish: str, wanted: str) -> None:
    assert (await answer(say("x", finish=finish), client))[1].finish == wanted


async def test_usage_tells_cached_and_reasoning_tokens(client: HttpClient) -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 80},
        "completion_tokens_details": {"reasoning_tokens": 15},
    }
    assert (await answer(say("x", usage=usage), client))[1].usage == Usage(100, 20, 80, 15)


@pytest.mark.parametrize("usage", [{}, {"prompt_tokens_details": {}, "completion_tokens_details": None}], ids=str)
async def test_usage_may_be_missing(client: HttpClient, usage: dict[str, Any]) -> None:
    assert (await answer(say("x", usage=usage), client))[1].usage == Usage()


async def test_a_stream_may_end_without_done(client: HttpClient) -> None:
    assert (await answer(say("Hello", done=False), client))[1].text == "Hello"


async def test_a_stream_may_end_without_a_reason_if_it_says_done(client: HttpClient) -> None:
    assert (await answer(say("Hello", finish=""), client))[1].finish == "stop"


async def test_a_stream_that_just_ends_is_cut(client: HttpClient) -> None:
    error = await failing(say("Hello", done=False, finish=""), client)
    assert (error.failure, error.is_retryable) == ("cut", True)


async def test_a_connection_that_breaks_in_the_stream_is_cut(client: HttpClient) -> None:
    assert (await failing(say("Hello world", drop=True, at="stream"), client)).failure == "cut"


async def test_a_connection_that_breaks_when_all_is_said_does_no_harm(client: HttpClient) -> None:
    head = "HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"
    body = f"data: {json.dumps(delta('stop', content='All.'))}\n\n"
    async with serving(saying((head + body).encode(), wait=0.02)) as port:
        *_, reply = await chunks(provider(f"http://127.0.0.1:{port}/v1", client))
    assert isinstance(reply, ModelReply)
    assert reply.text == "All."


async def test_a_connection_that_breaks_before_the_answer_is_a_network_failure(client: HttpClient) -> None:
    assert (await failing(say("Hello", drop=True), client)).failure == "network"


async def test_a_server_that_does_not_stream_is_understood(client: HttpClient) -> None:
    before, reply = await answer(say("Hello", whole=True, reasoning="Hm."), client)
    assert before == [KeepAlive(), ReasoningChunk("Hm."), TextChunk("Hello")]
    assert reply == ModelReply(text="Hello", reasoning="Hm.", finish="stop", usage=Usage(10, 5))


def test_a_document_without_end_is_refused() -> None:
    stream = ChatStream(Endpoint(name="test", base_url="http://x"), "m")
    with pytest.raises(ProviderError, match="not a chat completion"):
        for _ in range(40):
            stream.feed(b"{" + b" " * (1 << 20))


async def test_a_server_that_leaves_the_connection_open_does_not_hold_us_up(client: HttpClient) -> None:
    head = "HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"
    body = f"data:\n\ndata: {json.dumps(delta('stop', content='All.'))}\n\ndata: [DONE]\n\n"
    async with serving(saying((head + body).encode(), b": bye\n\n", wait=math.inf)) as port, asyncio.timeout(PATIENCE):
        *_, reply = await chunks(provider(f"http://127.0.0.1:{port}/v1", client))
    assert isinstance(reply, ModelReply)
    assert reply.text == "All."


async def test_a_refusal_is_shown_as_text(client: HttpClient) -> None:
    assert (await answer(stream(delta("stop", refusal="No."), "[DONE]"), client))[1].text == "No."


@pytest.mark.parametrize(
    ("step", "shown"),
    [
        (garbage("<html><h1>Welcome to nginx</h1></html>"), "Welcome to nginx"),
        (garbage("upstream connect error", "text/plain"), "upstream connect error"),
        (garbage('{"status": "ok"}', "application/json"), '{"status": "ok"}'),
        (garbage('{"status":', "application/json"), '{"status":'),
        (garbage("data: {not json}\n\n", "text/event-stream"), "{not json}"),
        (garbage('data: {"choices": 7}\n\n', "text/event-stream"), '{"choices": 7}'),
        (garbage(": only comments\n\n", "text/event-stream"), ": only comments"),
        (garbage(""), "nothing"),
    ],
)
async def test_what_is_no_answer_is_shown_in_part(client: HttpClient, step: Step, shown: str) -> None:
    error = await failing(step, client)
    assert (error.failure, shown in str(error)) == ("format", True)


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (say("Hello world", error={"message": "boom", "type": "server_error"}), "server_error"),
        (say("Hello world", error={"message": "Slow down", "code": 429}), "rate_limited"),
        (say("Hello world", error={"message": "Overloaded", "type": "overloaded_error"}), "overloaded"),
        (stream(delta(content="x"), {"error": "context size exceeded"}), "overflow"),
        (stream({"object": "error", "message": "bad", "type": "invalid_request_error"}), "bad_request"),
        (garbage('event: error\ndata: {"error":{"message":"timed out"}}\n\n', "text/event-stream"), "timeout"),
    ],
)
async def test_an_error_in_the_stream_has_a_kind(client: HttpClient, step: Step, kind: str) -> None:
    assert (await failing(step, client)).failure == kind


async def test_an_error_status_has_a_kind_and_a_way_out(client: HttpClient) -> None:
    error = await failing(fail(401, "Incorrect API key provided: sk-secret"), client)
    assert str(error) == "test does not accept the key: Incorrect API key provided: [key]"
    assert (error.failure, error.status, error.trouble.next) == ("auth", 401, ("Set TEST_KEY to a key that is valid.",))


async def test_a_pause_that_is_asked_for_is_told(client: HttpClient) -> None:
    error = await failing(fail(429, "Slow down", headers={"retry-after": "7"}), client)
    assert (error.failure, error.retry_after) == ("rate_limited", 7.0)


async def test_an_empty_account_does_not_pass(client: HttpClient) -> None:
    error = await failing(fail(429, "You exceeded your current quota", code="insufficient_quota"), client)
    assert (error.failure, error.is_retryable) == ("auth", False)
    assert error.trouble.next[0].startswith("Add credit")


async def test_a_server_that_minds_stream_options_is_asked_without_them_from_then_on(client: HttpClient) -> None:
    async with ModelServer([fail(400, "Unknown parameter: stream_options"), say("a"), say("b")]) as server:
        chat = provider(server.url, client)
        await chunks(chat)
        await chunks(chat)
        assert ["stream_options" in asked.json for asked in server.requests] == [True, False, False]


async def test_a_server_that_minds_it_still_is_not_asked_for_ever(client: HttpClient) -> None:
    async with ModelServer([fail(400, "no stream_options")], loop=True) as server:
        with pytest.raises(ProviderError, match="refused the request: no stream_options"):
            await chunks(provider(server.url, client))
        assert len(server.requests) == 2


async def test_a_server_that_wants_the_new_name_of_the_limit_gets_it(client: HttpClient) -> None:
    request = ModelRequest(model="m", system="", messages=(), max_tokens=9)
    async with ModelServer([fail(400, "Use 'max_completion_tokens' instead."), say("a")]) as server:
        await chunks(provider(server.url, client), request)
        assert [asked.json.get("max_tokens") for asked in server.requests] == [9, None]
        assert server.requests[1].json["max_completion_tokens"] == 9


async def test_the_request_says_all_that_was_said(client: HttpClient) -> None:
    messages = (
        Message("user", "Read it"),
        Message("assistant", "", (ToolCall("t1_c1", "read", '{"path":"a"}'), ToolCall("t1_c2", "read", "{oops"))),
        Message("tool", "content", call="t1_c1"),
        Message("assistant", "Done.", reasoning="not sent back"),
    )
    request = ModelRequest(model="m", system="Be kind.", messages=messages, tools=TOOLS, max_tokens=5)
    async with ModelServer([say("ok")]) as server:
        await chunks(provider(server.url, client, api_key=" sk-1\n", headers={"X-Title": "Sylph"}), request)
        (asked,) = server.requests
    made = {"type": "function", "id": "t1_c1", "function": {"name": "read", "arguments": '{"path":"a"}'}}
    broken = {"type": "function", "id": "t1_c2", "function": {"name": "read", "arguments": '{"not_json":"{oops"}'}}
    assert asked.json == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 5,
        "tools": [
            {
                "type": "function",
                "function": {"name": "read", "description": "Reads a file.", "parameters": TOOLS[0].schema},
            }
        ],
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "Read it"},
            {"role": "assistant", "content": None, "tool_calls": [made, broken]},
            {"role": "tool", "content": "content", "tool_call_id": "t1_c1"},
            {"role": "assistant", "content": "Done."},
        ],
    }
    assert (asked.headers["authorization"], asked.headers["x-title"]) == ("Bearer sk-1", "Sylph")
    assert asked.headers["accept-encoding"] == "identity"


async def test_consecutive_requests_extend_the_same_bytes(client: HttpClient) -> None:
    said = (Message("user", "one"), Message("assistant", "two"), Message("user", "three"), Message("assistant", "four"))
    async with ModelServer([say("x")], loop=True) as server:
        chat = provider(server.url, client)
        for end in range(1, 5):
            request = ModelRequest(model="m", system="s", messages=said[:end], tools=tuple(TOOLS))
            assert chat.body(request) == chat.body(request)
            await chunks(chat, request)
        assert_extends(server.requests)
        assert server.connections == 1


async def test_closing_the_stream_early_hangs_up(client: HttpClient) -> None:
    async with ModelServer([begin("a long story " * 100)]) as server:
        chat = provider(server.url, client)
        async with aclosing(chat.stream(HELLO, chat.body(HELLO))) as stream:
            async for chunk in stream:
                if isinstance(chunk, TextChunk):
                    break
        await server.until(lambda: server.broken == 1)


async def test_models_are_listed_with_their_windows(client: HttpClient) -> None:
    listing = [
        "plain",
        {"id": "vllm", "max_model_len": 32768},
        {"id": "router", "context_length": 128000},
        {"id": "llamacpp", "meta": {"n_ctx_train": 8192}},
        {"object": "model"},
    ]
    async with ModelServer(models=listing) as server:
        chat = provider(server.url, client, models={"plain": ModelInfo(name="plain", window=7, price_in=3)}, local=True)
        assert [(model.name, model.window) for model in await chat.models()] == [
            ("plain", 7),
            ("vllm", 32768),
            ("router", 128000),
            ("llamacpp", 8192),
        ]
    assert chat.name == "test"
    assert (chat.info("vllm").window, chat.info("vllm").price_in, chat.info("plain").price_in) == (32768, 0, 3)
    assert chat.info("unknown") == ModelInfo(name="unknown", price_in=0, price_out=0, price_cached=0)
    assert chat.info("plain").price_cached is None, "what is not told of a model with a price is not free"
    await chat.close()


@pytest.mark.parametrize(
    ("body", "names"), [(b'[{"id":"a"}]', ["a"]), (b'{"object":"list","data":null}', [])], ids=["bare", "empty"]
)
async def test_a_list_of_models_may_be_bare_or_empty(client: HttpClient, body: bytes, names: list[str]) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
    async with serving(saying(head + body)) as port:
        assert [model.name for model in await provider(f"http://127.0.0.1:{port}", client).models()] == names


async def test_what_is_no_list_of_models_is_an_error(client: HttpClient) -> None:
    async with serving(saying(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>")) as port:
        with pytest.raises(ProviderError, match="There is no model service of this kind"):
            await provider(f"http://127.0.0.1:{port}", client).models()


async def test_a_service_without_a_list_of_models_says_so(client: HttpClient) -> None:
    async with serving(saying(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")) as port:
        with pytest.raises(ProviderError) as caught:
            await provider(f"http://127.0.0.1:{port}", client).models()
    assert caught.value.failure == "not_found"
    assert provider("http://x/v1", client).info("m") == ModelInfo(name="m")


async def test_an_unknown_model_is_answered_with_the_names_that_come_close(client: HttpClient) -> None:
    missing = fail(404, "no such model")
    async with ModelServer([missing], models=["qwen3-coder", "llama3"]) as server:
        with pytest.raises(ProviderError) as caught:
            await chunks(provider(server.url, client), replace(HELLO, model="qwen3-codr"))
    assert "Did you mean test/qwen3-coder?" in caught.value.trouble.next[0]


def test_two_conversations_side_by_side_get_the_bytes_they_would_get_alone(client: HttpClient) -> None:
    shared = provider("http://127.0.0.1:1/v1", client)
    one = [Message("user", "a"), Message("assistant", "b"), Message("user", "c")]
    two = [one[0], Message("assistant", "other"), Message("user", "c")]
    for length in (1, 2, 3, 2):
        for said in (one, two):
            request = replace(HELLO, messages=tuple(said[:length]))
            assert shared.body(request) == provider("http://127.0.0.1:1/v1", client).body(request)


PNG = Image("d1", "image/png", 3, "a.png")


def wired(chat: OpenAIChatProvider, *messages: Message, data: bytes | None = b"png") -> list[Any]:
    request = ModelRequest(model="m", system="s", messages=messages, image=lambda _: data)
    return json.loads(chat.body(request))["messages"][1:]


async def test_images_of_results_follow_the_last_of_them(client: HttpClient) -> None:
    chat = provider("http://127.0.0.1:1/v1", client)
    asked = Message("assistant", "", calls=(ToolCall("c1", "read", "{}"), ToolCall("c2", "read", "{}")))
    talk = (
        Message("user", "look"),
        asked,
        Message("tool", "[a]", call="c1", images=(PNG,)),
        Message("tool", "b", call="c2"),
    )
    said = wired(chat, *talk)
    assert [one["role"] for one in said] == ["user", "assistant", "tool", "tool", "user"]
    assert said[-1]["content"] == [
        {"type": "text", "text": "[from the call c1]"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,cG5n"}},
    ]
    assert wired(chat, *talk, Message("assistant", "red"))[:5] == said


async def test_a_person_may_show_images_too(client: HttpClient) -> None:
    (said,) = wired(provider("http://127.0.0.1:1/v1", client), Message("user", "look", images=(PNG,)))
    assert [part["type"] for part in said["content"]] == ["text", "image_url"]


async def test_an_image_that_is_gone_is_told_in_words(client: HttpClient) -> None:
    (said,) = wired(provider("http://127.0.0.1:1/v1", client), Message("user", "look", images=(PNG,)), data=None)
    assert said["content"][1] == {"type": "text", "text": "[a.png: the image is gone]"}


async def test_only_the_model_that_minds_is_not_shown_images(client: HttpClient) -> None:
    chat = OpenAIChatProvider(Endpoint(name="test", base_url="http://127.0.0.1:1/v1"), client, refused=["images m"])
    message = Message("user", "", images=(PNG,))
    other = ModelRequest(model="n", system="", messages=(message,), image=lambda _: b"png")
    assert "takes no images" in str(wired(chat, message))
    assert b"image_url" in chat.body(other)
    assert "takes no images" in str(wired(chat, message))


async def test_a_complaint_without_images_is_a_failure(client: HttpClient) -> None:
    error = await failing(fail(400, "This image model cannot chat."), client)
    assert error.failure == "bad_request"


def said(client: HttpClient, request: ModelRequest, *quirks: str) -> dict[str, Any]:
    return json.loads(provider("http://x/v1", client, quirks=frozenset(quirks)).body(request))


def test_a_schema_is_asked_for(client: HttpClient) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    told = said(client, replace(HELLO, schema=schema))["response_format"]
    assert told == {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": False}}


def test_effort_and_cache_key_go_only_to_those_who_take_them(client: HttpClient) -> None:
    request = replace(HELLO, effort="low", family="fam")
    assert not said(client, request).keys() & {"reasoning_effort", "prompt_cache_key"}
    told = said(client, request, "effort", "cache_key")
    assert (told["reasoning_effort"], told["prompt_cache_key"]) == ("low", "fam")


@pytest.mark.parametrize("option", ["reasoning_effort", "prompt_cache_key", "response_format"])
async def test_what_a_service_minds_is_left_out_from_then_on(client: HttpClient, option: str) -> None:
    request = replace(HELLO, effort="low", family="fam", schema={"type": "object"})
    async with ModelServer([fail(400, f"{option} is not available now"), say("a"), say("b")]) as server:
        chat = provider(server.url, client, quirks=frozenset({"effort", "cache_key"}))
        await chunks(chat, request)
        await chunks(chat, request)
    assert [option in asked.json for asked in server.requests] == [True, False, False]


def test_a_service_that_minds_the_count_of_a_stream_is_not_asked_for_it(client: HttpClient) -> None:
    assert "stream_options" not in said(client, HELLO, "no_stream_usage")


def test_a_document_is_shown_as_a_file(client: HttpClient) -> None:
    paper = Image("d", "application/pdf", name="b.pdf")
    request = replace(HELLO, messages=(Message("user", "read", images=(paper,)),), image={"d": b"%PDF"}.get)
    parts = said(client, request)["messages"][1]["content"]
    assert parts[1] == {
        "type": "file",
        "file": {"filename": "b.pdf", "file_data": "data:application/pdf;base64,JVBERg=="},
    }


async def test_thoughts_go_back_to_a_model_that_wants_them_and_to_no_other(client: HttpClient) -> None:
    async with ModelServer([call("read", path="a", how={"reasoning": "hm"})]) as server:
        *_, reply = await chunks(provider(server.url, client, quirks=frozenset({"thoughts_back"})))
    assert isinstance(reply, ModelReply)
    assert reply.native == '{"reasoning_content":"hm"}'
    answer = Message("assistant", "", reply.calls, native=NativeItems("test/scripted", reply.native))
    request = replace(HELLO, messages=(*HELLO.messages, answer, Message("tool", "x", call=reply.calls[0].id)))
    assert said(client, request, "thoughts_back")["messages"][2]["reasoning_content"] == "hm"
    elsewhere = replace(answer, native=NativeItems("test/scripted", "[]"))
    told = said(client, replace(request, messages=(elsewhere,)), "thoughts_back")
    assert "reasoning_content" not in told["messages"][1]
    other = replace(request, model="other")
    for told in (said(client, other, "thoughts_back"), said(client, request)):
        assert "reasoning_content" not in told["messages"][2]
