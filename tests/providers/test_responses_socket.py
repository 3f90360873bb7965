"""The Responses dialect over a WebSocket that stays open: what goes over it, and when it is not used."""

import asyncio
import json
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

import pytest
from msgspec.structs import replace
from tests.model_server import ModelServer, Step, begin, call, fail, say

from sylph.core.errors import ProviderError
from sylph.core.messages import Message, NativeItems
from sylph.core.provider import Chunk, KeepAlive, ModelReply, ModelRequest, TextChunk, ToolSpec
from sylph.net.http_client import HttpClient
from sylph.providers.dialects.openai_responses.provider import OpenAIResponsesProvider
from sylph.providers.endpoint import Endpoint

TOOLS = (ToolSpec("read", "Reads a file.", {"type": "object", "properties": {}}),)
HELLO = ModelRequest(model="gpt-5", system="Be kind.", messages=(Message("user", "Hello"),), tools=TOOLS, family="fam")
THINKS = {"reasoning": "hm", "encrypted": "gAAA"}


def serving(script: Sequence[Step], **how: Any) -> ModelServer:
    return ModelServer(script, dialects=("responses",), websocket=True, **how)


def provider(url: str, client: HttpClient, **options: Any) -> OpenAIResponsesProvider:
    return OpenAIResponsesProvider(Endpoint(name="test", base_url=url, websocket=True, **options), client)


async def ask(responses: OpenAIResponsesProvider, request: ModelRequest = HELLO) -> tuple[ModelReply, list[Chunk]]:
    async with aclosing(responses.stream(request, responses.body(request))) as stream:
        *before, reply = [chunk async for chunk in stream]
    assert isinstance(reply, ModelReply)
    return reply, [chunk for chunk in before if chunk != KeepAlive()]


def grown(request: ModelRequest, reply: ModelReply, said: str = "more") -> ModelRequest:
    """The request that follows an answer, as the engine would make it."""
    native = NativeItems(f"test/{request.model}", reply.native) if reply.native else None
    ours = tuple(replace(each, id=f"ours_{each.id}") for each in reply.calls)
    answer = Message("assistant", reply.text, ours, native=native)
    rest = [Message("tool", said, call=each.id) for each in ours] or [Message("user", said)]
    return replace(request, messages=(*request.messages, answer, *rest))


def said(server: ModelServer) -> list[tuple[str, str | None, list[dict[str, Any]]]]:
    """How each request came: its way, what it went on from, and its input."""
    return [(each.method, each.json.get("previous_response_id"), each.json["input"]) for each in server.requests]


async def test_one_connection_carries_a_session_and_only_what_is_new_goes_over_it(client: HttpClient) -> None:
    script = [call("read", path="a", how=THINKS), say("Two"), say("Three")]
    async with serving(script) as server:
        responses, request = provider(server.url, client, api_key="k"), HELLO
        for text in ("", "Two", "Three"):
            reply, _ = await ask(responses, request)
            assert reply.text == text
            request = grown(request, reply, f"after {text}")
        await responses.close()
    assert server.connections == 1
    (first, one, whole), (_, two, result), (_, three, words) = said(server)
    assert (first, one, two, three) == ("WEBSOCKET", None, "resp_1", "resp_2")
    assert len(whole) == 1
    assert result == [{"type": "function_call_output", "call_id": "call_read_0", "output": "after "}]
    assert words == [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "after Two"}]}]
    opening = server.requests[0]
    assert opening.headers["authorization"] == "Bearer k"
    assert opening.body.startswith(b'{"type":"response.create","model":"gpt-5","store":false,')
    assert "stream" not in opening.json
    assert server.requests[1].json["tools"] == opening.json["tools"]


async def test_a_prompt_that_does_not_extend_the_last_one_is_said_in_full(client: HttpClient) -> None:
    async with serving([say("one"), say("two"), say("three"), say("four")]) as server:
        responses = provider(server.url, client)
        reply, _ = await ask(responses)
        longer = grown(HELLO, reply)
        for other in (
            replace(longer, messages=(Message("user", "Else"), *longer.messages[1:])),
            replace(longer, system="Be strict."),
            replace(longer, messages=(*HELLO.messages, Message("assistant", "edited"), Message("user", "x"))),
        ):
            await ask(responses, other)
        await responses.close()
    assert [previous for _, previous, _ in said(server)] == [None] * 4
    assert [len(items) for _, _, items in said(server)] == [1, 3, 3, 3]


async def test_how_long_an_answer_may_be_can_change(client: HttpClient) -> None:
    async with serving([say("one"), say("two")]) as server:
        responses = provider(server.url, client)
        reply, _ = await ask(responses, replace(HELLO, max_tokens=100))
        await ask(responses, replace(grown(HELLO, reply), max_tokens=50))
        await responses.close()
    assert [each.json["max_output_tokens"] for each in server.requests] == [100, 50]
    assert [previous for _, previous, _ in said(server)] == [None, "resp_1"]


async def test_each_family_has_a_connection_of_its_own(client: HttpClient) -> None:
    async with serving([say("x")], loop=True) as server:
        responses = provider(server.url, client)
        for family in ("a", "b", "a", "b"):
            await ask(responses, replace(HELLO, family=family))
        assert server.connections == 2
        for number in range(9):
            await ask(responses, replace(HELLO, family=str(number)))
        await responses.close()


async def test_a_connection_that_the_server_closed_is_opened_anew(client: HttpClient) -> None:
    async with serving([say("one", hang_up=True), say("two")]) as server:
        responses = provider(server.url, client)
        reply, _ = await ask(responses)
        again, _ = await ask(responses, grown(HELLO, reply))
        await responses.close()
    assert again.text == "two"
    # The new one knows nothing of the old, so all is said again.
    assert [(way, previous, len(items)) for way, previous, items in said(server)] == [
        ("WEBSOCKET", None, 1),
        ("WEBSOCKET", None, 3),
    ]


async def test_a_connection_that_breaks_as_we_speak_is_opened_anew(client: HttpClient) -> None:
    async with serving([say("one"), say("", drop=True, at="head"), say("two")]) as server:
        responses = provider(server.url, client)
        reply, _ = await ask(responses)
        again, _ = await ask(responses, grown(HELLO, reply))
        await responses.close()
    assert again.text == "two"
    assert [previous for _, previous, _ in said(server)] == [None, "resp_1", None]


async def test_where_the_server_has_forgotten_all_is_said_again(client: HttpClient) -> None:
    async with serving([say("one"), say("", forget=True), say("two")]) as server:
        responses = provider(server.url, client)
        reply, _ = await ask(responses)
        again, shown = await ask(responses, grown(HELLO, reply))
        await responses.close()
    assert (again.text, shown) == ("two", [TextChunk("two")])
    assert [(previous, len(items)) for _, previous, items in said(server)] == [(None, 1), ("resp_1", 1), (None, 3)]
    assert server.connections == 1


async def test_a_connection_at_its_limit_is_replaced(client: HttpClient) -> None:
    worn = fail(400, "Responses websocket connection limit reached", code="websocket_connection_limit_reached")
    async with serving([say("one"), worn, say("two")]) as server:
        responses = provider(server.url, client)
        reply, _ = await ask(responses)
        assert (await ask(responses, grown(HELLO, reply)))[0].text == "two"
        await responses.close()
    assert server.connections == 2


async def test_before_anything_was_shown_plain_http_takes_over(client: HttpClient) -> None:
    script = [say("", drop=True, at="head"), say("over HTTP")]
    async with serving(script) as server:
        responses = provider(server.url, client)
        assert (await ask(responses))[0].text == "over HTTP"
        await responses.close()
    assert [each.method for each in server.requests] == ["WEBSOCKET", "POST"]


async def test_after_something_was_shown_nothing_is_asked_again(client: HttpClient) -> None:
    async with serving([say("Hello there, all of you", drop=True, at="stream"), say("never")]) as server:
        responses = provider(server.url, client)
        shown: list[Chunk] = []
        with pytest.raises(ProviderError) as caught:
            async for chunk in responses.stream(HELLO, responses.body(HELLO)):
                shown.append(chunk)
        await responses.close()
    assert caught.value.failure == "cut"
    assert any(isinstance(chunk, TextChunk) for chunk in shown)
    assert len(server.requests) == 1


async def test_a_server_without_websockets_is_asked_over_http_and_not_bothered_again(client: HttpClient) -> None:
    async with ModelServer([say("one"), say("two")], dialects=("responses",)) as server:
        responses = provider(server.url, client)
        assert [(await ask(responses))[0].text for _ in range(2)] == ["one", "two"]
        await responses.close()
    assert [each.method for each in server.requests] == ["POST", "POST"]


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (fail(429, "Slow", code="rate_limit_exceeded"), "rate_limited"),
        (fail(400, "Too long", code="context_length_exceeded"), "overflow"),
        (say("x", error={"code": "server_error", "message": "Oops"}), "server_error"),
        (say("x", error={"event": "error", "code": "overloaded", "message": "m"}), "overloaded"),
    ],
)
async def test_what_the_service_complains_of_is_not_asked_over_http(client: HttpClient, step: Step, kind: str) -> None:
    async with serving([step, say("fine")]) as server:
        responses = provider(server.url, client)
        with pytest.raises(ProviderError) as caught:
            await ask(responses)
        assert caught.value.failure == kind
        assert (await ask(responses))[0].text == "fine"
        await responses.close()
    assert {each.method for each in server.requests} == {"WEBSOCKET"}


async def test_an_option_that_is_minded_is_settled_over_http_and_left_out_then(client: HttpClient) -> None:
    minds = fail(400, "Your organization must be verified to generate reasoning summaries.", code="unsupported_value")
    async with serving([minds, say("one"), say("two")]) as server:
        responses = provider(server.url, client)
        assert [(await ask(responses))[0].text for _ in range(2)] == ["one", "two"]
        await responses.close()
    assert [each.method for each in server.requests] == ["WEBSOCKET", "POST", "WEBSOCKET"]
    assert ['"summary"' in each.body.decode() for each in server.requests] == [True, False, False]


async def test_two_answers_at_a_time_do_not_mix(client: HttpClient) -> None:
    gate = asyncio.Event()
    async with serving([say("slow " * 20, hold=gate, at="stream"), say("quick")]) as server:
        responses = provider(server.url, client)
        slow = asyncio.create_task(ask(responses))
        await server.until(lambda: len(server.requests) == 1)
        quick, _ = await ask(responses)
        gate.set()
        assert (quick.text, (await slow)[0].text) == ("quick", "slow " * 20)
        await responses.close()
    assert [each.method for each in server.requests] == ["WEBSOCKET", "POST"]


async def test_an_answer_that_nobody_waits_for_does_not_reach_the_next_one(client: HttpClient) -> None:
    async with serving([begin("slow " * 50), say("next")]) as server:
        responses = provider(server.url, client)
        async with aclosing(responses.stream(HELLO, responses.body(HELLO))) as stream:
            async for chunk in stream:
                if isinstance(chunk, TextChunk):
                    break
        assert (await ask(responses))[0].text == "next"
        await responses.close()


async def test_fragments_and_pings_change_nothing(client: HttpClient) -> None:
    text = "Grüße, 世界, 🙂"
    async with serving([say(text, split=1, empties=1, chunk=2)]) as server:
        responses = provider(server.url, client)
        reply, shown = await ask(responses)
        await responses.close()
    assert reply.text == "".join(chunk.text for chunk in shown if isinstance(chunk, TextChunk)) == text


def test_the_body_that_is_recorded_is_the_same_as_over_http(client: HttpClient) -> None:
    plain = OpenAIResponsesProvider(Endpoint(name="test", base_url="http://x"), client)
    assert provider("http://x", client).body(HELLO) == plain.body(HELLO)
    assert json.loads(plain.body(HELLO))["stream"] is True
